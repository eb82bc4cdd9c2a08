/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every other file needs: kernel types, helpers, the ABI, and the buffers
 * of a program and of a thread. */
#ifndef ACTPLANE_PRELUDE_H
#define ACTPLANE_PRELUDE_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "abi.h"

#define EPERM 1
#define ERESTARTNOINTR 513
#define SIGKILL 9

/* Clang knows when a value is small and drops a plain "&", and with it the proof
 * that the verifier wants to see. */
#define BOUND(variable, mask) asm volatile("%0 &= %1" : "+r"(variable) : "i"(mask))

/* number_of turns a pointer that the verifier knows into a number, which is all that
 * a function that is not static can be given; behind it everything is read with
 * probes. */
static __always_inline u64 number_of(const void *pointer)
{
	u64 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), &pointer);
	return number;
}

/* How a program of one level of an exec (a script, then its interpreter) was
 * matched, until the kernel has completed the exec or given it up. */
struct exec_level {
	u64 labels; /* L: the process's and the program's, sources included */
	u64 inode;
	u32 row;      /* by resolved path: two, see ROW_BITS */
	u32 name_row; /* by the name invoked */
	s32 argc;     /* the kernel's count at this level */
	u32 foreign;  /* the reason for which it opens nothing, or 0 */
	u32 exempt;   /* the guest: the rules do not apply to it */
	u32 pad;
	u64 object[2]; /* sum of the path, if the image asks */
};

/* What the kernel maps with a program, to load the rest of it (PT_INTERP). */
struct exec_loader {
	u64 labels; /* as of a level */
	u32 row;
	u32 foreign;
};

struct exec_state {
	u32 image; /* that the rows below are of */
	u32 levels;
	u32 elf;     /* the last program may have a loader */
	u32 by_link; /* a link that was made inside led to what interprets or loads them */
	struct exec_loader loader;
	u64 opened; /* the inode of the last file that was opened for it; of an overlay's, that
		     * of its layer */
	u32 unsafe; /* the kernel's own word on who can interfere */
	u32 pad2;
	u32 args_read; /* all of argv has been seen */
	u32 args_size;
	u32 args_cut;
	u32 pad;
	struct arg_set reached; /* argv positions */
	struct exec_level level[MAX_EXEC_LEVELS];
};

/* The last use of a descriptor that was found allowed: the same again needs no
 * second look. */
struct last_use {
	u64 dentry, mount, inode;
	u64 labels, clock;
	u32 changes, image;
	u32 ops; /* bit set */
	u32 freed;
};

/* The same of a descriptor whose opening has itself changed what it would be decided with
 * again, and which is used by any thread of the process. */
struct opened_key {
	u64 file; /* its address */
	u64 process;
};

struct opened_use {
	struct file_id id;
	u64 labels, clock;
	u32 changes, image;
	u32 ops; /* bit set */
	u32 pad;
};

/* A grant that the current operation uses. It is given back if the operation is
 * refused after all. */
struct lifted {
	u64 sum[2];
	u64 use[2]; /* of struct granted_use; 0: none */
	u32 clause;
	u8 reason;
	u8 op;
	u8 counted;
	u8 pad;
};

/* A clause or a default that asks. */
struct ask {
	u32 clause, rule, hold;
	u8 op;
	u8 reason;
	u8 pad[2];
};

struct sip {
	u64 v[4];
};

/* argv and environment of an exec, as read before it, or from what the kernel took:
 * the first string by itself, since a script's interpreter does not get it. */
struct strings_sum {
	u64 first[2];
	u64 rest[2];
};

/* A list of strings, as struct arg_stream is one. */
struct string_walk {
	u64 vector; /* the array of pointers; 0: strings one after the other */
	u64 next;
	u32 index, count;
	u32 first, skip; /* the one that is summed by itself, and those that are not */
	u32 compat;
	u32 inside, done;
};

struct ask_state {
	struct sip sip, other;
	/* Not on the stack: the verifier would follow what it knows of the numbers
	 * through every step. */
	struct string_walk walk;
	u64 ended[2];
	u64 object[2];
	u64 sum[2]; /* the ask's that is being decided */
	u64 use[2];
	u64 deciding[2]; /* the ask's that decides */
	u64 script[4];	 /* the file of the first program of an exec */
	u64 who;
	struct file_id directory;
	struct strings_sum strings;
	u64 from; /* where the strings are that the kernel took; 0: not yet */
	u32 args, env, skip;
	u32 strings_known;
	u32 matching[MAX_LIFTED]; /* asks of the operation that is being decided */
	struct ask ask;
	u32 hold;    /* of the ask that decides, ms */
	u32 restart; /* the system call is to be made again */
	u32 count;
	u32 matches; /* how many of them are in matching */
	struct lifted lifted[MAX_LIFTED];
};

/* Something shared that has gained labels, which others must gain now. */
struct growth {
	u64 share; /* its number in struct sharer */
	u64 labels;
};

#define MAX_GROWTHS 16

/* What a program needs to find and make an entry of the table of files: the stack is
 * too small for it. */
struct marking {
	struct file_key key;
	struct file_state fresh;
	struct file_owners owners;
	u64 shared; /* others get what was gained last */
};

/* Of a thread, since it is needed in more than one hook of one system call, or
 * while a program sleeps. */
struct thread {
	char key[ARG_PIECE + 64]; /* a piece of argv, and zeros behind it */
	struct exec_state exec;
	struct last_use last_use, this_use;
	struct ask_state ask;
	struct shared_wait wait; /* what it read last */
	u32 wait_slot;		 /* where its sharer has that, plus one */
	u32 growths_count;
	struct growth growths[MAX_GROWTHS];
	struct growth growing; /* the one that is carried on */
	struct marking marking;
	struct file_id copied; /* the hard link that an overlay copies up, or ino 0 */
	u64 links;	       /* file system in which it makes a link whose target has labels */
	u64 looking;	       /* inode of another process's memory in /proc, which it opens */
	u64 making;	       /* the dentry of a symbolic link that is made */
	char args[ARGS_SIZE + ARG_PIECE];
};

/* A dentry's directory and name, as they lie side by side in every kernel so far. */
struct dentry_name {
	u64 parent;
	u32 hash, length;
	u64 name;
};

/*
 * Of a program, while it runs; see acquire. Two buffers, since kernels from 7.0 on
 * give a task no storage of more than 8 KiB.
 */
struct scratch {
	u64 busy;
	u64 root;		 /* of the mount through which a path leads */
	struct dentry_name read; /* where it has come to */
	u64 base;		 /* where the last name of the path begins */
	struct path_key key;	 /* of the file that is opened; see known.bpf.h */
	u32 matches;		 /* clauses that matched so far */
	u16 matching[MAX_MATCHES];
	/* A path is written from the end towards the start, and ends before
	 * PATH_SIZE - 1. What is behind it stays zero: the automaton reads 64
	 * bytes at a time. */
	char path[PATH_SIZE + NAME_SIZE];
	char name[NAME_SIZE + 64]; /* other keys, and zeros behind them */
};

/* A record as it is written out, one part after the other. */
struct output {
	struct record record;
	char data[PATH_SIZE + ARGS_SIZE];
};

#endif
