// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/*
 * Files: opening, the operations on names, attributes, and reading and writing
 * through descriptors that are already open.
 */

#define FMODE_READ 0x1
#define FMODE_WRITE 0x2
#define FMODE_CREATED 0x100000
#define OPEN_FOR_EXEC 0x20 /* __FMODE_EXEC in f_flags; user space cannot set it */
#define O_RDWR 02
#define O_ACCMODE 03
#define O_TRUNC 01000
#define O_APPEND 02000
#define MAY_WRITE 2
#define MAY_READ 4
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

static __always_inline u64 syscall_number(void)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	return BPF_CORE_READ(regs, orig_ax);
}

static __always_inline bool opening(void)
{
	u64 number = syscall_number();

	return number == X86_OPENAT || number == X86_OPEN || number == X86_CREAT ||
	       number == X86_OPENAT2;
}

/* begin enters the scope for an event. False: nothing to do, *REFUSED is the
 * verdict. */
static __always_inline bool begin(struct act *act, bool *refused)
{
	enum membership membership = enter(act);

	*refused = membership == REFUSED;
	if (membership != INSIDE || act->setup)
		return false;
	*refused = !acquire(act);
	return !*refused;
}

static __always_inline bool end(struct act *act)
{
	bool refused = settle(act);

	release(act);
	return refused;
}

/* locate finds the row of a name, and makes it the act's object. */
static __always_inline u32 locate(struct act *act, u64 mount, u64 dentry)
{
	act->object_kind = OBJECT_PATH;
	act->object = render(act->scratch, mount, dentry);
	return path_row(act->image, act->scratch, act->object, START_PATH);
}

#define BIT(op) (1U << (op))

/* judge decides on all operations in the set OPS at once; the strictest holds. */
static __always_inline void judge(struct act *act, u32 row, u32 ops)
{
	for (u32 op = OP_OPEN; op <= OP_UNLINK; op++)
		if (ops & BIT(op))
			decide(act, row, op, ARGS_NONE);
}

static __always_inline void move_all_gates(struct act *act, u32 row, u32 ops)
{
	for (u32 op = OP_OPEN; op <= OP_UNLINK; op++)
		if (ops & BIT(op))
			move_gates(act, row, op, 1);
}

/* judge_name is an event that changes a name or its attributes. The sources of the
 * name stick to the file under every other name. */
__noinline int judge_name(struct act *act, u64 mount, u64 dentry, u32 ops)
{
	struct dentry *name = (void *)dentry;
	u64 inode, sources;
	u32 row;

	if (!act)
		return 0;
	row = locate(act, mount, dentry);
	judge(act, row, ops);
	if (denied(act))
		return 0;
	inode = (u64)BPF_CORE_READ(name, d_inode);
	sources = row_sources(act->image, row);
	if (sources && inode)
		mark_file(act, inode, sources, 0);
	move_all_gates(act, row, ops);
	return 0;
}

static __always_inline bool change_name(u64 mount, u64 dentry, u32 ops)
{
	struct act act = {};
	bool refused;

	if (!begin(&act, &refused))
		return refused;
	judge_name(&act, mount, dentry, ops);
	return end(&act);
}

static __always_inline bool change_path(const struct path *path, u32 ops)
{
	return change_name((u64)BPF_CORE_READ(path, mnt), (u64)BPF_CORE_READ(path, dentry), ops);
}

static __always_inline bool change_entry(const struct path *dir, struct dentry *dentry, u32 ops)
{
	return change_name((u64)BPF_CORE_READ(dir, mnt), number_of(dentry), ops);
}

static __always_inline u32 locate_file(struct act *act, struct file *file)
{
	return locate(act, (u64)BPF_CORE_READ(file, f_path.mnt),
		      (u64)BPF_CORE_READ(file, f_path.dentry));
}

/* The self-test opens a file that only the daemon knows, as a process in setup. The
 * record tells the row found, so that the daemon can compare it with its own. */
static __always_inline bool probe(struct act *act, struct file *file)
{
	struct scope_files *known = files_of(act);

	if (!known || !same_file(BPF_CORE_READ(file, f_inode), &known->probe))
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

/* open_ops returns the operations that opening FILE is. What path_mknod has decided
 * for a new file is left out. */
static __always_inline u32 open_ops(u32 mode, u32 flags)
{
	u32 ops = mode & FMODE_CREATED ? 0 : BIT(OP_OPEN);

	if (mode & FMODE_READ)
		ops |= BIT(OP_READ);
	if (!(mode & FMODE_WRITE) || mode & FMODE_CREATED)
		return ops;
	if (flags & O_APPEND && !(flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDWR)
		return ops | BIT(OP_APPEND);
	return ops | BIT(OP_WRITE);
}

/* What a write was decided with: the same again needs no second look. */
static __always_inline bool writing_now(struct act *act, struct file *file, struct last_write *now)
{
	struct scope *scope = scope_at(act->slot);
	struct host *host = host_state();

	if (!scope || !host)
		return false;
	now->inode = (u64)BPF_CORE_READ(file, f_inode);
	now->dentry = (u64)BPF_CORE_READ(file, f_path.dentry);
	now->mount = (u64)BPF_CORE_READ(file, f_path.mnt);
	now->labels = act->labels;
	now->clock = scope->clock;
	now->renames = host->renames;
	now->image = act->image;
	return true;
}

static __always_inline void remember(struct act *act, struct file *file)
{
	struct thread *thread = thread_state();
	struct last_write now = {};

	if (thread && writing_now(act, file, &now))
		thread->last_write = now;
}

static __always_inline bool remembered(struct act *act, struct file *file)
{
	struct thread *thread = thread_state();
	struct last_write now = {}, *last;

	if (!thread || !writing_now(act, file, &now))
		return false;
	last = &thread->last_write;
	return now.inode == last->inode && now.dentry == last->dentry &&
	       now.mount == last->mount && now.labels == last->labels &&
	       now.clock == last->clock && now.renames == last->renames &&
	       now.image == last->image;
}

/* flow moves labels between process and file after an allowed open. */
static __always_inline void flow(struct act *act, struct file *file, u64 sources, u32 mode)
{
	u64 inode = (u64)BPF_CORE_READ(file, f_inode);

	if (mode & FMODE_READ)
		gain(act, act->labels);
	if (sources)
		mark_file(act, inode, sources, 0);
	if (mode & FMODE_WRITE) {
		mark_file(act, inode, act->labels, FILE_MODIFIED);
		remember(act, file);
	}
}

static __always_inline void judge_open(struct act *act, struct file *file, u32 mode)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	u32 ops = open_ops(mode, BPF_CORE_READ(file, f_flags));
	u32 row = locate_file(act, file);
	u64 sources = row_sources(act->image, row);

	if (mode & FMODE_READ)
		act->labels |= file_labels(act, inode) | sources;
	judge(act, row, ops);
	if (denied(act))
		return;
	if (inode_type(inode) == S_IFREG)
		flow(act, file, sources, mode);
	move_all_gates(act, row, ops);
}

static __always_inline bool on_file_open(struct file *file)
{
	struct act act = {};
	enum membership membership = enter(&act);
	u32 mode = BPF_CORE_READ(file, f_mode);

	if (membership != INSIDE || mode & FMODE_NOACCOUNT ||
	    BPF_CORE_READ(file, f_flags) & OPEN_FOR_EXEC)
		return membership == REFUSED;
	if (probe(&act, file))
		return true;
	if (act.setup || is_internal(BPF_CORE_READ(file, f_path.mnt)))
		return false;
	if (!acquire(&act))
		return true;
	judge_open(&act, file, mode);
	return end(&act);
}
TWIN(file_open, (struct file *file), (file))

/* judge_write decides again on a descriptor that is open for writing, since labels
 * and gates may have changed. Opening it has been reported: only a refusal is new. */
static __always_inline void judge_write(struct act *act, struct file *file)
{
	u32 append = BPF_CORE_READ(file, f_flags) & O_APPEND;
	u32 row = locate_file(act, file);

	judge(act, row, append ? BIT(OP_APPEND) : BIT(OP_WRITE));
	if (denied(act))
		return;
	act->effect = EFFECT_ALLOW;
	mark_file(act, (u64)BPF_CORE_READ(file, f_inode), act->labels, FILE_MODIFIED);
	remember(act, file);
}

/* Attached only while some live policy tests labels. */
static __always_inline bool on_file_permission(struct file *file, int mask)
{
	struct act act = {};
	enum membership membership = enter(&act);
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	if (membership != INSIDE || act.setup)
		return membership == REFUSED;
	if (inode_type(inode) != S_IFREG || BPF_CORE_READ(file, f_mode) & FMODE_NOACCOUNT)
		return false;
	if (mask & MAY_READ)
		gain(&act, file_labels(&act, inode));
	if (!(mask & MAY_WRITE) || remembered(&act, file) ||
	    is_internal(BPF_CORE_READ(file, f_path.mnt)))
		return false;
	if (!acquire(&act))
		return true;
	judge_write(&act, file);
	return end(&act);
}
TWIN(file_permission, (struct file *file, int mask), (file, mask))

static __always_inline bool on_path_mknod(const struct path *dir, struct dentry *dentry)
{
	u64 number = syscall_number();
	bool node = number == X86_MKNOD || number == X86_MKNODAT;

	return change_entry(dir, dentry, node ? BIT(OP_WRITE) : BIT(OP_WRITE) | BIT(OP_OPEN));
}
TWIN(path_mknod, (const struct path *dir, struct dentry *dentry, u16 mode, unsigned int dev),
     (dir, dentry))

static __always_inline bool on_path_mkdir(const struct path *dir, struct dentry *dentry)
{
	return change_entry(dir, dentry, BIT(OP_WRITE));
}
TWIN(path_mkdir, (const struct path *dir, struct dentry *dentry, u16 mode), (dir, dentry))

static __always_inline bool on_path_symlink(const struct path *dir, struct dentry *dentry)
{
	return change_entry(dir, dentry, BIT(OP_WRITE));
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
	return change_path(path, BIT(OP_WRITE));
}
TWIN(path_chmod, (const struct path *path, u16 mode), (path))

static __always_inline bool on_path_chown(const struct path *path)
{
	return change_path(path, BIT(OP_WRITE));
}
TWIN(path_chown, (const struct path *path, u64 uid, u64 gid), (path))

/* An open with O_TRUNC comes through here as well, and has been decided. */
static __always_inline bool on_path_truncate(const struct path *path)
{
	if (opening())
		return false;
	return change_path(path, BIT(OP_WRITE));
}
TWIN(path_truncate, (const struct path *path), (path))

/* From 6.2 on; before, path_truncate is called for descriptors too. */
static __always_inline bool on_file_truncate(struct file *file)
{
	if (opening() || is_internal(BPF_CORE_READ(file, f_path.mnt)))
		return false;
	return change_name((u64)BPF_CORE_READ(file, f_path.mnt),
			   (u64)BPF_CORE_READ(file, f_path.dentry), BIT(OP_WRITE));
}
TWIN(file_truncate, (struct file *file), (file))

/* The file under a name also gets the sources of another one, NAME. */
__noinline int carry_sources(struct act *act, u64 mount, u64 name, u64 file)
{
	struct dentry *dentry = (void *)file;
	u64 inode, sources;

	if (!act)
		return 0;
	inode = (u64)BPF_CORE_READ(dentry, d_inode);
	sources = row_sources(act->image, locate(act, mount, name));
	if (sources && inode)
		mark_file(act, inode, sources, 0);
	return 0;
}

static __always_inline bool sources_follow(u64 mount, u64 name, u64 file)
{
	struct act act = {};
	bool refused;

	if (!begin(&act, &refused))
		return refused;
	carry_sources(&act, mount, name, file);
	return end(&act);
}

/* between reports on the first of two names; false: it is refused. */
static __always_inline bool between(struct act *act)
{
	if (denied(act))
		return false;
	settle(act);
	act->effect = EFFECT_ALLOW;
	return true;
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
	bool refused;

	if (!begin(&act, &refused))
		return refused;
	judge_name(&act, mount, from, BIT(OP_WRITE));
	if (between(&act))
		judge_name(&act, mount, to, BIT(OP_WRITE));
	refused = end(&act);
	return refused || sources_follow(mount, to, from);
}
TWIN(path_link, (struct dentry *old, const struct path *dir, struct dentry *new),
     (old, dir, new))

static __always_inline bool on_path_rename(const struct path *new_dir, struct dentry *old,
					   struct dentry *new, unsigned int flags)
{
	u64 mount = (u64)BPF_CORE_READ(new_dir, mnt);
	u64 from = number_of(old), to = number_of(new);
	struct host *host = host_state();
	struct act act = {};
	u32 over = BIT(OP_WRITE);
	bool refused;

	if (host)
		__sync_fetch_and_add(&host->renames, 1);
	if (!begin(&act, &refused))
		return refused;
	if (BPF_CORE_READ(new, d_inode))
		over |= BIT(OP_UNLINK); /* the file that has this name loses it */
	judge_name(&act, mount, from, BIT(OP_WRITE) | BIT(OP_UNLINK));
	if (between(&act))
		judge_name(&act, mount, to, over);
	refused = end(&act);
	if (refused)
		return true;
	if (flags & RENAME_EXCHANGE && sources_follow(mount, from, to))
		return true;
	return sources_follow(mount, to, from);
}
TWIN(path_rename,
     (const struct path *old_dir, struct dentry *old, const struct path *new_dir,
      struct dentry *new, unsigned int flags),
     (new_dir, old, new, flags))

/* change_attribute: the hooks of xattrs and times get no mount. */
static __always_inline bool change_attribute(struct dentry *dentry)
{
	u64 name, mount;

	if (!marked())
		return false;
	name = number_of(dentry);
	mount = mount_of(name);
	/* Without one: overlayfs passes the same call on to its layer. */
	return mount && change_name(mount, name, BIT(OP_WRITE));
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
	  (struct dentry *dentry, struct iattr *attributes), on_inode_setattr(dentry, attributes))
TWIN_BODY(lsm_inode_setattr, "lsm/inode_setattr",
	  (void *idmap, struct dentry *dentry, struct iattr *attributes),
	  on_inode_setattr(dentry, attributes))
TWIN_BODY(mod_inode_setattr, "fmod_ret/security_inode_setattr",
	  (void *idmap, struct dentry *dentry, struct iattr *attributes),
	  on_inode_setattr(dentry, attributes))

static __always_inline bool on_inode_setxattr(struct dentry *dentry)
{
	return change_attribute(dentry);
}
TWIN(inode_setxattr, (void *idmap, struct dentry *dentry), (dentry))

static __always_inline bool on_inode_removexattr(struct dentry *dentry)
{
	return change_attribute(dentry);
}
TWIN(inode_removexattr, (void *idmap, struct dentry *dentry), (dentry))

static __always_inline bool on_inode_set_acl(struct dentry *dentry)
{
	return change_attribute(dentry);
}
TWIN(inode_set_acl, (void *idmap, struct dentry *dentry), (dentry))
