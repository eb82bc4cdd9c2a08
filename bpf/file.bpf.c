// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/*
 * Files: opening, reading and writing through descriptors that are already open.
 */

#define FMODE_READ 0x1
#define FMODE_CREATED 0x100000
#define OPEN_FOR_EXEC 0x20 /* __FMODE_EXEC in f_flags; user space cannot set it */
#define O_RDWR 02
#define O_ACCMODE 03
#define O_TRUNC 01000

/* The self-test opens a file that only the daemon knows, as a process in setup. The
 * record tells the row found, so that the daemon can compare it with its own. */
static __always_inline bool probe(struct act *act, struct file *file)
{
	struct scope_files *known = files_of(act);

	/* The number first, though same_file compares it too: it is read directly here, and
	 * spares the probes of same_file, on each open. */
	if (!known || file->f_inode->i_ino != known->probe.ino ||
	    !same_file(file->f_inode, &known->probe))
		return false;
	if (!acquire(act))
		return true;
	act->row = locate_file(act, file);
	act->effect = EFFECT_BLOCK;
	act->op = OP_OPEN;
	emit(act, RECORD_PROBE);
	release(act);
	return true;
}

/* Linux empties a file on O_RDONLY | O_TRUNC as well. */
static __always_inline bool open_writes(u32 mode, u32 flags)
{
	return mode & FMODE_WRITE || flags & O_TRUNC;
}

/* open_ops returns the operations that opening FILE is. What path_mknod has decided
 * for a new file is left out. */
static __always_inline u32 open_ops(u32 mode, u32 flags)
{
	u32 ops = mode & FMODE_CREATED ? 0 : BIT(OP_OPEN);

	if (mode & FMODE_READ)
		ops |= BIT(OP_READ);
	if (!open_writes(mode, flags) || mode & FMODE_CREATED)
		return ops;
	if (flags & O_APPEND && !(flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDWR)
		return ops | BIT(OP_APPEND);
	return ops | BIT(OP_WRITE);
}

/* lost_labels are those of integrity that the process does not have, by what it has just
 * gained. */
static __always_inline u64 lost_labels(struct act *act)
{
	struct image *head = image_at(act->image);
	struct process *process = head && head->integrity ? current_process() : NULL;

	return process ? head->integrity & ~process->labels : 0;
}

/* What a use of a descriptor was decided with. */
static __always_inline bool use_now(struct act *act, struct file *file, u32 ops,
				    struct last_use *now)
{
	struct scope *scope = scope_at(act->slot);
	struct host *host = host_state();

	if (!scope || !host)
		return false;
	now->inode = (u64)BPF_CORE_READ(file, f_inode);
	now->dentry = (u64)BPF_CORE_READ(file, f_path.dentry);
	now->mount = (u64)BPF_CORE_READ(file, f_path.mnt);
	now->labels = act->labels & ~lost_labels(act);
	now->clock = scope->clock;
	now->changes = host->changes;
	now->freed = host->freed;
	now->image = act->image;
	now->ops = ops;
	return true;
}

__noinline int remember_use(struct act *act, u64 file, u32 ops)
{
	struct thread *thread = new_thread_state();
	struct last_use now = {};

	if (act && thread && use_now(act, (void *)file, ops, &now))
		thread->last_use = now;
	return 0;
}

static __always_inline struct opened_use opened_use(struct last_use *use)
{
	struct opened_use opened = {
		.id = file_id((void *)use->inode),
		.labels = use->labels,
		.clock = use->clock,
		.changes = use->changes,
		.image = use->image,
		.ops = use->ops,
	};

	return opened;
}

static __always_inline bool opened_key(u64 file, struct opened_key *key)
{
	struct process *process = current_process();

	key->file = file;
	key->process = process ? process->id : 0;
	return process;
}

/* remember_opened remembers an open that has moved gates or lost labels: another thread
 * that uses the descriptor would be refused by that. */
__noinline int remember_opened(struct act *act, u64 file, u32 ops)
{
	struct last_use now = {};
	struct opened_key key;
	struct opened_use use;

	if (!act || !use_now(act, (void *)file, ops, &now) || !opened_key(file, &key))
		return 0;
	use = opened_use(&now);
	bpf_map_update_elem(&opened_uses, &key, &use, BPF_ANY);
	return 0;
}

/* remembered_opened tells whether a use is what was opened, with nothing changed since. */
static __always_inline bool remembered_opened(u64 file, struct last_use *now)
{
	struct opened_use use = opened_use(now), *opened;
	struct opened_key key;

	if (!opened_key(file, &key))
		return false;
	opened = bpf_map_lookup_elem(&opened_uses, &key);
	return opened && use.id.ino == opened->id.ino && use.id.dev == opened->id.dev &&
	       use.id.generation == opened->id.generation && use.labels == opened->labels &&
	       use.clock == opened->clock && use.changes == opened->changes &&
	       use.image == opened->image && !(use.ops & ~opened->ops);
}

static __always_inline void remember(struct act *act, struct file *file, u32 ops)
{
	remember_use(act, number_of(file), ops);
}

__noinline int remembered_use(struct act *act, u64 file, u32 ops)
{
	struct thread *thread = thread_state();
	struct last_use now = {}, *last;

	if (!act || !use_now(act, (void *)file, ops, &now))
		return 0;
	last = thread ? &thread->last_use : NULL;
	if (last && now.inode == last->inode && now.dentry == last->dentry &&
	    now.mount == last->mount && now.labels == last->labels && now.clock == last->clock &&
	    now.changes == last->changes && now.freed == last->freed && now.image == last->image &&
	    !(ops & ~last->ops))
		return true;
	return remembered_opened(file, &now);
}

static __always_inline bool remembered(struct act *act, struct file *file, u32 ops)
{
	return remembered_use(act, number_of(file), ops);
}

/* asks_again tells whether using a descriptor can be decided on again. */
static __always_inline bool asks_again(struct act *act)
{
	struct image *head = image_at(act->image);

	return (head && head->fd_ops) || follows_labels(act);
}

/* flow moves labels between process and file after an allowed open. Who lists a folder
 * reads it. */
static __always_inline void flow(struct act *act, struct file *file, u32 row, u32 mode, bool writes)
{
	u64 inode = (u64)BPF_CORE_READ(file, f_inode);
	u64 sources = row_sources(act->image, row), marks = row_marks(act->image, row);
	u16 type = BPF_CORE_READ((struct inode *)inode, i_mode) & S_IFMT;
	u64 gained;

	if (sources || (writes && act->labels))
		render_later(act, file);
	if (mode & FMODE_READ && (type == S_IFREG || type == S_IFDIR)) {
		gained = gain(act, act->labels);
		if (gained) {
			render_later(act, file);
			note_file(act, gained, sources, inode);
		}
	}
	if (type != S_IFREG)
		return;
	/* Another name of what is protected is one that is known, or that is made. */
	if (marks && BPF_CORE_READ((struct inode *)inode, i_nlink) < 2)
		marks = 0;
	if (mode & FMODE_CREATED)
		marks |= FILE_CREATED;
	if (sources | marks)
		mark_file(act, inode, sources, marks);
	if (writes) {
		mark_file(act, inode, act->labels, FILE_MODIFIED);
		end_version(inode);
	}
}

static __always_inline u64 gates_clock(struct act *act)
{
	struct scope *scope = scope_at(act->slot);

	return scope ? scope->clock : 0;
}

/* remember_open remembers what a file was opened for; BEGAN is the gates' clock before. To
 * create a file to append to it is to write to it, and what is written then is part of
 * that; see open_ops. */
__noinline int remember_open(struct act *act, u64 opened, u32 ops, u64 began)
{
	struct file *file = (void *)opened;
	u32 mode = BPF_CORE_READ(file, f_mode), flags = BPF_CORE_READ(file, f_flags);
	bool writes = open_writes(mode, flags), created = mode & FMODE_CREATED && writes;

	if (!act)
		return 0;
	if (created)
		ops |= open_ops(mode & ~FMODE_CREATED, flags) | BIT(OP_WRITE);
	if (writes)
		ops |= BIT(NUM_OPS);
	remember_use(act, opened, ops);
	if (created || act->labels & lost_labels(act) || gates_clock(act) != began)
		remember_opened(act, opened, ops);
	return 0;
}

static __always_inline void judge_open(struct act *act, struct file *file, u32 mode)
{
	struct inode *inode = file->f_inode;
	u32 flags = file->f_flags;
	u32 ops = open_ops(mode, flags);
	u32 row = find_file(act, file, ops);
	u64 sources = row_sources(act->image, row), began = gates_clock(act);

	act->inode = number_of(inode);
	if (mode & FMODE_READ && follows_labels(act))
		bring(act, sources | (mode & FMODE_CREATED ? 0 : file_labels(act, inode)));
	judge(act, row, ops);
	judge_kept(act, ops);
	judge_other_mounts(act, number_of(file->f_path.mnt), number_of(file->f_path.dentry), ops);
	if (act->effect != EFFECT_ALLOW)
		render_later(act, file);
	if (denied(act))
		return;
	flow(act, file, row, mode, open_writes(mode, flags));
	move_all_gates(act, row, ops, number_of(file->f_path.mnt), number_of(file->f_path.dentry));
	if (asks_again(act))
		remember_open(act, number_of(file), ops, began);
}

#define ENVIRON 0x006e6f7269766e65ULL /* "environ" */
#define MEM 0x006d656dU		      /* "mem" */

/* is_memory tells /proc/PID/environ and /proc/PID/mem. */
static __always_inline bool is_memory(struct file *file)
{
	const unsigned char *name;
	u64 text = 0;

	if (file->f_inode->i_sb->s_magic != PROC_MAGIC)
		return false;
	name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	if (BPF_CORE_READ(file, f_path.dentry, d_name.len) == 7)
		bpf_probe_read_kernel(&text, 8, name);
	else if (BPF_CORE_READ(file, f_path.dentry, d_name.len) == 3)
		bpf_probe_read_kernel(&text, 4, name);
	return text == ENVIRON || text == MEM;
}

/* look_later notes what is opened for where the kernel asks whether the process may look
 * into the other one; see watch. */
static __always_inline void look_later(struct act *act, struct file *file)
{
	struct thread *thread;

	if (!is_memory(file) || denied(act) || !follows_labels(act))
		return;
	thread = new_thread_state();
	if (thread)
		thread->looking = number_of(file->f_inode);
	else
		refuse(act, OP_OPEN, REASON_NO_MEMORY);
}

/* A POSIX queue of messages: no hook sees what is put in and taken out. */
static __always_inline bool is_queue(struct file *file)
{
	return file->f_inode->i_sb->s_magic == MQUEUE_MAGIC &&
	       (file->f_inode->i_mode & S_IFMT) == S_IFREG;
}

/* The kernel knows the type of FILE here, so that it is looked at directly. */
static __always_inline bool on_file_open(struct file *file)
{
	struct act act = {};
	enum membership membership = enter(&act);
	u32 mode = file->f_mode;
	bool queue;

	if (membership != INSIDE)
		return membership == REFUSED;
	if (file->f_flags & OPEN_FOR_EXEC)
		note_opened(&act, number_of(file->f_inode));
	if (mode & FMODE_NOACCOUNT)
		return false;
	if (file->f_flags & OPEN_FOR_EXEC)
		return open_for_exec(&act, number_of(file));
	if (probe(&act, file))
		return true;
	queue = is_queue(file);
	if (in_setup(&act) || (queue && !follows_labels(&act)) ||
	    (!queue && is_internal(BPF_CORE_READ(file, f_path.mnt))))
		return false;
	if (!acquire(&act))
		return true;
	if (queue)
		refuse(&act, OP_OPEN, REASON_UNFOLLOWED);
	else
		judge_open(&act, file, mode);
	look_later(&act, file);
	return end(&act);
}
TWIN(file_open, (struct file * file), (file))

#define X86_IO_URING_ENTER 426

/* plain_write tells the system calls that write where the descriptor says. Others can be told
 * not to append (pwritev2, AIO), or do not write by a position at all (fallocate); what
 * a worker of the kernel's does for somebody is not to be seen. */
static __always_inline bool plain_write(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 number = syscall_number();

	if (is_worker(task))
		return false;
	if (is_compat(task))
		return number == 4 /* write */ || number == 146 /* writev */ ||
		       number == 181 /* pwrite64 */;
	return number == 1 /* write */ || number == 18 /* pwrite64 */ ||
	       number == 20 /* writev */ || number == 296 /* pwritev */;
}

/* appends tells whether writing through FILE can only append. */
static __always_inline bool appends(struct file *file)
{
	return BPF_CORE_READ(file, f_flags) & O_APPEND && plain_write();
}

/* use_ops returns what a use of a descriptor is to be decided on again, because
 * labels or gates may have changed since it was opened. */
static __always_inline u32 use_ops(struct act *act, struct file *file, int mask)
{
	struct image *head = image_at(act->image);
	u32 ops = 0;

	if (mask & MAY_READ)
		ops |= BIT(OP_READ);
	if (mask & MAY_WRITE)
		ops |= appends(file) ? BIT(OP_APPEND) : BIT(OP_WRITE);
	return head ? ops & head->fd_ops : ops;
}

/* used adds to a set of operations a bit of its own for the flow into the file. */
static __always_inline u32 used(u32 ops, int mask)
{
	return mask & MAY_WRITE ? ops | BIT(NUM_OPS) : ops;
}

/* read_opened gives the process the labels of a file that it reads through a descriptor. */
__noinline int read_opened(struct act *act, u64 opened, u32 row)
{
	struct file *file = (void *)opened;
	u64 gained = act ? gain(act, act->labels) : 0;

	if (!gained)
		return 0;
	name_opened(act, opened);
	note_file(act, gained, row_sources(act->image, row), (u64)BPF_CORE_READ(file, f_inode));
	return 0;
}

static __always_inline u8 use_of(struct file *file)
{
	return BPF_CORE_READ(file, f_mode) & FMODE_WRITE ? USED_WRITABLE : USED;
}

/* judge_use: opening the file has been reported, so that only a refusal is new. */
static __always_inline void judge_use(struct act *act, struct file *file, u32 ops, int mask)
{
	u32 row = ops ? locate_file(act, file) : ROW_NONE;

	act->used = use_of(file);
	act->inode = (u64)BPF_CORE_READ(file, f_inode);
	judge(act, row, ops);
	judge_kept(act, ops);
	if (denied(act))
		return;
	act->effect = EFFECT_ALLOW;
	if (mask & MAY_READ)
		read_opened(act, number_of(file), row);
	if (mask & MAY_WRITE)
		mark_file(act, (u64)BPF_CORE_READ(file, f_inode), act->labels, FILE_MODIFIED);
	move_all_gates(act, row, ops, (u64)BPF_CORE_READ(file, f_path.mnt),
		       (u64)BPF_CORE_READ(file, f_path.dentry));
	remember(act, file, used(ops, mask));
}

#define X86_READ 0
#define X86_READV 19

/* use_socket: what is read of a socket through its file has a hook of its own, but not
 * what splice takes. */
static __always_inline bool use_socket(struct act *act, struct file *file, int mask)
{
	struct socket *sock = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(sock, sk);
	u64 number = syscall_number();

	if (mask & MAY_READ && number != X86_READ && number != X86_READV && receive(act, (u64)sk))
		return true;
	return mask & MAY_WRITE && write_socket(act, (u64)sk);
}

/* use_inode moves labels through pipes and memfds, which are no objects of rules. */
static __always_inline void use_inode(struct act *act, struct inode *inode, int mask)
{
	struct file_id id = file_id(inode);

	through_channel(act, id.ino, id_where(&id), mask);
}

/* judge_again decides on using a descriptor of a file, unless it is as it was. */
__noinline int judge_again(struct act *act, u64 descriptor, u32 mask)
{
	struct file *file = (void *)descriptor;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	u32 ops;

	if (!act)
		return 1;
	if (mask & MAY_READ)
		bring(act, file_labels(act, inode));
	ops = use_ops(act, file, mask);
	if (!ops && !act->labels)
		return 0;
	if (remembered(act, file, used(ops, mask)))
		return 0;
	if (!acquire(act))
		return 1;
	judge_use(act, file, ops, mask);
	return end(act);
}

/* use_other is a use of what is no file that rules name; it returns whether it is
 * refused. */
__noinline int use_other(struct act *act, u64 opened, u32 mask)
{
	struct file *file = (void *)opened;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	u16 type = inode_type(inode);

	if (!act)
		return 1;
	if (type == S_IFSOCK) {
		if (use_socket(act, file, mask))
			return 1;
		if (mask & MAY_READ && follows_labels(act))
			fill_pipe(act, PASSES);
		return 0;
	}
	if (!follows_labels(act) || is_anonymous(file))
		return 0;
	if (type == S_IFCHR && is_terminal(inode))
		use_terminal(act, opened, mask);
	else if (type == S_IFIFO || type == S_IFREG)
		use_inode(act, inode, mask);
	else
		return 0;
	if (mask & MAY_READ)
		fill_pipe(act, PASSES);
	return 0;
}

/* Attached only while some live policy tests labels, or has clauses or gates that a
 * descriptor must be asked about again. */
static __always_inline bool on_file_permission(struct file *file, int mask)
{
	struct act act = {};
	enum membership membership = enter(&act);

	if (membership != INSIDE || in_setup(&act))
		return membership == REFUSED;
	if (BPF_CORE_READ(file, f_mode) & FMODE_NOACCOUNT ||
	    BPF_CORE_READ(file, f_flags) & OPEN_FOR_EXEC) /* the kernel reads a program */
		return false;
	if (inode_type(BPF_CORE_READ(file, f_inode)) != S_IFREG ||
	    is_internal(BPF_CORE_READ(file, f_path.mnt)))
		return use_other(&act, number_of(file), mask);
	if (judge_again(&act, number_of(file), mask))
		return true;
	if (mask & MAY_READ && act.labels)
		fill_pipe(&act, FILLS);
	return false;
}
TWIN(file_permission, (struct file * file, int mask), (file, mask))
