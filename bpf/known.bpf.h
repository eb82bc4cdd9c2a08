/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rows of paths that were opened before: a second open need not walk up to the root,
 * nor through the automaton.
 *
 * A path is the place of a mount, that of a directory below it, and a name. The first two
 * are read as numbers that change with them: the kernel counts every rename and every
 * change of a mount on the host, whoever makes it, and we count the inodes of directories
 * that are freed, since an address can come back as another one's. So an entry is not looked
 * for and dropped when something moves: it no longer fits. Hard links, and files that are
 * removed and made again, need no care, since nothing is said about the inode of the file.
 */
#ifndef ACTPLANE_KNOWN_H
#define ACTPLANE_KNOWN_H

#include "identity.bpf.h"
#include "match.bpf.h"

#define DCACHE_OP_REVALIDATE 0x4 /* linux/dcache.h */

/* For how long a path is known: so that no sequence number comes round meanwhile, which
 * takes 2^31 renames. */
#define KNOWN_JIFFIES 10000

#define NOT_KNOWN 0xffffffff

/* The object's path is not in the buffer; see render_later. */
#define OBJECT_LATER (NO_PATH - 1)

/* sequence reads what the lock at an address counts; odd: something moves right now. */
static __always_inline u32 sequence(u64 address)
{
	u32 number = 1;

	if (address)
		bpf_probe_read_kernel(&number, sizeof(number), (void *)address);
	return number;
}

/* is_placed tells whether what names a file says all: not the root of a mount, which has its
 * name in another one; and not where a server can move directories behind the kernel's back. */
static __always_inline bool is_placed(struct file *file)
{
	struct dentry *dentry = file->f_path.dentry;

	return (file->f_inode->i_mode & S_IFMT) != S_IFCHR &&
	       !(dentry->d_flags & DCACHE_OP_REVALIDATE) && dentry != file->f_path.mnt->mnt_root;
}

/* make_key writes the key of a file into the buffer, before anything else is read of it, and
 * returns where its entry is, or NOT_KNOWN. */
static __always_inline u32 make_key(struct act *act, struct file *file)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_at(act->scratch);
	struct dentry *dentry = file->f_path.dentry;
	struct image *head = image_at(act->image);
	struct host *host = host_state();
	u32 length = dentry->d_name.len;
	struct path_key *key;

	if (!scratch || !head || !host || !length || length > KNOWN_NAME || !is_placed(file))
		return NOT_KNOWN;
	key = &scratch->key;
	key->renames = sequence(host->renames);
	key->mounts = sequence(host->mounts);
	if ((key->renames | key->mounts) & 1)
		return NOT_KNOWN;
	key->directories = host->directories;
	key->parent = (u64)dentry->d_parent->d_inode;
	key->mount = (u64)file->f_path.mnt;
	key->namespace = (u64)task->nsproxy->mnt_ns;
	key->image = *(u64 *)head->hash;
	key->length = length;
	__builtin_memset(key->name, 0, sizeof(key->name));
	BOUND(length, 63);
	if (length > KNOWN_NAME)
		return NOT_KNOWN;
	bpf_probe_read_kernel(key->name, length, dentry->d_name.name);
	return (dentry->d_name.hash ^ (u32)dentry->d_parent->d_inode->i_ino * 2654435761U) &
	       (MAX_KNOWN_PATHS - 1);
}

static __always_inline bool same_key(struct path_key *a, struct path_key *b)
{
	u64 *x = (void *)a, *y = (void *)b, differ = 0;

	for (u32 i = 0; i < sizeof(*a) / sizeof(u64); i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* known_rows returns the rows of the key in a buffer, or above 32 bits that they are not
 * known. */
__noinline u64 known_rows(u32 buffer, u32 at)
{
	struct known_path *known = bpf_map_lookup_elem(&known_paths, &at);
	struct scratch *scratch = scratch_at(buffer);
	u32 version, rows;

	if (!known || !scratch)
		return ~0ULL;
	version = *(volatile u32 *)&known->version;
	if (version & 1 || !same_key(&known->key, &scratch->key) ||
	    bpf_jiffies64() - known->since > KNOWN_JIFFIES)
		return ~0ULL;
	rows = *(volatile u32 *)&known->rows;
	return *(volatile u32 *)&known->version == version ? rows : ~0ULL;
}

/* learn_rows remembers the rows of the key in a buffer, unless another CPU is writing there. */
__noinline int learn_rows(u32 buffer, u32 at, u32 rows)
{
	struct known_path *known = bpf_map_lookup_elem(&known_paths, &at);
	struct scratch *scratch = scratch_at(buffer);
	u32 version;

	if (!known || !scratch)
		return 0;
	version = *(volatile u32 *)&known->version;
	if (version & 1 ||
	    __sync_val_compare_and_swap(&known->version, version, version + 1) != version)
		return 0;
	known->key = scratch->key;
	known->since = bpf_jiffies64();
	known->rows = rows;
	__sync_fetch_and_add(&known->version, 1);
	return 0;
}

/* Run by the daemon, after directories may have been freed unseen. */
SEC("syscall")
int forget_paths(void *unused)
{
	struct host *host = host_state();

	if (host)
		__sync_fetch_and_add(&host->directories, 1);
	return !host;
}

#endif
