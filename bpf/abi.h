/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Everything that the BPF programs and the Go side share. Go gets its types from
 * here through bpf2go; nothing is written twice. Fixed-width types, explicit
 * padding. Changing a struct that lives in a pinned map needs a new ABI_VERSION
 * (TestABIVersion says when).
 */
#ifndef ACTPLANE_ABI_H
#define ACTPLANE_ABI_H

#define ABI_VERSION 9

/* Bounds; those that the compiler checks are in policy/ir too, and a test
 * compares the two. */
#define MAX_SCOPES 1024
#define MAX_IMAGES 1024
#define MAX_LABELS 64
#define MAX_GATES 64
#define MAX_CLAUSES 4096
#define MAX_MATCHES 16 /* that a record lists */
#define MAX_CLAUSE_GATES 8
#define MAX_DEFAULTS 64
#define MAX_FILES (1 << 20)	    /* files with labels or marks, of all scopes */
#define MAX_SCOPE_FILES (1 << 17)   /* of them, of one scope */
#define MAX_SHARERS (1 << 16)	    /* processes that share something, of all scopes */
#define MAX_SCOPE_SHARERS (1 << 13) /* of them, of one scope */
#define MAX_SHARED_WRITES 16	    /* files that a process has mapped to write */
#define MAX_SHARED_READS 64	    /* files that it has mapped to read */
#define MAX_SHARED_WAITS 16	    /* threads of it that are reading */
#define MAX_SHARED_GROUPS 8	    /* other processes whose memory it shares */
#define STATES_SMALL 1024
#define STATES_LARGE 8192
#define ARG_WORDS 8	   /* 512 argv positions */
#define PATH_SIZE 4096	   /* the kernel's PATH_MAX */
#define MAX_PATH_DEPTH 256 /* components and mounts of one path */
#define NAME_SIZE 256	   /* the kernel's NAME_MAX, and a NUL */
#define MAX_ANCESTORS 16
#define MAX_PARENTS 4		 /* that a record names */
#define MAX_PENDING 8		 /* gates that wait for one process's exit status */
#define MAX_EXEC_LEVELS 6	 /* a script and its interpreters: the kernel's own limit */
#define ARG_PIECE 256		 /* bytes of argv read at once */
#define MAX_ARG_PIECES (1 << 18) /* 256 KiB of argv even when each has one byte */
#define ARGS_SIZE 2048		 /* bytes of argv in a record */
#define ADDRESS_SIZE 18		 /* 16 bytes of address, 2 of port */
#define MAX_CGROUP_DEPTH 24	 /* of a scope's own cgroup; below it any depth */
#define SCRATCHES_PER_CPU 8
#define MAX_LOST (1 << 14) /* rows of the table of lost records, of all scopes */
#define RING_SIZE (4 << 20)
#define MAX_REQUESTS (1 << 14)	     /* open requests for approval, of all scopes */
#define MAX_SCOPE_REQUESTS 64	     /* of them, of one scope */
#define MAX_ANSWERS (1 << 16)	     /* remembered, of all scopes */
#define MAX_SCOPE_ANSWERS 1024	     /* of them, of one scope */
#define MAX_CONFINED (1 << 14)	     /* processes for which rules were added, of all scopes */
#define MAX_SCOPE_CONFINED (1 << 10) /* of them, of one scope */
#define MAX_GRANTED_USES (1 << 14)   /* descriptors and connections */
#define MAX_VERSIONS (1 << 14)	     /* programs about which people were asked */
#define MAX_KNOWN_PATHS (1 << 14)    /* whose rows are remembered; a power of two */
#define KNOWN_NAME 40		     /* bytes of the longest name of these */
#define MAX_LIFTED 4		     /* asks that one operation can have behind it */
#define GAIN_TEXT 256		     /* bytes of an object's name that a record of a gain has */
#define GAIN_WINDOW 30 /* bits of a time in ns: about a second, in which a scope has */
#define MAX_GAINS 256  /* records of gains of processes, and as many of objects */

/* In the order of package ir. */
enum op {
	OP_EXEC,
	OP_OPEN,
	OP_READ,
	OP_WRITE,
	OP_APPEND,
	OP_UNLINK,
	OP_CONNECT,
	OP_BIND,
	OP_SEND,
	OP_RECV,
	NUM_OPS,
};

enum effect {
	EFFECT_ALLOW,
	EFFECT_NOTIFY,
	EFFECT_ASK,
	EFFECT_BLOCK,
	EFFECT_KILL,
};

/* In the order of package dfa. */
enum start {
	START_PATH,
	START_NAME,
	START_TOKEN,
	START_ADDRESS,
	START_UNIX,
	START_DEVICE,
	START_BASE,
	NUM_STARTS,
};

enum row_number {
	ROW_NONE = 0,
	ROW_UNKNOWN = 1,
};

/* What a path matches is in up to two rows, whose numbers are carried in one: the one
 * that its last name comes to by itself stands above this many bits. */
#define ROW_BITS 16

enum scope_flag {
	SCOPE_HOST_ROOT = 1, /* its processes keep the host's root */
	SCOPE_SATURATED = 2, /* the table of files was full; see assumed_labels */
	SCOPE_KEPT_ALL = 4,  /* what protects a file was noted under another policy: it counts as
			      * protected by all that protects something */
	SCOPE_LOCKED = 8,    /* everything is refused */
};

enum process_flag {
	PROCESS_SETUP = 1,
	PROCESS_DEEP = 2, /* its oldest ancestors are not in its list */
};

enum file_flag {
	FILE_MODIFIED = 1, /* written inside the scope */
	FILE_NAMED = 2,	   /* got a name inside the scope: renamed or linked */
	FILE_UNKNOWN = 4,  /* whether either is so is not known */
	FILE_CREATED = 8,  /* not stored: it is new, and nothing is assumed of it */
	FILE_SHARED = 16,  /* some process has mapped it */
	FILE_HERE = 32,	   /* of an endpoint: a process of the scope listens */
};

/*
 * What carries labels and is no file has its entry in the table of files too, under
 * numbers of devices that no file system has. It ends with the processes.
 */
enum channel {
	CHANNEL_SOCKET = 0xfff00000, /* what waits in a socket, by its address in memory */
	CHANNEL_INBOX,		     /* what was sent to an address and port */
	CHANNEL_OUTBOX,		     /* what was sent from one that is listened on */
	CHANNEL_TERMINAL,	     /* what programs wrote on a terminal, by its inode */
	CHANNEL_QUEUE,		     /* a queue of messages, by its address in memory */
	CHANNEL_OPTIONS,	     /* the options of a socket, by its address in memory */
};

/* What a record is about. */
enum record_kind {
	RECORD_VERDICT = 1,
	RECORD_PROBE = 2,
	RECORD_GAIN = 3, /* a process has gained labels: struct origin */
	RECORD_GIVE = 4, /* a process has given labels to something, or to another process */
	RECORD_GATE = 5, /* a process has opened gates or made them stale: struct origin */
};

/* What became of the gates of a RECORD_GATE, whose labels they are. */
enum gate_move {
	GATE_OPENED, /* with the status in other, if they waited for one */
	GATE_STALED,
	GATE_LATE,   /* the status would have opened them, and what they depend on had changed */
	GATE_MISSED, /* they waited for another status: in other, as wait(2) has it */
	GATE_CLOSED, /* what had opened them is not the program any more that it was */
};

/* How a label came to a process, or with RECORD_GIVE, to what it gave it. */
enum way {
	WAY_SOURCE_FILE, /* by a name that the policy gives the label */
	WAY_SOURCE_EXEC,
	WAY_SOURCE_ENDPOINT,
	WAY_FILE, /* a file that carried it */
	WAY_PROGRAM,
	WAY_ENDPOINT,
	WAY_ENDORSED,
	/* What follows has no name in the record. */
	WAY_SOCKET,
	WAY_PIPE, /* and memfds */
	WAY_TERMINAL,
	WAY_QUEUE,
	WAY_INTO,	 /* one process looked into the other */
	WAY_SHARED_FILE, /* in the order of enum share_kind */
	WAY_SHARED_CHANNEL,
	WAY_SHARED_GROUP,
	WAY_SHARED_VM,
};

/* Decisions that no clause made. */
enum reason {
	REASON_CLAUSE,
	REASON_SCOPE_GONE,	/* the task's scope was closed */
	REASON_NO_MEMORY,	/* no storage for the task's state */
	REASON_SETUP_TRACE,	/* tracing a process that is being set up, or a foreign one */
	REASON_ARGS_UNREADABLE, /* argv could not be read when the program had been loaded */
	REASON_EXEC_DEPTH,	/* more interpreters than MAX_EXEC_LEVELS */
	REASON_DEFAULT,		/* a default: the clause is its number */
	REASON_MOVED_SOURCE,	/* the rename of a directory that a file source names: the clause
				 * is its label */
	REASON_TOO_MANY_ASKS,	/* more than MAX_LIFTED */
	REASON_ARGS_CHANGED,	/* argv, environment or directory are not what was granted */
	/* A program ran that would open something, and did not, since it */
	REASON_FOREIGN_FILE,   /* was written or got its name inside the scope */
	REASON_FOREIGN_TRACED, /* is traced from inside */
	REASON_FOREIGN_ENV,    /* was started with a variable that makes it run other code */
	REASON_UNFOLLOWED,     /* labels could not be followed through it */
	REASON_LESS_CONFINED,  /* a process for which rules were added reaches into one for which
				* they do not hold */
	REASON_POLICY_CHANGED, /* twice, in the middle of an exec */
	REASON_UNSEEN,	       /* a command that changes files in a way that no hook shows */
};

/* What became of an ask. */
enum asked {
	ASKED_NOT,
	ASKED_OPENED,	  /* a request was opened; the operation may be tried again */
	ASKED_AGAIN,	  /* it is still open */
	ASKED_HELD,	  /* a request was opened, and the process stopped */
	ASKED_HELD_AGAIN, /* it went on before it was answered */
	ASKED_TIMED_OUT,  /* nobody answered in time */
	ASKED_DENIED,	  /* a person denied this operation */
	ASKED_GRANTED,	  /* a record of its own: a grant was used */
	ASKED_FULL,	  /* no room for another request */
	ASKED_UNNAMED,	  /* what it is about cannot be told: no grant could name it */
	ASKED_NO_HOLD,	  /* who does this cannot be stopped */
	ASKED_WRITTEN,	  /* a program that somebody has open to write, or mapped */
	ASKED_SHARED,	  /* other processes can change the directory in which it runs */
};

enum object_kind {
	OBJECT_NONE,
	OBJECT_PATH,
	OBJECT_ADDRESS,
	OBJECT_UNIX,
};

/* A number of one list inside an image's table. */
struct range {
	__u32 first;
	__u32 count;
};

/* More that a policy asks for. */
enum use {
	USES_ENDPOINTS = 1 << 16, /* addresses are sources */
	USES_CODE = 1 << 17,	  /* mapping a program's code is decided on */
	USES_NAMES = 1 << 18,	  /* patterns of files are matched from START_BASE on */
};

/* A compiled policy: its entry states; the tables are in maps of their own. */
struct image {
	__u32 start[NUM_STARTS];
	__u32 large;	 /* the automaton is in dfa_large */
	__u32 arg_words; /* 0: no clause and no gate looks at argv */
	__u32 fd_ops;	 /* bit set of operations that an open descriptor is asked about again */
	__u32 marks;	 /* whether a program was changed matters to some gate or lineage */
	__u32 kept_all;	 /* the row of all that is protected; 0: nothing is */
	__u32 moves;	 /* the number of struct move */
	__u32 move_words;
	__u32 asks;	 /* bit set of operations about which a person can be asked */
	__u32 ops;	 /* bit set of operations with clauses or defaults, and of enum use */
	__u64 labels;	 /* labels that are kept of files */
	__u64 integrity; /* labels that no flow carries, and that are lost by one */
	__u64 confines;	 /* labels that no flow carries, and that are never lost */
	__u64 defaults[NUM_OPS]; /* bit sets, the strictest first */
	__u8 default_effects[MAX_DEFAULTS];
	__u32 default_holds[MAX_DEFAULTS]; /* as in struct clause */
	__u64 arg_start[ARG_WORDS];
	__u8 hash[32]; /* of all the image's tables: equal images are one */
};

/* What holds for all keys that end in one accept set; see package dfa. */
struct row {
	__u64 sources;
	__u64 exec_sources;
	__u64 lineage;
	__u64 targets;
	__u64 declassify, endorse;
	__u32 tokens;	   /* index in the image's token table */
	__u32 exec_args;   /* some exec clause or gate here looks at argv */
	__u32 default_ops; /* bit set: operations that have a default, the same in all rows */
	__u32 modified;	   /* some clause here asks whether the file was modified */
	__u32 kept;	   /* the row that has only what is protected here; 0: nothing is */
	__u32 opens;	   /* running it arms a gate, is lineage or transforms labels */
	__u32 ops;	   /* bit set: operations with clauses, defaults or gates */
	__u32 pad;
	struct range clauses[NUM_OPS];
	struct range allows[NUM_OPS];
	struct range gates[NUM_OPS];
};

enum modified {
	MODIFIED_UNKNOWN,
	MODIFIED_YES, /* written inside the scope */
	MODIFIED_NO,
};

struct clause {
	__u64 all;
	__u64 none;
	__u64 unless_lineage;
	__u64 lifts;			     /* of an allow: defaults */
	__u8 unless_gates[MAX_CLAUSE_GATES]; /* gate + 1; 0 ends the list */
	__s32 arg;			     /* position in the argv set, or -1 */
	__s16 target;			     /* bit in row.targets, or -1 */
	__u8 effect;
	__u8 any;	      /* names nothing */
	__u8 unless_modified; /* bit set of enum modified */
	__u8 op;	      /* as written: one of connect governs what is sent, too */
	__u16 rule;
	__u32 hold; /* of an ask: how long the process is stopped for an answer, ms */
};

struct gate_ref {
	__s32 arg;  /* as in struct clause */
	__s16 exit; /* status to wait for, or -1 */
	__u8 gate;
	__u8 arm; /* else the event makes the gate stale */
};

/* See package dfa's Moves: what differs below two directories. In the order of its
 * kinds. */
enum move_kind {
	MOVE_CLAUSE,
	MOVE_SOURCE,
	MOVE_PROTECT, /* the index is that of a clause */
	MOVE_ALLOW,
	MOVE_GATE,
};

struct move {
	__u64 mask;
	__u32 word;
	__u32 index; /* of the clause, label or gate */
	__u32 kind;
	__u32 op;
};

/* What an automaton's state says of the path that leads to it. */
struct state {
	__u16 row;
	__u16 directory; /* whose path and a / it is; 0: none's */
};

struct arg_set {
	__u64 words[ARG_WORDS];
};

/* Transition tables: next[state * 256 + byte]. The large one is 4 MiB, the most
 * that kernel 6.1 allows for one map value. */
struct dfa_small {
	__u16 next[STATES_SMALL * 256];
};

struct dfa_large {
	__u16 next[STATES_LARGE * 256];
};

/* A file for as long as it exists: names come and go. */
struct file_id {
	__u64 ino;
	__u32 dev; /* the kernel's own encoding of the device number */
	__u32 generation;
};

struct scope {
	__u32 generation; /* 0: the slot is free */
	__u32 image;
	__u32 flags;
	__u32 previous; /* the image that was in force before, plus one: an exec may have been
			 * decided on under it. 0: there was none */
	__u64 cgroup;	/* its id */
	__u64 clock;	/* epochs of gates */
	__u64 armed[MAX_GATES];
	__u64 stale[MAX_GATES];
	__u64 denied, notified, lost;
	__u64 starved; /* operations refused because there was no memory to decide */
	__u64 files;   /* that the table holds for it */
	/* What a file without an entry counts as: 0 unless the table was full, or what
	 * earlier starts of the container did to files was lost. */
	__u64 assumed_labels;
	__u64 assumed_flags;   /* enum file_flag */
	__u64 sharers;	       /* that their table holds for it */
	__u64 growth;	       /* how often a sharer gained a label */
	__u64 sent;	       /* the labels that were ever sent to an address */
	__u64 raw;	       /* of them, by raw sockets */
	__u64 locked;	       /* operations refused because it was locked */
	__u64 gain_window;     /* the time in which gains are counted */
	__u64 gains_missed;    /* that there is no record of */
	__u32 gains[2];	       /* of processes, of objects */
	__u32 held[MAX_GATES]; /* processes whose mappings keep a gate stale */
};

/* Files that mean something to a scope. Apart from struct scope, because the daemon
 * changes them while the programs count there. */
struct scope_files {
	/* Outside the rules. */
	struct file_id feedback, guest;
	/* While a self-test runs, the file whose opening is denied. */
	struct file_id probe;
};

struct pending {
	__u64 epoch;
	__u32 gate;
	__u32 exit;
};

struct armed {
	__u64 epoch;
	__u32 gate;
	__u32 pad;
};

/* What the exec of the program that runs now has opened, and what is taken back when
 * it is not that program any more: when another one writes to it or traces it, or it
 * runs code that was made inside the scope. */
struct opened {
	__u64 lineage;
	__u64 endorsed;
	__u64 stripped; /* labels that it had, and that were cleared */
	__u32 armed_count;
	__u32 pad;
	struct armed armed[MAX_PENDING];
};

/* A thread group in a scope. */
struct process {
	__u64 id;
	__u64 labels;
	__u64 lineage;
	__u64 cleared; /* labels that its program has cleared, and does not regain */
	__u32 scope;
	__u32 generation;
	__u32 flags;
	__u32 pending_count;
	__u64 growth;			/* of the scope, when it last took what its sharer gained */
	__u64 ancestors[MAX_ANCESTORS]; /* nearest first */
	struct pending pending[MAX_PENDING];
	struct opened opened;
};

struct file_key {
	struct file_id id;
	__u32 scope;
	__u32 generation;
};

/*
 * What an answer is for: a keyed hash of the rule, the operation, its object and argv,
 * and all that a grant binds. Only who knows the key can tell what would match.
 */
struct ask_key {
	__u64 sum[2];
	__u32 scope, generation;
};

/* What a person said. */
struct answer {
	__u64 until; /* CLOCK_BOOTTIME, ns; 0: as long as the scope */
	__u64 used;  /* operations that it let through or refused */
	__u32 count; /* of a grant: how often it can be used, beside the time */
	__u8 denied;
	__u8 timed; /* it holds for all until then; else until is when the count ends */
	__u8 pad[2];
};

struct answer_change {
	struct ask_key key;
	__u64 until;
	__u32 count;
	__u8 denied;
	__u8 timed;
	__u8 pad[2];
};

/* A process for which rules were added: what its labels gain as soon as it does
 * something. */
struct confined {
	__u64 labels;
	__u32 scope, generation;
	__u32 tgid;
	__u32 pad;
};

struct confinement {
	__u64 process;
	struct confined confined;
};

struct image_change {
	__u32 scope, generation;
	__u32 image;
	__u32 kept_all; /* set SCOPE_KEPT_ALL */
};

/* A retry belongs to no process. */
struct request_key {
	struct ask_key ask;
	__u64 process;
};

struct request {
	__u64 since, until; /* CLOCK_BOOTTIME, ns; until: of one that is held */
	__u64 started;	    /* when the process was, CLOCK_BOOTTIME, ns */
	__u32 tgid;
	__u32 pad;
};

/* A descriptor or connection that a grant has opened for a process. */
struct granted_use {
	__u64 sum[2];
	__u64 process;
};

/* Which scopes have something to remember of a file. */
struct file_owners {
	__u32 scope, generation;
	__u32 more; /* others have too */
	__u32 pad;
};

struct file_state {
	__u64 labels;
	__u32 flags;
	__u32 kept; /* the row of what protects it, under whatever name; of the scope's image. Of an
		     * endpoint the number of the process that listens */
};

/* What a process shares more of than its lists hold: it counts as sharing all of it. */
enum sharer_flag {
	SHARER_MANY_READS = 1,
	SHARER_MANY_WAITS = 2,
	SHARER_MANY_WRITES = 4,
};

/* What a number in struct sharer stands for: its two lowest bits. */
enum share_kind {
	SHARE_FILE,    /* a mapped file */
	SHARE_CHANNEL, /* pipes, sockets, terminals */
	SHARE_GROUP,   /* memory without a file, and tracing: forks share it too */
	SHARE_VM,      /* all memory, until an exec */
	SHARE_KINDS,
};

/* A channel that a thread reads. A connection has two. */
struct shared_wait {
	__u64 channel, other;
};

/*
 * How a process gets data without asking again: files that it has mapped, memory that
 * it shares, channels that its threads are reading. By the number of the process.
 */
struct sharer {
	__u64 labels;  /* the process's, and those that it is to take over */
	__u64 cleared; /* as in struct process */
	__u64 gates;   /* that its mappings keep stale */
	__u32 scope, generation;
	__u32 flags;
	__u32 writes_count, reads_count;
	__u32 fixed_groups; /* bit set: those that an exec does not end */
	__u32 wait_slots;   /* bit set: those in use */
	__u32 passes;	    /* bit set: those with something in outs */
	__u64 groups[MAX_SHARED_GROUPS];
	struct file_id writes[MAX_SHARED_WRITES];
	__u64 reads[MAX_SHARED_READS];
	struct shared_wait waits[MAX_SHARED_WAITS];
	/* The pipes into which the threads that wait pass on what comes, without looking. */
	struct file_id outs[MAX_SHARED_WAITS];
};

/* Decisions whose records were lost, by what decided. */
struct lost_key {
	__u32 scope;
	__u32 generation;
	__u32 clause;
	__u8 reason;
	__u8 effect;
	__u8 op;
	__u8 pad;
};

/* Host-wide state that outlives the daemon. */
struct host {
	__u32 abi;
	__u32 strays; /* tasks that were moved out of their scope's cgroup */
	__u64 next_process;
	__u64 root; /* address of the inode of the host's root directory, which stays in memory */
	__u32 changes;	 /* renames, revoked grants: ends what was remembered of files */
	__u32 tier;	 /* 1 lsm, 2 fmod_ret */
	__u64 secret[2]; /* the key of the sums in struct ask_key */
	/* Addresses of the kernel's rename_lock and mount_lock, whose sequence numbers are
	 * odd while something is moved. 0: not known. */
	__u64 renames, mounts;
	__u32 directories; /* freed inodes of directories; see struct path_key */
	__u32 freed;	   /* freed inodes, whose addresses mean nothing any more */
	__u64 versions;	   /* that were given to programs */
};

/*
 * All that the path of a file depends on. While no directory is moved, no mount changes
 * and no inode of a directory is freed, a directory has one place below a mount, and the
 * address of its inode means that directory.
 */
struct path_key {
	__u64 parent; /* the inode of the directory */
	__u64 mount, namespace;
	__u64 image; /* the beginning of its hash */
	__u32 renames, mounts, directories;
	__u32 length; /* of the name */
	char name[KNOWN_NAME];
};

struct known_path {
	struct path_key key;
	__u64 since;   /* jiffies */
	__u32 version; /* odd while it is written */
	__u32 rows;
};

/* A process above another one, in the same scope. */
struct parent {
	__u32 tgid;   /* as the host numbers it; 0: there is none */
	__u32 inside; /* as its own pid namespace does */
	char comm[16];
};

/* A scope is locked, or not any more. */
struct lock_change {
	__u32 scope, generation;
	__u32 locked;
};

/* One record of the ring buffer; its object and then its argv follow. */
struct record {
	__u8 kind;
	__u8 effect;
	__u8 op;
	__u8 reason;
	__u8 object_kind;
	__u8 args_cut;
	__u8 flags; /* enum process_flag */
	__u8 protocol;
	__u64 time; /* CLOCK_BOOTTIME, ns */
	__u64 process;
	__u64 labels;  /* the process's, and those that the operation would bring in */
	__u64 carried; /* the process's */
	__u64 lineage;
	__u64 sources;	     /* labels that the object has by its name */
	__u64 started;	     /* when the process was, CLOCK_BOOTTIME, ns */
	struct file_id file; /* the object, if it is a file that there is */
	__u64 ancestors[MAX_ANCESTORS];
	struct parent parents[MAX_PARENTS]; /* nearest first, as they are now */
	__u32 scope;
	__u32 generation;
	__u32 clause;
	__u32 row;
	__u32 tgid;
	__u32 object_size;
	__u32 args_size;
	char comm[16];
	__u32 uid;
	__u64 ask[2];		  /* the sum of an ask that decided, or of an answer to it */
	struct file_id directory; /* of an ask: the working directory that it is about */
	__u8 asked;		  /* enum asked */
	__u8 mapped;		  /* of an exec: code that is mapped, without argv */
	__u8 pad[1];
	__u32 matches;		     /* clauses that matched, the deciding one with them */
	__u16 matching[MAX_MATCHES]; /* the first of them, as they were found */
	__u32 image;		     /* whose numbers these are */
	__u32 pad2;
	struct file_id errors; /* the pipe or terminal that is its standard error, or 0 */
};

/*
 * The record of a gain or a gift: of the process that acts. There are few of them, since
 * each process and each object gains a label once.
 */
struct origin {
	__u8 kind;
	__u8 way;
	__u8 object_kind;
	__u8 protocol;
	__u8 cut;   /* the object's name has more in front */
	__u8 flags; /* enum process_flag */
	__u16 object_size;
	__u64 time; /* CLOCK_BOOTTIME, ns */
	__u64 process;
	__u64 labels;  /* that were gained */
	__u64 other;   /* the other process, or 0 */
	__u64 started; /* when the process was, CLOCK_BOOTTIME, ns */
	__u64 ancestors[MAX_ANCESTORS];
	struct file_id objects[2]; /* where the label was, or is now; zeros: none */
	__u32 scope, generation;
	__u32 tgid;   /* as the host numbers it */
	__u32 inside; /* as the innermost of its own pid namespaces does */
	__u32 uid;
	__u32 pad;
	char comm[16];
	char object[GAIN_TEXT];
};

/* The bounds that Go needs: bpf2go makes constants of enumerators, not of macros. */
enum limits {
	LIMIT_ABI = ABI_VERSION,
	LIMIT_SCOPES = MAX_SCOPES,
	LIMIT_IMAGES = MAX_IMAGES,
	LIMIT_LABELS = MAX_LABELS,
	LIMIT_GATES = MAX_GATES,
	LIMIT_CLAUSES = MAX_CLAUSES,
	LIMIT_CLAUSE_GATES = MAX_CLAUSE_GATES,
	LIMIT_MATCHES = MAX_MATCHES,
	LIMIT_DEFAULTS = MAX_DEFAULTS,
	LIMIT_STATES_SMALL = STATES_SMALL,
	LIMIT_STATES_LARGE = STATES_LARGE,
	LIMIT_ARG_POSITIONS = ARG_WORDS * 64,
	LIMIT_ROW_BITS = ROW_BITS,
	LIMIT_SCRATCHES_PER_CPU = SCRATCHES_PER_CPU,
	LIMIT_SCOPE_REQUESTS = MAX_SCOPE_REQUESTS,
	LIMIT_SCOPE_ANSWERS = MAX_SCOPE_ANSWERS,
	LIMIT_SCOPE_FILES = MAX_SCOPE_FILES,
	LIMIT_SCOPE_CONFINED = MAX_SCOPE_CONFINED,
};

_Static_assert(sizeof(struct row) == 320, "row");
_Static_assert(sizeof(struct clause) == 56, "clause");
_Static_assert(sizeof(struct gate_ref) == 8, "gate_ref");
_Static_assert(sizeof(struct file_key) == 24, "file_key");
_Static_assert(sizeof(struct record) == 448, "record");
_Static_assert(sizeof(struct origin) == 504, "origin");
_Static_assert(sizeof(struct request_key) == 32, "request_key");
_Static_assert(sizeof(struct answer_change) == 40, "answer_change");
_Static_assert(sizeof(struct lost_key) == 16, "lost_key");

#endif
