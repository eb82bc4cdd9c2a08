/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Labels of processes and files. */
#ifndef ACTPLANE_LABELS_H
#define ACTPLANE_LABELS_H

#include "identity.bpf.h"

static __always_inline struct file_key file_key(struct act *act, struct inode *inode)
{
	struct file_key key = {
		.id = file_id(inode),
		.scope = act->slot,
		.generation = act->generation,
	};

	return key;
}

/* saturated tells whether the scope's share of the table was full. */
static __always_inline bool saturated(struct act *act)
{
	struct scope *scope = scope_at(act->slot);

	return !scope || scope->flags & SCOPE_SATURATED;
}

#define SB_KERNMOUNT (1UL << 22)
#define PROC_MAGIC 0x9fa0
#define SYSFS_MAGIC 0x62656572

/* is_transient tells a file system whose files no earlier start of a container can
 * have written: those of the kernel's own mounts, and /proc and /sys. */
static __always_inline bool is_transient(struct inode *inode)
{
	u64 magic = BPF_CORE_READ(inode, i_sb, s_magic);

	return BPF_CORE_READ(inode, i_sb, s_flags) & SB_KERNMOUNT || magic == PROC_MAGIC ||
	       magic == SYSFS_MAGIC;
}

/* assumed_state returns what a file without an entry counts as. While there is room for
 * entries, all is known of what is of this start of the container. */
static __always_inline struct file_state assumed_state(struct scope *scope, struct inode *inode)
{
	struct file_state state = { .labels = ~0ULL, .flags = FILE_UNKNOWN };

	if (!scope)
		return state;
	state.labels = scope->assumed_labels;
	state.flags = scope->assumed_flags;
	if (state.flags && !(scope->flags & SCOPE_SATURATED) && is_transient(inode))
		state.labels = state.flags = 0;
	return state;
}

/* file_state_of returns what is kept of a file, or what it counts as. */
static __always_inline struct file_state file_state_of(struct act *act, struct inode *inode)
{
	struct file_key key = file_key(act, inode);
	struct file_state *state = bpf_map_lookup_elem(&files, &key);

	return state ? *state : assumed_state(scope_at(act->slot), inode);
}

/* file_labels returns what a file carries by itself. */
static __always_inline u64 file_labels(struct act *act, struct inode *inode)
{
	return file_state_of(act, inode).labels;
}

/* file_modified tells whether a file's contents were written inside the scope. */
__noinline int file_modified(struct act *act)
{
	struct inode *inode;
	u64 flags;

	if (!act || act->object_kind != OBJECT_PATH)
		return MODIFIED_UNKNOWN;
	inode = (void *)act->inode;
	if (!inode)
		return MODIFIED_NO;
	flags = file_state_of(act, inode).flags;
	if (flags & FILE_MODIFIED)
		return MODIFIED_YES;
	return flags & FILE_UNKNOWN ? MODIFIED_UNKNOWN : MODIFIED_NO;
}

/* saturate makes files without an entry count as carrying every label that one can. */
static __always_inline void saturate(struct act *act, struct scope *scope)
{
	struct image *head = image_at(act->image);

	__sync_fetch_and_or(&scope->flags, SCOPE_SATURATED);
	__sync_fetch_and_or(&scope->assumed_labels, head ? head->labels & ~head->integrity : ~0ULL);
	__sync_fetch_and_or(&scope->assumed_flags, FILE_UNKNOWN);
}

/* own_file notes that the scope has an entry for a file. */
static __always_inline bool own_file(struct act *act, struct file_id *id)
{
	struct file_owners owners = { .scope = act->slot, .generation = act->generation };
	struct file_owners *known;

	bpf_map_update_elem(&owners_by_file, id, &owners, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&owners_by_file, id);
	if (known && (known->scope != act->slot || known->generation != act->generation))
		known->more = 1;
	return known;
}

/* new_file_state makes an entry for a file. NULL: the table or the scope's share of
 * it is full. */
static __always_inline struct file_state *
new_file_state(struct act *act, struct file_key *key, struct scope *scope, struct file_state fresh)
{
	if (__sync_fetch_and_add(&scope->files, 1) < MAX_SCOPE_FILES && own_file(act, &key->id) &&
	    !bpf_map_update_elem(&files, key, &fresh, BPF_NOEXIST))
		return bpf_map_lookup_elem(&files, key);
	__sync_fetch_and_add(&scope->files, -1);
	return bpf_map_lookup_elem(&files, key); /* another thread's */
}

#define KEPT_SHIFT 32

/* keep notes what protects a file: what a name says, and of two names that say
 * something else, everything. */
static __always_inline void keep(struct file_state *state, u32 kept, struct image *head)
{
	u32 seen = state->kept;

	if (kept == seen)
		return;
	if (!seen)
		seen = __sync_val_compare_and_swap(&state->kept, 0, kept);
	if (seen && seen != kept && head)
		state->kept = head->kept_all;
}

/* mark_file adds to a file labels, and marks: enum file_flag, and above them the row
 * that protects it. When there is no room, the scope is saturated from then on, so
 * nothing is forgotten. */
__noinline int mark_file(struct act *act, u64 inode, u64 labels, u64 marks)
{
	struct file_state *state, fresh = {};
	struct file_key key;
	struct scope *scope;
	struct image *head;
	u32 kept = marks >> KEPT_SHIFT, flags = marks & ~FILE_CREATED;
	bool created = marks & FILE_CREATED;

	if (!act || !inode)
		return 0;
	head = image_at(act->image);
	scope = scope_at(act->slot);
	if (head)
		labels &= ~head->integrity;
	if (!scope)
		return 0;
	/* What nothing asks for is not kept. */
	if (head && !(labels & head->labels) && !(flags && head->marks) && !kept &&
	    !(created && (scope->assumed_labels | scope->assumed_flags)))
		return 0;
	key = file_key(act, (void *)inode);
	state = bpf_map_lookup_elem(&files, &key);
	if (!state && !created)
		fresh = assumed_state(scope, (void *)inode);
	if (!state)
		state = new_file_state(act, &key, scope, fresh);
	if (!state) {
		saturate(act, scope);
		return 0;
	}
	if ((state->labels | labels) != state->labels)
		__sync_fetch_and_or(&state->labels, labels);
	if ((state->flags | flags) != state->flags)
		__sync_fetch_and_or(&state->flags, flags);
	if (kept)
		keep(state, kept, head);
	return 0;
}

static __always_inline void drop_file(struct file_id *id, u32 slot, u32 generation)
{
	struct file_key key = { .id = *id, .scope = slot, .generation = generation };
	struct scope *scope = scope_at(slot);

	if (!bpf_map_delete_elem(&files, &key) && scope && scope->generation == generation)
		__sync_fetch_and_add(&scope->files, -1);
}

struct file_drop {
	struct file_id id;
};

static long drop_step(u64 slot, struct file_drop *drop)
{
	struct scope *scope = scope_at(slot);

	if (scope && scope->generation)
		drop_file(&drop->id, slot, scope->generation);
	return 0;
}

/* drop_inode forgets a file that is gone: its number can come back as another's, and
 * on overlayfs the generation does not tell. */
static __always_inline void drop_inode(struct inode *inode)
{
	struct file_drop drop;
	struct file_owners *owners;

	/* Only out of the cache; but what is in a pipe goes with its inode. */
	if (BPF_CORE_READ(inode, i_nlink) && inode_type(inode) != S_IFIFO)
		return;
	drop.id = file_id(inode);
	owners = bpf_map_lookup_elem(&owners_by_file, &drop.id);
	if (!owners)
		return;
	drop_file(&drop.id, owners->scope, owners->generation);
	if (owners->more)
		bpf_loop(MAX_SCOPES, drop_step, &drop, 0);
	bpf_map_delete_elem(&owners_by_file, &drop.id);
}

/*
 * gain gives the current process the labels that a flow brings: not those that its
 * program has cleared, nor those of integrity, which it loses when it gains another.
 */
__noinline int gain(struct act *act, u64 labels)
{
	struct process *process = current_process();
	struct image *head;

	if (!act || !process)
		return 0;
	labels &= ~process->cleared;
	act->labels |= labels;
	labels &= ~process->labels;
	if (!labels)
		return 0;
	head = image_at(act->image);
	if (head && head->integrity) {
		labels &= ~head->integrity;
		if (labels)
			__sync_fetch_and_and(&process->labels, ~head->integrity);
	}
	__sync_fetch_and_or(&process->labels, labels);
	return 0;
}

static __always_inline u32 row_kept(u32 image, u32 number)
{
	struct row *row = table_entry(rows, image, number);

	return row ? row->kept : 0;
}

/* row_marks is what a name adds to a file's marks. */
static __always_inline u64 row_marks(u32 image, u32 number)
{
	return (u64)row_kept(image, number) << KEPT_SHIFT;
}

static __always_inline u64 row_sources(u32 image, u32 number)
{
	struct row *row = table_entry(rows, image, number);

	return row ? row->sources : ~0ULL;
}

#endif
