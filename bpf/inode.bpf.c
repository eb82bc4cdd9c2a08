// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/* Inodes that come and go, and what is known of files by them. */

/* is_passing tells files that go with their inodes, as a pipe does: of /proc and io_uring. */
static __always_inline bool is_passing(struct inode *inode)
{
	u64 magic = inode->i_sb->s_magic;

	return magic == PROC_MAGIC || magic == ANON_INODE_MAGIC;
}

/* inode_goes: what was remembered of an inode must not hold for the next one at its
 * address, and what was stored not for the next one of its number. */
static __always_inline void inode_goes(struct inode *inode)
{
	struct host *host = host_state();
	struct file_id id, later;
	u16 type = inode->i_mode & S_IFMT;

	if (host)
		__sync_fetch_and_add(&host->freed, 1);
	if (host && type == S_IFDIR)
		__sync_fetch_and_add(&host->directories, 1);
	/* Else it only leaves the cache. */
	if (!inode->i_nlink || type == S_IFIFO || is_passing(inode)) {
		drop_inode(inode);
	} else if (later_id(inode, &later)) {
		id = file_id(inode);
		carry_id(&id, &later);
	}
}

SEC("lsm/inode_free_security")
int BPF_PROG(lsm_inode_free_security, struct inode *inode)
{
	inode_goes(inode);
	return 0;
}

SEC("fentry/security_inode_free")
int BPF_PROG(mod_inode_free_security, struct inode *inode)
{
	inode_goes(inode);
	return 0;
}

/* begin_copy notes the id of a hard link that an overlay copies up: the file above, which
 * is not there yet, is to have what is known of it. */
static __always_inline void begin_copy(struct dentry *dentry)
{
	struct inode *inode = dentry->d_inode;
	struct file_id none = {};
	struct act act = {};
	struct thread *thread;
	bool linked;

	if (!inode || enter(&act) != INSIDE)
		return;
	linked = is_overlay(inode) && !found_by(inode);
	thread = linked ? new_thread_state() : thread_state();
	if (thread)
		thread->copied = linked ? file_id(inode) : none;
	else if (linked)
		saturate_scope(&act);
}

SEC("lsm/inode_copy_up")
int BPF_PROG(lsm_inode_copy_up, struct dentry *dentry)
{
	begin_copy(dentry);
	return 0;
}

SEC("fentry/security_inode_copy_up")
int BPF_PROG(mod_inode_copy_up, struct dentry *dentry)
{
	begin_copy(dentry);
	return 0;
}

#define X86_SYMLINK 88
#define X86_SYMLINKAT 266
#define X86_COMPAT_SYMLINK 83
#define X86_COMPAT_SYMLINKAT 304

/* linking tells whether the system call makes a symbolic link; it may also be walking by
 * others. */
static __always_inline bool linking(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 number = syscall_number();

	if (is_worker(task) || number == X86_IO_URING_ENTER)
		return true;
	if (is_compat(task))
		return number == X86_COMPAT_SYMLINK || number == X86_COMPAT_SYMLINKAT;
	return number == X86_SYMLINK || number == X86_SYMLINKAT;
}

/* link_comes: the link has the labels of who makes it, for those who read its target. Not
 * the one in the layer below an overlay, whose target is read to follow it. */
static __always_inline void link_comes(struct inode *inode)
{
	struct act act = {};

	if (linking() && enter(&act) == INSIDE)
		give_stored(&act, number_of(inode), carried(&act));
}

/* copied_up: the file above has an inode now. */
static __always_inline void copied_up(struct thread *thread, struct inode *inode)
{
	struct file_id id = thread->copied;

	if (BPF_CORE_READ(inode, i_sb, s_dev) == id.dev)
		return;
	id.ino = BPF_CORE_READ(inode, i_ino);
	carry_id(&thread->copied, &id);
	thread->copied.ino = 0;
}

/* inode_comes: a name gets its inode. */
static __always_inline void inode_comes(struct dentry *dentry, struct inode *inode)
{
	struct act act = {};
	struct thread *thread;

	if (!inode || (!marked() && !strays()))
		return;
	thread = thread_state();
	if (!thread)
		return;
	if (thread->links && thread->links == (u64)BPF_CORE_READ(inode, i_sb) &&
	    inode_type(inode) == S_IFLNK)
		link_comes(inode);
	if (thread->copied.ino)
		copied_up(thread, inode);
	if (thread->making != number_of(dentry))
		return;
	thread->making = 0;
	if (enter(&act) == INSIDE)
		add_to_file(&act, number_of(inode), 0, FILE_NAMED);
}

SEC("lsm/d_instantiate")
int BPF_PROG(lsm_d_instantiate, struct dentry *dentry, struct inode *inode)
{
	inode_comes(dentry, inode);
	return 0;
}

SEC("fentry/security_d_instantiate")
int BPF_PROG(mod_d_instantiate, struct dentry *dentry, struct inode *inode)
{
	inode_comes(dentry, inode);
	return 0;
}
