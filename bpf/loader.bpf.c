// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/*
 * What the kernel opens for an exec by itself: the interpreter of a script, which is then
 * a program of the exec like the script (see exec.bpf.c), and the loader of a program that
 * is linked dynamically, which gets no hook of an exec's.
 */

/* opens_by_itself tells whether a path that is looked up for an exec is named by a
 * program's file, and not by the system call. */
static __always_inline bool opens_by_itself(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct filename *name;

	if (!BPF_CORE_READ_BITFIELD_PROBED(task, in_execve))
		return false;
	if (!bpf_core_field_exists(struct filename, uptr))
		return true; /* these kernels open the program itself before */
	name = BPF_CORE_READ(task, nameidata, name);
	return name && !BPF_CORE_READ(name, uptr);
}

/* note_opened notes what the kernel opens for an exec; after it, an overlay opens what lies
 * in its layer. */
__noinline int note_opened(struct act *act, u64 inode)
{
	struct thread *thread;

	if (!act || !asks_of_execs(act))
		return 0;
	thread = new_thread_state();
	if (thread)
		thread->exec.opened = inode;
	return 0;
}

/* find_loader notes what a loader is and brings. False: it cannot be told. A function of
 * its own, so that its stack is not added to that of what decides. */
__noinline int find_loader(struct act *act, u64 opened)
{
	struct thread *thread = thread_state();
	struct file *file = (void *)opened;
	struct exec_loader *loader;
	struct inode *inode;

	if (!act || !thread || !same_policy(act, thread))
		return 0;
	loader = &thread->exec.loader;
	inode = BPF_CORE_READ(file, f_inode);
	act->inode = (u64)inode;
	act->mapped = 1;
	act->stage = STAGE_EXEC;
	loader->row = locate(act, (u64)BPF_CORE_READ(file, f_path.mnt),
			     (u64)BPF_CORE_READ(file, f_path.dentry), OF_PROGRAM);
	act->labels |= file_labels(act, inode) | row_sources(act->image, loader->row);
	act->targets = row_targets(act->image, loader->row);
	loader->labels = act->labels;
	loader->foreign = is_foreign(act, file) ? REASON_FOREIGN_FILE : 0;
	return 1;
}

/* has_loader tells whether what the kernel opens is the loader of the exec's last program. */
static __always_inline bool has_loader(void)
{
	struct thread *thread = thread_state();

	if (!thread || !thread->exec.levels || !thread->exec.elf || !opens_by_itself())
		return false;
	thread->exec.elf = 0;
	return true;
}

static __always_inline u32 row_of_loader(void)
{
	struct thread *thread = thread_state();

	return thread ? thread->exec.loader.row : ROW_UNKNOWN;
}

/* judge_loader decides on a loader as on code that is mapped: defaults and what blocks any
 * program are about the program itself. It returns whether the loader is refused, and the
 * exec with it. */
__noinline int judge_loader(struct act *act)
{
	if (!act)
		return 1;
	decide(act, row_of_loader(), OP_EXEC, ARGS_LOADER);
	return denied(act);
}

/* open_for_exec is the end of an open of the kernel's for an exec. */
static __always_inline bool open_for_exec(struct act *act, u64 file)
{
	if (!has_loader())
		return false;
	if (!acquire(act))
		return true;
	if (!find_loader(act, file))
		refuse(act, OP_EXEC, REASON_POLICY_CHANGED);
	else
		judge_loader(act);
	announce(act);
	if (denied(act)) /* what was granted was so for the whole exec */
		give_back(act);
	release(act);
	return denied(act);
}

/* follow_link notes that a symbolic link leads the kernel to what it opens for an exec, and
 * was made or got its name inside. */
static __always_inline void follow_link(struct dentry *dentry, struct inode *inode)
{
	struct thread *thread;
	struct act act = {};

	if ((!marked() && !strays()) || !opens_by_itself() || enter(&act) != INSIDE)
		return;
	thread = thread_state();
	if (!thread || !thread->exec.levels)
		return;
	if (file_touched(&act, inode) || named_below(&act, 0, number_of(dentry)))
		thread->exec.by_link = 1;
}

SEC("lsm/inode_follow_link")
int BPF_PROG(lsm_inode_follow_link, struct dentry *dentry, struct inode *inode)
{
	follow_link(dentry, inode);
	return 0;
}

SEC("fentry/security_inode_follow_link")
int BPF_PROG(mod_inode_follow_link, struct dentry *dentry, struct inode *inode)
{
	follow_link(dentry, inode);
	return 0;
}
