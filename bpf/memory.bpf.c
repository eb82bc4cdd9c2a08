// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/* Memory that is shared: by mapping files, and by looking into other processes. */

#define PROT_EXEC 4

static __always_inline bool in_exec(void)
{
	u64 number = syscall_number();

	return number == X86_EXECVE || number == X86_EXECVEAT || number == X86_COMPAT_EXECVE ||
	       number == X86_COMPAT_EXECVEAT;
}

#define MAP_SHARED 1 /* MAP_SHARED_VALIDATE has this bit too, MAP_PRIVATE has not */

/* judge_code decides on a program that is mapped to be run by something else than exec,
 * as a loader does when it is told "ld.so /usr/bin/git". What argv will be is not known. */
static __always_inline void judge_code(struct act *act, struct file *file)
{
	struct image *head = image_at(act->image);
	u32 row;

	if (head && !(head->ops & USES_CODE))
		return;
	act->inode = (u64)BPF_CORE_READ(file, f_inode);
	act->mapped = 1;
	row = locate(act, (u64)BPF_CORE_READ(file, f_path.mnt),
		     (u64)BPF_CORE_READ(file, f_path.dentry), OF_PROGRAM);
	act->targets = row_targets(act->image, row);
	decide(act, row, OP_EXEC, ARGS_MAPPED);
	act->mapped = 0;
}

/* run_code: who runs code that was made inside is not the program that it was. What the
 * kernel maps for an exec that is not committed yet is the next program's. */
static __always_inline void run_code(struct act *act, struct file *file)
{
	struct process *process = current_process();
	struct thread *thread = thread_state();

	act->inode = (u64)BPF_CORE_READ(file, f_inode);
	act->object_kind = OBJECT_PATH;
	if (!process || file_modified(act) == MODIFIED_NO)
		return;
	if (in_exec() && thread && thread->exec.levels) {
		thread->exec.loader.foreign = REASON_FOREIGN_FILE;
		return;
	}
	note_gates(act, take_back(process), GATE_CLOSED, 0);
	give_again(act, process);
}

/*
 * judge_map decides on a mapping as on a use of the descriptor, and lists it: no hook
 * sees what is loaded and stored. A private one shows what others write to the file, too.
 * One that may become writable counts as written.
 */
static __always_inline void judge_map(struct act *act, struct file *file, bool writes)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct file_id id = file_id(inode);
	u32 mask = writes ? MAY_READ | MAY_WRITE : MAY_READ, ops = 0, row = ROW_NONE;
	struct sharer *sharer = own_sharer(act);

	if (!sharer) {
		refuse(act, OP_READ, REASON_NO_MEMORY);
		return;
	}
	map_read(sharer, id_number(&id, SHARE_FILE));
	mark_file(act, number_of(inode), 0, FILE_SHARED);
	bring(act, file_labels(act, inode));
	if (!is_internal(BPF_CORE_READ(file, f_path.mnt)))
		ops = use_ops(act, file, mask);
	if (ops)
		row = locate_file(act, file);
	act->inode = number_of(inode);
	act->used = use_of(file);
	if (!remembered(act, file, ops)) {
		judge(act, row, ops);
		judge_kept(act, ops);
	}
	if (denied(act))
		return;
	act->effect = EFFECT_ALLOW;
	read_opened(act, number_of(file), row);
	if (writes) {
		map_write(sharer, &id);
		mark_file(act, act->inode, act->labels, FILE_MODIFIED);
		hold_gates(act, sharer, row);
	}
	move_all_gates(act, row, ops, (u64)BPF_CORE_READ(file, f_path.mnt),
		       (u64)BPF_CORE_READ(file, f_path.dentry));
}

/* share_memory: what has no file is shared with the children. */
static __always_inline void share_memory(struct act *act)
{
	struct process *process = current_process();
	struct sharer *sharer = own_sharer(act);

	if (process && sharer)
		join(sharer, share_number(process->id, 0, SHARE_GROUP), false);
	else
		refuse(act, OP_WRITE, REASON_NO_MEMORY);
}

#define RING_NAME 0x5d676e6972755f6fULL /* "o_uring]", the end of "[io_uring]" */

/* is_ring tells an io_uring by the name that the kernel gives to its files. */
static __always_inline bool is_ring(struct file *file)
{
	const unsigned char *name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	u64 end = 0;

	bpf_probe_read_kernel(&end, sizeof(end), name + 2);
	return BPF_CORE_READ(file, f_path.dentry, d_name.len) == 10 && end == RING_NAME;
}

/*
 * map_ring: the memory of an io_uring, by which operations are asked for, is a file that
 * all who map it write and read; each has an inode. Where a thread of the kernel's does what
 * is asked for, it does so as who made the ring: others may not ask it.
 */
static __always_inline void map_ring(struct act *act, struct file *file)
{
	struct io_ring_ctx *ring = BPF_CORE_READ(file, private_data);
	struct io_sq_data *polled = BPF_CORE_READ(ring, sq_data);
	struct file_id id = file_id(BPF_CORE_READ(file, f_inode));
	struct sharer *sharer = own_sharer(act);
	u64 labels;

	if (!sharer) {
		refuse(act, OP_WRITE, REASON_NO_MEMORY);
		return;
	}
	if (polled && (u32)BPF_CORE_READ(polled, task_tgid) != bpf_get_current_pid_tgid() >> 32) {
		refuse(act, OP_WRITE, REASON_UNFOLLOWED);
		return;
	}
	map_read(sharer, id_number(&id, SHARE_FILE));
	map_write(sharer, &id);
	labels = gain(act, channel_labels(act, &id));
	note_gain(act, labels, WAY_SHARED_FILE, id.ino, id_where(&id));
	labels = carried(act);
	if (!labels)
		return;
	mark(act, &id, labels, 0);
	grow(act, id_number(&id, SHARE_FILE), labels);
}

static __always_inline bool is_zero(struct inode *inode)
{
	return inode_type(inode) == S_IFCHR &&
	       BPF_CORE_READ(inode, i_rdev) == (MEM_MAJOR << 20 | 5);
}

static __always_inline void map(struct act *act, struct file *file, bool shared)
{
	struct image *head = image_at(act->image);
	bool writes = shared && BPF_CORE_READ(file, f_mode) & FMODE_WRITE;

	if (head && !head->labels && !head->fd_ops)
		return;
	if (inode_type(BPF_CORE_READ(file, f_inode)) == S_IFREG && !is_anonymous(file))
		judge_map(act, file, writes);
	else if (shared && is_anonymous(file) && is_ring(file))
		map_ring(act, file);
	else if (shared && (is_zero(BPF_CORE_READ(file, f_inode)) || is_anonymous(file)))
		share_memory(act);
}

/* GIVEN may be NULL, which kernels from 7 on let nobody add to. */
static __always_inline bool on_mmap_file(struct file *given, unsigned long prot,
					 unsigned long flags)
{
	bool shared = flags & MAP_SHARED, refused;
	u64 mapped = number_of(given);
	struct file *file = (void *)mapped;
	struct act act = {};

	if (!mapped && !shared)
		return false;
	if (!begin(&act, &refused))
		return refused;
	if (!mapped) {
		if (follows_labels(&act))
			share_memory(&act);
		return end(&act);
	}
	if (prot & PROT_EXEC && !is_internal(BPF_CORE_READ(file, f_path.mnt)))
		run_code(&act, file);
	if (!in_exec()) { /* what an exec maps is the exec's business */
		if (prot & PROT_EXEC && !is_internal(BPF_CORE_READ(file, f_path.mnt)))
			judge_code(&act, file);
		if (!denied(&act))
			map(&act, file, shared);
	}
	return end(&act);
}
/* The hook has an argument more than the function that calls it. */
TWIN_BODY(lsm_mmap_file, "lsm/mmap_file",
	  (struct file * file, unsigned long requested, unsigned long prot, unsigned long flags),
	  on_mmap_file(file, prot, flags))
TWIN_BODY(mod_mmap_file, "fmod_ret/security_mmap_file",
	  (struct file * file, unsigned long prot, unsigned long flags),
	  on_mmap_file(file, prot, flags))

#define PTRACE_MODE_ATTACH 2
#define PTRACE_MODE_NOAUDIT 4

#define X86_PTRACE 101
#define X86_PROCESS_VM_READV 310
#define X86_PROCESS_VM_WRITEV 311
#define X86_PIDFD_GETFD 438

/* only_reads tells whether the system call that asks for another process's memory only
 * reads it. */
static __always_inline bool only_reads(void)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 number = syscall_number();

	if (number == X86_OPENAT)
		return !(BPF_CORE_READ(regs, dx) & O_ACCMODE);
	if (number == X86_OPEN)
		return !(BPF_CORE_READ(regs, si) & O_ACCMODE);
	return number == X86_PROCESS_VM_READV || number == X86_PIDFD_GETFD;
}

/* tie: from now on each of two processes gets what the other has, whatever they run:
 * one traces the other, or has its memory open. */
static __always_inline void tie(struct act *act, struct process *other)
{
	u64 group = share_number(other->id, 1, SHARE_GROUP);
	struct sharer *theirs = sharer_for(act, other), *own = own_sharer(act);

	if (!own || !theirs) {
		refuse(act, OP_OPEN, REASON_NO_MEMORY);
		return;
	}
	join(own, group, true);
	join(theirs, group, true);
	grow(act, group, (other->labels | act->labels) & everything(act));
}

static __always_inline void write_into(struct act *act, struct process *other)
{
	struct sharer *theirs = sharer_for(act, other);
	struct scope *scope = scope_at(act->slot);

	if (!theirs || !scope) {
		refuse(act, OP_WRITE, REASON_NO_MEMORY);
		return;
	}
	note_passed(act, act->labels & everything(act) & ~theirs->labels & ~theirs->cleared,
		    WAY_INTO, other->id);
	gave(act, theirs, other->id, act->labels);
	__sync_fetch_and_add(&scope->growth, 1);
}

static __always_inline void look_into(struct act *act, struct process *other)
{
	u64 gained = gain(act, other->labels);

	if (gained)
		note_gain(act, gained, WAY_INTO, other->id, 0);
}

/* opened_into returns the inode of the file in /proc by which the thread opens the memory of
 * a task, or 0. */
static __always_inline u64 opened_into(struct task_struct *target)
{
	struct thread *thread = thread_state();
	struct proc_inode *opened;
	u64 inode = thread ? thread->looking : 0;

	if (!inode)
		return 0;
	thread->looking = 0;
	opened = (void *)inode - bpf_core_field_offset(struct proc_inode, vfs_inode);
	return BPF_CORE_READ(opened, pid) == BPF_CORE_READ(target, thread_pid) ? inode : 0;
}

/*
 * watch: what is read through a file in /proc later, by whoever has it then, is the memory
 * of another process, which is listed as if it had mapped the file. WRITES: what is
 * written to it goes there.
 */
__noinline int watch(struct act *act, u64 id, u64 inode, u32 writes)
{
	struct sharer *theirs = bpf_map_lookup_elem(&sharers, &id);
	struct file_id file;

	if (!act || !theirs || !inode)
		return 0;
	file = file_id((void *)inode);
	map_write(theirs, &file);
	if (writes)
		map_read(theirs, id_number(&file, SHARE_FILE));
	full_barrier(&theirs->passes);
	add_to_file(act, inode, *(volatile u64 *)&theirs->labels, FILE_SHARED);
	return 0;
}

/* reach_into moves labels between a process and one that it looks into. What can't be
 * told apart, as an open of /proc/PID/mem, goes both ways for good. */
static __always_inline void reach_into(struct act *act, struct process *other, u32 mode)
{
	u64 number = syscall_number();

	if (!(mode & PTRACE_MODE_ATTACH)) {
		/* Of opens, /proc/PID/environ and its like. */
		if (opening() || number == X86_IO_URING_ENTER ||
		    is_worker(bpf_get_current_task_btf()))
			look_into(act, other);
		return;
	}
	if (number == X86_PROCESS_VM_READV || number == X86_PIDFD_GETFD)
		look_into(act, other);
	else if (number == X86_PROCESS_VM_WRITEV)
		write_into(act, other);
	else
		tie(act, other);
}

static __always_inline bool in_same_scope(struct act *act, struct process *other)
{
	return other && other->scope == act->slot && other->generation == act->generation;
}

/* less_confined tells whether rules that were added for the current process do not hold
 * for another one, by whose hands it would act. */
static __always_inline bool less_confined(struct act *act, struct process *other)
{
	struct image *head = image_at(act->image);

	return head && act->labels & head->confines & ~other->labels;
}

/* A process in setup still has the host's files open, and what is outside of the
 * scope is not for the scope's processes to look into. */
static __always_inline bool on_ptrace_access_check(struct task_struct *target, unsigned int mode)
{
	struct act act = {};
	struct process *other;
	bool refused;
	u64 opened;

	if (!begin(&act, &refused))
		return refused;
	other = process_of(target);
	if (!in_same_scope(&act, other) || other->flags & PROCESS_SETUP)
		refuse(&act, OP_OPEN, REASON_SETUP_TRACE);
	else if (mode & PTRACE_MODE_ATTACH && less_confined(&act, other))
		refuse(&act, OP_OPEN, REASON_LESS_CONFINED);
	/* Who is traced or written to is not the program that ran any more. What it had
	 * cleared comes to it again, also from who traces it. */
	if (other && mode & PTRACE_MODE_ATTACH && !(mode & PTRACE_MODE_NOAUDIT) && !denied(&act) &&
	    !only_reads()) {
		note_gates(&act, take_back(other), GATE_CLOSED, 0);
		give_again(&act, other);
	}
	if (!denied(&act) && other && other != current_process() && !(mode & PTRACE_MODE_NOAUDIT) &&
	    follows_labels(&act)) {
		reach_into(&act, other, mode);
		opened = opened_into(target);
		if (opened && !denied(&act) && sharer_for(&act, other))
			watch(&act, other->id, opened, mode & PTRACE_MODE_ATTACH);
		else if (opened)
			refuse(&act, OP_OPEN, REASON_NO_MEMORY);
	}
	/* A look at what /proc tells of all processes is nothing to report. */
	if (mode & PTRACE_MODE_NOAUDIT || !(mode & PTRACE_MODE_ATTACH)) {
		release(&act);
		return denied(&act);
	}
	return end(&act);
}
TWIN(ptrace_access_check, (struct task_struct * target, unsigned int mode), (target, mode))

/* A process has itself traced by its parent. */
static __always_inline bool on_ptrace_traceme(struct task_struct *parent)
{
	struct process *other = process_of(parent);
	struct act act = {};
	bool refused;

	if (!begin(&act, &refused))
		return refused;
	if (in_same_scope(&act, other) && other != current_process() && follows_labels(&act))
		tie(&act, other);
	return end(&act);
}
TWIN(ptrace_traceme, (struct task_struct * parent), (parent))
