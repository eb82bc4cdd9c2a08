// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/* The operations on names, and the attributes of files. */

#include "tree.bpf.h"

#define RENAME_EXCHANGE 2
#define ATTR_MODE 1
#define ATTR_UID 2
#define ATTR_GID 4
#define ATTR_SIZE 8
#define ATTR_ATIME 16
#define ATTR_MTIME 32

#define X86_OPEN 2
#define X86_CREAT 85
#define X86_OPENAT 257
#define X86_OPENAT2 437
#define X86_MKNOD 133
#define X86_MKNODAT 259

#define X86_COMPAT_OPEN 5
#define X86_COMPAT_CREAT 8
#define X86_COMPAT_OPENAT 295

static __always_inline bool opening(void)
{
	u64 number = syscall_number();

	if (is_compat(bpf_get_current_task_btf()))
		return number == X86_COMPAT_OPENAT || number == X86_COMPAT_OPEN ||
		       number == X86_COMPAT_CREAT || number == X86_OPENAT2;
	return number == X86_OPENAT || number == X86_OPEN || number == X86_CREAT ||
	       number == X86_OPENAT2;
}

/* judge_name decides on an event that changes a name or its attributes, and returns
 * the name's row. */
__noinline u32 judge_name(struct act *act, u64 mount, u64 dentry, u32 ops)
{
	u32 row;

	if (!act)
		return ROW_UNKNOWN;
	row = locate(act, mount, dentry, 0);
	act->inode = (u64)BPF_CORE_READ((struct dentry *)dentry, d_inode);
	judge(act, row, ops);
	judge_kept(act, ops);
	judge_other_mounts(act, mount, dentry, ops);
	return row;
}

/* expect_inode notes that a name is given to what is not there yet, and gets FILE_NAMED
 * when it is; see inode_comes. */
static __always_inline void expect_inode(struct act *act, u64 dentry)
{
	struct image *head = image_at(act->image);
	struct thread *thread;

	if (head && !head->marks)
		return;
	thread = new_thread_state();
	if (thread)
		thread->making = dentry;
	else
		saturate_scope(act);
}

/* commit_name is what it does when it is allowed. The sources of the name stick to
 * the file under every other name, and so do MARKS; what changes contents, as truncating
 * does, leaves the process's labels there. */
__noinline int commit_name(struct act *act, u64 dentry, u32 row, u32 ops, u32 marks)
{
	struct dentry *name = (void *)dentry;
	u64 inode;

	if (!act)
		return 0;
	inode = (u64)BPF_CORE_READ(name, d_inode);
	if (!inode && marks)
		expect_inode(act, dentry);
	mark_file(act, inode,
		  row_sources(act->image, row) | (marks & FILE_MODIFIED ? act->labels : 0),
		  marks | row_marks(act->image, row));
	move_all_gates(act, row, ops, 0, 0); /* it has been named */
	return 0;
}

static __always_inline bool change_name(u64 mount, u64 dentry, u32 ops, u32 marks)
{
	struct act act = {};
	bool refused;
	u32 row;

	if (!begin(&act, &refused))
		return refused;
	row = judge_name(&act, mount, dentry, ops);
	if (!denied(&act))
		commit_name(&act, dentry, row, ops, marks);
	return end(&act);
}

static __always_inline bool change_path(const struct path *path, u32 marks)
{
	return change_name((u64)BPF_CORE_READ(path, mnt), (u64)BPF_CORE_READ(path, dentry),
			   BIT(OP_WRITE), marks);
}

static __always_inline bool change_entry(const struct path *dir, struct dentry *dentry, u32 ops)
{
	return change_name((u64)BPF_CORE_READ(dir, mnt), number_of(dentry), ops, 0);
}

/* bind_name decides on a Unix socket that gets a name. */
static __always_inline bool bind_name(const struct path *dir, struct dentry *dentry)
{
	struct act act = {};
	bool refused;
	u32 row;

	if (!begin(&act, &refused))
		return refused;
	row = judge_name(&act, (u64)BPF_CORE_READ(dir, mnt), number_of(dentry), BIT(OP_WRITE));
	decide(&act, path_row(act.image, act.scratch, act.object, START_UNIX), OP_BIND, ARGS_NONE);
	if (!denied(&act))
		commit_name(&act, number_of(dentry), row, BIT(OP_WRITE), 0);
	return end(&act);
}

static __always_inline bool on_path_mknod(const struct path *dir, struct dentry *dentry, u16 mode)
{
	u64 number = syscall_number();
	bool node = number == X86_MKNOD || number == X86_MKNODAT;

	if ((mode & S_IFMT) == S_IFSOCK)
		return bind_name(dir, dentry);
	return change_entry(dir, dentry, node ? BIT(OP_WRITE) : BIT(OP_WRITE) | BIT(OP_OPEN));
}
TWIN(path_mknod, (const struct path *dir, struct dentry *dentry, u16 mode, unsigned int dev),
     (dir, dentry, mode))

static __always_inline bool on_path_mkdir(const struct path *dir, struct dentry *dentry)
{
	return change_entry(dir, dentry, BIT(OP_WRITE));
}
TWIN(path_mkdir, (const struct path *dir, struct dentry *dentry, u16 mode), (dir, dentry))

/* leave_link notes that who reads the target of the link, which is not there yet, may read
 * what the process knows. */
static __always_inline bool leave_link(const struct path *dir)
{
	struct act act = {};
	enum membership membership = enter(&act);
	struct thread *thread;
	bool knows;

	if (membership != INSIDE || in_setup(&act))
		return membership == REFUSED;
	knows = carried(&act);
	thread = knows ? new_thread_state() : thread_state();
	if (thread)
		thread->links = knows ? (u64)BPF_CORE_READ(dir, dentry, d_sb) : 0;
	return knows && !thread;
}

/* A link that leads to a program is looked at when that runs; see follow_link. */
static __always_inline bool on_path_symlink(const struct path *dir, struct dentry *dentry)
{
	return change_name((u64)BPF_CORE_READ(dir, mnt), number_of(dentry), BIT(OP_WRITE),
			   FILE_NAMED) ||
	       leave_link(dir);
}
TWIN(path_symlink, (const struct path *dir, struct dentry *dentry, const char *old_name),
     (dir, dentry))

static __always_inline bool on_path_unlink(const struct path *dir, struct dentry *dentry)
{
	return change_entry(dir, dentry, BIT(OP_WRITE) | BIT(OP_UNLINK));
}
TWIN(path_unlink, (const struct path *dir, struct dentry *dentry), (dir, dentry))

static __always_inline bool on_path_rmdir(const struct path *dir, struct dentry *dentry)
{
	return change_entry(dir, dentry, BIT(OP_WRITE) | BIT(OP_UNLINK));
}
TWIN(path_rmdir, (const struct path *dir, struct dentry *dentry), (dir, dentry))

static __always_inline bool on_path_chmod(const struct path *path)
{
	return change_path(path, 0);
}
TWIN(path_chmod, (const struct path *path, u16 mode), (path))

static __always_inline bool on_path_chown(const struct path *path)
{
	return change_path(path, 0);
}
TWIN(path_chown, (const struct path *path, u64 uid, u64 gid), (path))

/* An open with O_TRUNC comes through here as well, and has been decided. */
static __always_inline bool on_path_truncate(const struct path *path)
{
	if (opening() || is_internal(BPF_CORE_READ(path, mnt)))
		return false;
	return change_path(path, FILE_MODIFIED);
}
TWIN(path_truncate, (const struct path *path), (path))

/* From 6.2 on; before, path_truncate is called for descriptors too. */
static __always_inline bool on_file_truncate(struct file *file)
{
	if (opening() || is_internal(BPF_CORE_READ(file, f_path.mnt)))
		return false;
	return change_name((u64)BPF_CORE_READ(file, f_path.mnt),
			   (u64)BPF_CORE_READ(file, f_path.dentry), BIT(OP_WRITE), FILE_MODIFIED);
}
TWIN(file_truncate, (struct file * file), (file))

/* carry_sources: the file under a name also gets the sources of another one, ROW's. */
static __always_inline void carry_sources(struct act *act, u64 file, u32 row)
{
	struct dentry *dentry = (void *)file;

	mark_file(act, (u64)BPF_CORE_READ(dentry, d_inode), row_sources(act->image, row),
		  row_marks(act->image, row));
}

/* judge_second_name decides on the other name of a link or rename. Both are one
 * operation with one record, which tells the name that decided. */
__noinline u32 judge_second_name(struct act *act, u64 mount, u64 first, u64 dentry, u32 ops)
{
	u32 row, turns;

	if (!act)
		return ROW_UNKNOWN;
	turns = act->turns;
	row = judge_name(act, mount, dentry, ops);
	if (act->turns == turns && act->effect >= EFFECT_NOTIFY)
		act->object = render(act->scratch, mount, first);
	return row;
}

/*
 * A hard link: both names are written, and the file keeps the sources of both. The
 * hook has no mount for the old name, but the two must be on one mount.
 */
static __always_inline bool on_path_link(struct dentry *old, const struct path *dir,
					 struct dentry *new)
{
	u64 mount = (u64)BPF_CORE_READ(dir, mnt);
	u64 from = number_of(old), to = number_of(new);
	struct act act = {};
	u32 from_row, to_row;
	bool refused;

	if (!begin(&act, &refused))
		return refused;
	sum_names(&act, from, to);
	from_row = judge_name(&act, mount, from, BIT(OP_WRITE));
	to_row = judge_second_name(&act, mount, from, to, BIT(OP_WRITE));
	if (!denied(&act)) {
		commit_name(&act, from, from_row, BIT(OP_WRITE), FILE_NAMED);
		commit_name(&act, to, to_row, BIT(OP_WRITE), 0);
		carry_sources(&act, from, to_row);
	}
	return end(&act);
}
TWIN(path_link, (struct dentry * old, const struct path *dir, struct dentry *new), (old, dir, new))

/* commit_rename is what a rename does when both names allow it. */
static __always_inline void commit_rename(struct act *act, u64 from, u64 to, u32 from_row,
					  u32 to_row, u32 over, bool exchange)
{
	commit_name(act, from, from_row, BIT(OP_WRITE) | BIT(OP_UNLINK), FILE_NAMED);
	commit_name(act, to, to_row, over, exchange ? FILE_NAMED : 0);
	carry_sources(act, from, to_row);
	if (exchange)
		carry_sources(act, to, from_row);
}

static __always_inline bool is_directory(struct dentry *dentry)
{
	struct inode *inode = BPF_CORE_READ(dentry, d_inode);

	return inode && inode_type(inode) == S_IFDIR;
}

static __always_inline bool on_path_rename(const struct path *new_dir, struct dentry *old,
					   struct dentry *new, unsigned int flags)
{
	u64 mount = (u64)BPF_CORE_READ(new_dir, mnt);
	u64 from = number_of(old), to = number_of(new);
	bool exchange = flags & RENAME_EXCHANGE;
	u32 over = BIT(OP_WRITE), from_row, to_row;
	struct host *host = host_state();
	struct act act = {};
	bool refused, tree;

	if (host)
		__sync_fetch_and_add(&host->changes, 1);
	if (!begin(&act, &refused))
		return refused;
	if (BPF_CORE_READ(new, d_inode))
		over |= BIT(OP_UNLINK); /* the file that has this name loses it */
	sum_names(&act, from, to);
	tree = is_directory(old) || (exchange && is_directory(new));
	if (tree)
		walk_trees(&act, mount, from, to, 0);
	from_row = judge_name(&act, mount, from, BIT(OP_WRITE) | BIT(OP_UNLINK));
	to_row = judge_second_name(&act, mount, from, to, over);
	if (!denied(&act))
		commit_rename(&act, from, to, from_row, to_row, over, exchange);
	refused = settle(&act);
	if (!refused && tree)
		walk_trees(&act, mount, from, to, 1);
	release(&act);
	return refused;
}
TWIN(path_rename,
     (const struct path *old_dir, struct dentry *old, const struct path *new_dir,
      struct dentry *new, unsigned int flags),
     (new_dir, old, new, flags))

#define F_SETFL 4

/* A descriptor that was opened to append, and so as an append, loses O_APPEND. */
static __always_inline bool on_file_fcntl(struct file *file, unsigned int command,
					  unsigned long argument)
{
	if (command != F_SETFL || argument & O_APPEND ||
	    !(BPF_CORE_READ(file, f_flags) & O_APPEND) ||
	    !(BPF_CORE_READ(file, f_mode) & FMODE_WRITE) ||
	    is_internal(BPF_CORE_READ(file, f_path.mnt)))
		return false;
	return change_name((u64)BPF_CORE_READ(file, f_path.mnt),
			   (u64)BPF_CORE_READ(file, f_path.dentry), BIT(OP_WRITE), 0);
}
TWIN(file_fcntl, (struct file * file, unsigned int command, unsigned long argument),
     (file, command, argument))

/*
 * change_attribute: the hooks of xattrs and times get no mount, so every path that
 * the file has in this namespace is asked. Without any it is the layer that overlayfs
 * passes the same call on to; with too many, a path that is not known.
 */
static __always_inline bool change_attribute(struct dentry *dentry)
{
	u64 name, mount;

	if (!marked() && !strays())
		return false;
	name = number_of(dentry);
	for (u32 i = 0; i < MAX_NAMES; i++) {
		mount = mount_of(name, i);
		if (!mount)
			return false;
		if (change_name(mount, name, BIT(OP_WRITE), 0))
			return true;
	}
	return mount_of(name, MAX_NAMES) && change_name(0, name, BIT(OP_WRITE), 0);
}

/* Times only: the rest of the attributes have hooks with a path. */
static __always_inline bool changes_times(struct iattr *attributes)
{
	u32 valid = BPF_CORE_READ(attributes, ia_valid);

	return valid & (ATTR_ATIME | ATTR_MTIME) &&
	       !(valid & (ATTR_MODE | ATTR_UID | ATTR_GID | ATTR_SIZE));
}

/* The hook got an argument in front with 6.9; the loader keeps the right one. */
static __always_inline bool on_inode_setattr(struct dentry *dentry, struct iattr *attributes)
{
	return changes_times(attributes) && change_attribute(dentry);
}
TWIN_BODY(lsm_inode_setattr_2, "lsm/inode_setattr",
	  (struct dentry * dentry, struct iattr *attributes), on_inode_setattr(dentry, attributes))
TWIN_BODY(lsm_inode_setattr, "lsm/inode_setattr",
	  (void *idmap, struct dentry *dentry, struct iattr *attributes),
	  on_inode_setattr(dentry, attributes))
TWIN_BODY(mod_inode_setattr, "fmod_ret/security_inode_setattr",
	  (void *idmap, struct dentry *dentry, struct iattr *attributes),
	  on_inode_setattr(dentry, attributes))

/* leave_attribute: who reads the file, or an attribute, may read what the process knows. */
static __always_inline bool leave_attribute(struct dentry *dentry)
{
	struct act act = {};
	enum membership membership = enter(&act);

	if (membership == INSIDE && !in_setup(&act))
		give_stored(&act, number_of(BPF_CORE_READ(dentry, d_inode)), carried(&act));
	return membership == REFUSED;
}

static __always_inline bool on_inode_setxattr(struct dentry *dentry)
{
	return change_attribute(dentry) || leave_attribute(dentry);
}
TWIN(inode_setxattr, (void *idmap, struct dentry *dentry), (dentry))

static __always_inline bool on_inode_removexattr(struct dentry *dentry)
{
	return change_attribute(dentry);
}
TWIN(inode_removexattr, (void *idmap, struct dentry *dentry), (dentry))

static __always_inline bool on_inode_set_acl(struct dentry *dentry)
{
	return change_attribute(dentry) || leave_attribute(dentry);
}
TWIN(inode_set_acl, (void *idmap, struct dentry *dentry), (dentry))

/* From 6.2 on. */
static __always_inline bool on_inode_remove_acl(struct dentry *dentry)
{
	return change_attribute(dentry);
}
TWIN(inode_remove_acl, (void *idmap, struct dentry *dentry), (dentry))
