/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which file is this, and what is its path in the container? */
#ifndef ACTPLANE_IDENTITY_H
#define ACTPLANE_IDENTITY_H

#include "scope.bpf.h"

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFDIR 0040000

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

#define MNT_NS_INTERNAL (-22L) /* ERR_PTR(-EINVAL), fs/mount.h */

/* is_internal tells a mount of the kernel's own: pipes, sockets, memfds, anonymous
 * inodes, and the private mounts through which overlayfs opens what lies in its
 * layers. Nothing there has a path, and it is no object of file rules. */
static __always_inline bool is_internal(struct vfsmount *vfsmount)
{
	struct mount *mount = (void *)vfsmount - bpf_core_field_offset(struct mount, mnt);

	return (long)BPF_CORE_READ(mount, mnt_ns) == MNT_NS_INTERNAL;
}

/* same_file compares with a file that the daemon named: it cannot ask for the
 * generation, and keeps the file in being. */
static __always_inline bool same_file(struct inode *inode, struct file_id *named)
{
	return named->ino && BPF_CORE_READ(inode, i_ino) == named->ino &&
	       BPF_CORE_READ(inode, i_sb, s_dev) == named->dev;
}

struct path_walk {
	struct dentry *dentry;
	struct vfsmount *mount;
	struct scratch *scratch;
	u32 at; /* the path so far is in [at, PATH_SIZE - 1) */
	bool done;
};

/* path_step takes one component, or steps from the root of a mount to where it is
 * mounted. */
static long path_step(u64 step, struct path_walk *walk)
{
	/* Plain copies first: CO-RE would relocate struct path_walk as well. */
	struct dentry *dentry = walk->dentry;
	struct vfsmount *vfsmount = walk->mount;
	struct dentry *parent = BPF_CORE_READ(dentry, d_parent);

	if (dentry == BPF_CORE_READ(vfsmount, mnt_root)) {
		u32 offset = bpf_core_field_offset(struct mount, mnt);
		struct mount *mount = (void *)vfsmount - offset;
		struct mount *above = BPF_CORE_READ(mount, mnt_parent);

		if (above == mount) {
			walk->done = true; /* the root of the mount namespace */
			return 1;
		}
		walk->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		walk->mount = (void *)above + offset;
		return 0;
	}
	if (dentry == parent)
		return 1; /* not below its mount: nobody can name it */

	u32 length = BPF_CORE_READ(dentry, d_name.len);
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
	u32 at = walk->at;

	if (length >= NAME_SIZE || at < length + 1)
		return 1;
	at -= length + 1;
	walk->at = at;
	BOUND(at, PATH_SIZE - 1);
	walk->scratch->path[at] = '/';
	BOUND(length, NAME_SIZE - 1);
	bpf_probe_read_kernel(&walk->scratch->path[at + 1], length, name);
	walk->dentry = parent;
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
	bpf_loop(MAX_PATH_DEPTH, path_step, &walk, 0);
	if (!walk.done || walk.mount != (void *)BPF_CORE_READ(task, nsproxy, mnt_ns, root) + offset)
		return NO_PATH;
	if (walk.at == PATH_SIZE - 1) { /* the root itself */
		walk.at--;
		scratch->path[PATH_SIZE - 2] = '/';
	}
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
	struct list_head *head, *next;
	struct vfsmount *found;
};

static long mount_step(u64 step, struct mount_search *search)
{
	struct list_head *next = search->next;
	u32 child = bpf_core_field_offset(struct mount, mnt_child);
	u32 offset = bpf_core_field_offset(struct mount, mnt);
	struct vfsmount *mount;

	if (next == search->head)
		return 1;
	mount = (void *)next - child + offset;
	if (is_below(mount, search->dentry)) {
		search->found = mount;
		return 1;
	}
	search->next = BPF_CORE_READ(next, next);
	return 0;
}

/*
 * namespace_root returns the mount that processes see as /. On some kernels the
 * namespace begins with an empty file system that this one is mounted over.
 */
static __always_inline struct mount *namespace_root(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mount *root = BPF_CORE_READ(task, nsproxy, mnt_ns, root);
	struct list_head *first = BPF_CORE_READ(root, mnt_mounts.next);
	u32 child = bpf_core_field_offset(struct mount, mnt_child);
	struct mount *above = (void *)first - child;

	if (BPF_CORE_READ(above, mnt_parent) == root &&
	    BPF_CORE_READ(above, mnt_mountpoint) == BPF_CORE_READ(root, mnt.mnt_root))
		return above;
	return root;
}

/*
 * mount_of finds a mount of the current task's namespace that shows a dentry: the
 * hooks of xattrs and times get no mount. It looks at the namespace's root and at
 * what is mounted directly on it. 0: the file is not in this namespace, such as
 * the layer that overlayfs passes the same call on to.
 */
__noinline u64 mount_of(u64 of)
{
	struct dentry *dentry = (void *)of;
	struct mount *root = namespace_root();
	u32 offset = bpf_core_field_offset(struct mount, mnt);
	u32 mounts = bpf_core_field_offset(struct mount, mnt_mounts);
	struct vfsmount *mount = (void *)root + offset;
	struct mount_search search = { .dentry = dentry };

	if (is_below(mount, dentry))
		return (u64)mount;
	search.head = (void *)root + mounts;
	search.next = BPF_CORE_READ(root, mnt_mounts.next);
	bpf_loop(MAX_PATH_DEPTH, mount_step, &search, 0);
	return (u64)search.found;
}

#endif
