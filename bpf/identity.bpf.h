/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which file is this, and what is its path in the container? */
#ifndef ACTPLANE_IDENTITY_H
#define ACTPLANE_IDENTITY_H

#include "scope.bpf.h"

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFDIR 0040000
#define S_IFLNK 0120000
#define S_IFIFO 0010000
#define S_IFCHR 0020000
#define S_IFSOCK 0140000

/* linux/major.h */
#define MEM_MAJOR 1
#define TTYAUX_MAJOR 5
#define PTS_MAJOR 136 /* and 7 more */

/* Of struct file. */
#define FMODE_WRITE 0x2

/* Set by overlayfs on the second open, of the file in the layer below, which is
 * no act of the program's; user space cannot set it. */
#define FMODE_NOACCOUNT 0x20000000

static __always_inline struct file_id file_id(struct inode *inode)
{
	struct file_id id = {
		.ino = BPF_CORE_READ(inode, i_ino),
		.dev = BPF_CORE_READ(inode, i_sb, s_dev),
		.generation = BPF_CORE_READ(inode, i_generation),
	};

	return id;
}

static __always_inline u16 inode_type(struct inode *inode)
{
	return BPF_CORE_READ(inode, i_mode) & S_IFMT;
}

#define OVERLAY_MAGIC 0x794c7630

/*
 * An overlay numbers its inodes by those of its layers. In i_private is the one by which
 * it finds an inode again: that above of what was made there, and else that below, which is
 * there as long as the container. What has several hard links below has an inode for each
 * name, all with one number, and is found by none. When such a name is copied up, it is
 * found by the new inode above, but keeps its number until it has left the cache.
 */
static __always_inline struct inode *found_by(struct inode *inode)
{
	return BPF_CORE_READ(inode, i_private);
}

static __always_inline bool is_overlay(struct inode *inode)
{
	return BPF_CORE_READ(inode, i_sb, s_magic) == OVERLAY_MAGIC;
}

/* Where layers are on several file systems, an overlay may put their numbers into the
 * highest bits (xino). */
#define XINO_SHIFT 48

/* later_id tells whether a file will have another id than now, and which. */
static __always_inline bool later_id(struct inode *inode, struct file_id *id)
{
	struct inode *by;
	u64 number;

	if (!is_overlay(inode) || inode_type(inode) == S_IFDIR)
		return false;
	by = found_by(inode);
	if (!by)
		return false;
	*id = file_id(inode);
	number = BPF_CORE_READ(by, i_ino);
	if (!((number ^ id->ino) << (64 - XINO_SHIFT)))
		return false;
	id->ino = number;
	return true;
}

/* is_device tells the terminals of package dfa's devices, and null, zero, full, random
 * and urandom, which are no objects of file rules unless a pattern names them. */
static __always_inline bool is_device(struct inode *inode)
{
	u32 device, major, minor;

	if (inode_type(inode) != S_IFCHR)
		return false;
	device = BPF_CORE_READ(inode, i_rdev);
	major = device >> 20;
	minor = device & 0xfffff;
	if (major == MEM_MAJOR)
		return minor == 3 || minor == 5 || (minor >= 7 && minor <= 9);
	return (major >= PTS_MAJOR && major < PTS_MAJOR + 8) ||
	       (major == TTYAUX_MAJOR && minor <= 2);
}

/* is_terminal: of those, the ones that lead to another program. */
static __always_inline bool is_terminal(struct inode *inode)
{
	return is_device(inode) && BPF_CORE_READ(inode, i_rdev) >> 20 != MEM_MAJOR;
}

#define MQUEUE_MAGIC 0x19800202
#define ANON_INODE_MAGIC 0x09041934
#define MNT_NS_INTERNAL (-22L) /* ERR_PTR(-EINVAL), fs/mount.h */

/* is_internal tells a mount of the kernel's own: pipes, sockets, memfds, anonymous
 * inodes, and the private mounts through which overlayfs opens what lies in its
 * layers. Nothing there has a path, and it is no object of file rules. */
static __always_inline bool is_internal(struct vfsmount *vfsmount)
{
	struct mount *mount = (void *)vfsmount - bpf_core_field_offset(struct mount, mnt);
	long ns = (long)BPF_CORE_READ(mount, mnt_ns);

	/* Message queues have a mount of the kernel's own that is in no namespace. */
	return ns == MNT_NS_INTERNAL ||
	       (!ns && BPF_CORE_READ(vfsmount, mnt_sb, s_magic) == MQUEUE_MAGIC);
}

/* is_anonymous tells eventfds and their like, which share one inode. */
static __always_inline bool is_anonymous(struct file *file)
{
	return BPF_CORE_READ(file, f_inode, i_sb, s_magic) == ANON_INODE_MAGIC;
}

/* same_file compares with a file that the daemon named: it cannot ask for the
 * generation, and keeps the file in being. */
static __always_inline bool same_file(struct inode *inode, struct file_id *named)
{
	return named->ino && BPF_CORE_READ(inode, i_ino) == named->ino &&
	       BPF_CORE_READ(inode, i_sb, s_dev) == named->dev;
}

/* read_dentry reads both at once, since each read by itself costs as much. */
static __always_inline void read_dentry(struct dentry_name *read, struct dentry *dentry)
{
	u32 at = bpf_core_field_offset(struct dentry, d_parent);

	if (bpf_core_field_offset(struct dentry, d_name) == at + 8 &&
	    bpf_core_field_offset(struct qstr, len) == 4 &&
	    bpf_core_field_offset(struct qstr, name) == 8) {
		bpf_probe_read_kernel(read, sizeof(*read), (void *)dentry + at);
		return;
	}
	read->parent = (u64)BPF_CORE_READ(dentry, d_parent);
	read->length = BPF_CORE_READ(dentry, d_name.len);
	read->name = (u64)BPF_CORE_READ(dentry, d_name.name);
}

struct path_walk {
	struct dentry *dentry;
	struct vfsmount *mount;
	struct scratch *scratch;
	u32 at;	  /* the path so far is in [at, PATH_SIZE - 1) */
	u32 base; /* where its last name begins; 0: it has none yet */
	bool done;
};

/* path_step takes one component, or steps from the root of a mount to where it is
 * mounted. */
static long path_step(u64 step, struct path_walk *walk)
{
	/* Plain copies first: CO-RE would relocate struct path_walk as well. */
	struct dentry *dentry = walk->dentry;
	struct vfsmount *vfsmount = walk->mount;
	struct dentry_name *read = &walk->scratch->read;

	if ((u64)dentry == walk->scratch->root) {
		u32 offset = bpf_core_field_offset(struct mount, mnt);
		struct mount *mount = (void *)vfsmount - offset;
		struct mount *above = BPF_CORE_READ(mount, mnt_parent);

		if (above == mount) {
			walk->done = true; /* the root of the mount namespace */
			return 1;
		}
		walk->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		walk->mount = (void *)above + offset;
		walk->scratch->root = (u64)BPF_CORE_READ(above, mnt.mnt_root);
		return 0;
	}
	read_dentry(read, dentry);
	if ((u64)dentry == read->parent)
		return 1; /* not below its mount: nobody can name it */

	u32 length = read->length;
	u32 at = walk->at;

	if (length >= NAME_SIZE || at < length + 1)
		return 1;
	at -= length + 1;
	walk->at = at;
	if (!walk->base)
		walk->base = at + 1;
	BOUND(at, PATH_SIZE - 1);
	walk->scratch->path[at] = '/';
	BOUND(length, NAME_SIZE - 1);
	bpf_probe_read_kernel(&walk->scratch->path[at + 1], length, (void *)read->name);
	walk->dentry = (void *)read->parent;
	return 0;
}

#define NO_PATH 0xffffffff

/*
 * render writes the path of a dentry below a mount into the buffer and returns
 * where it begins, or NO_PATH. It goes to the root of the mount namespace, not of
 * the task: a chroot must not change what a file is called. No lock is held; a
 * rename in mid-walk can give a path that never was. A file that is not in the
 * task's namespace has no path.
 */
__noinline u32 render(u32 number, u64 mount, u64 dentry)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 offset = bpf_core_field_offset(struct mount, mnt);
	struct scratch *scratch = scratch_at(number);
	struct path_walk walk = {
		.dentry = (void *)dentry,
		.mount = (void *)mount,
		.scratch = scratch,
		.at = PATH_SIZE - 1,
	};

	if (!scratch)
		return NO_PATH;
	scratch->root = (u64)BPF_CORE_READ((struct vfsmount *)mount, mnt_root);
	bpf_loop(MAX_PATH_DEPTH, path_step, &walk, 0);
	if (!walk.done || walk.mount != (void *)BPF_CORE_READ(task, nsproxy, mnt_ns, root) + offset)
		return NO_PATH;
	if (walk.at == PATH_SIZE - 1) { /* the root itself */
		walk.at--;
		scratch->path[PATH_SIZE - 2] = '/';
	}
	scratch->base = walk.base ?: PATH_SIZE - 1;
	return walk.at;
}

/* is_below tells whether a mount shows a dentry. */
struct below {
	struct dentry *dentry, *root;
	bool found;
};

static long below_step(u64 step, struct below *below)
{
	struct dentry *dentry = below->dentry;
	struct dentry *parent;

	if (dentry == below->root) {
		below->found = true;
		return 1;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	if (parent == dentry)
		return 1;
	below->dentry = parent;
	return 0;
}

static __always_inline bool is_below(struct vfsmount *mount, struct dentry *dentry)
{
	struct below below = {
		.dentry = dentry,
		.root = BPF_CORE_READ(mount, mnt_root),
	};

	if (BPF_CORE_READ(mount, mnt_sb) != BPF_CORE_READ(dentry, d_sb))
		return false;
	bpf_loop(MAX_PATH_DEPTH, below_step, &below, 0);
	return below.found;
}

struct mount_search {
	struct dentry *dentry;
	void *ns;
	void *next; /* a list entry, or from 6.17 on a mount */
	void *head;
	u32 skip; /* matches to pass over */
	struct vfsmount *found;
};

static __always_inline struct mount *next_mount(struct mount_search *search)
{
	void *next = search->next;
	struct mount *mount;

	if (bpf_core_field_exists(struct mount___linked, mnt_next_for_sb)) {
		struct mount___linked *linked = next;

		if (linked)
			search->next = BPF_CORE_READ(linked, mnt_next_for_sb);
		return next;
	}
	if (!next || next == search->head)
		return NULL;
	mount = next - bpf_core_field_offset(struct mount, mnt_instance);
	search->next = BPF_CORE_READ(mount, mnt_instance.next);
	return mount;
}

static long mount_step(u64 step, struct mount_search *search)
{
	struct mount *mount = next_mount(search);
	struct vfsmount *vfsmount;

	if (!mount)
		return 1;
	vfsmount = (void *)mount + bpf_core_field_offset(struct mount, mnt);
	if ((void *)BPF_CORE_READ(mount, mnt_ns) != search->ns ||
	    !is_below(vfsmount, search->dentry))
		return 0;
	if (search->skip) {
		search->skip--;
		return 0;
	}
	search->found = vfsmount;
	return 1;
}

#define MAX_MOUNTS 4096 /* of one file system, on the whole host */

/*
 * mount_of finds a mount of the current task's namespace that shows a dentry, after
 * SKIP others: the hooks of xattrs and times get no mount. 0: there is none, as for
 * the layer that overlayfs passes the same call on to.
 */
__noinline u64 mount_of(u64 of, u32 skip)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct dentry *dentry = (void *)of;
	struct super_block *sb = BPF_CORE_READ(dentry, d_sb);
	struct mount_search search = { .dentry = dentry, .skip = skip };

	search.ns = BPF_CORE_READ(task, nsproxy, mnt_ns);
	if (bpf_core_field_exists(struct mount___linked, mnt_next_for_sb)) {
		struct super_block___linked *linked = (void *)sb;

		search.next = BPF_CORE_READ(linked, s_mounts);
	} else {
		search.head = (void *)sb + bpf_core_field_offset(struct super_block, s_mounts);
		search.next = BPF_CORE_READ(sb, s_mounts.next);
	}
	bpf_loop(MAX_MOUNTS, mount_step, &search, 0);
	return (u64)search.found;
}

/* open_file returns the file of a descriptor of the current task, or NULL. */
static __always_inline struct file *open_file(u32 fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **slots = BPF_CORE_READ(table, fd), *file = NULL;

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	return file;
}

#endif
