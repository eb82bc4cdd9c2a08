/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Labels of processes and files. */
#ifndef ACTPLANE_LABELS_H
#define ACTPLANE_LABELS_H

#include "identity.bpf.h"
#include "match.bpf.h"

static __always_inline struct file_key id_key(struct act *act, struct file_id *id)
{
	struct file_key key = {
		.id = *id,
		.scope = act->slot,
		.generation = act->generation,
	};

	return key;
}

static __always_inline struct file_key file_key(struct act *act, struct inode *inode)
{
	struct file_id id = file_id(inode);

	return id_key(act, &id);
}

/* saturated tells whether the scope's share of the table was full. */
static __always_inline bool saturated(struct act *act)
{
	struct scope *scope = scope_at(act->slot);

	return !scope || scope->flags & SCOPE_SATURATED;
}

/* kept_by_all tells whether what is noted of what protects files is of another policy. */
static __always_inline bool kept_by_all(struct act *act)
{
	struct scope *scope = scope_at(act->slot);

	return !scope || scope->flags & SCOPE_KEPT_ALL;
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
	__sync_fetch_and_or(&scope->assumed_labels, head ? head->labels & ~uncarried(head) : ~0ULL);
	__sync_fetch_and_or(&scope->assumed_flags, FILE_UNKNOWN);
}

/* own_file notes that the scope has an entry for a file. */
static __always_inline bool own_file(struct act *act, struct marking *m)
{
	struct file_owners *known;

	m->owners.scope = act->slot;
	m->owners.generation = act->generation;
	m->owners.more = 0;
	bpf_map_update_elem(&owners_by_file, &m->key.id, &m->owners, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&owners_by_file, &m->key.id);
	if (known && (known->scope != act->slot || known->generation != act->generation))
		known->more = 1;
	return known;
}

/* new_file_state makes an entry of what M has. NULL: the table or the scope's share of
 * it is full. */
static __always_inline struct file_state *new_file_state(struct act *act, struct marking *m,
							 struct scope *scope)
{
	if (__sync_fetch_and_add(&scope->files, 1) < MAX_SCOPE_FILES && own_file(act, m) &&
	    !bpf_map_update_elem(&files, &m->key, &m->fresh, BPF_NOEXIST))
		return bpf_map_lookup_elem(&files, &m->key);
	__sync_fetch_and_add(&scope->files, -1);
	return bpf_map_lookup_elem(&files, &m->key); /* another thread's */
}

#define KEPT_SHIFT 32

/* keep notes what protects a file: what a name says, and of two names that say
 * something else, everything. */
static __always_inline void keep(struct file_state *state, u32 kept, struct image *head)
{
	struct host *host = host_state();
	u32 seen = state->kept;

	if (kept == seen)
		return;
	if (!seen)
		seen = __sync_val_compare_and_swap(&state->kept, 0, kept);
	if (seen && seen != kept && head)
		state->kept = head->kept_all;
	if (host) /* who was allowed to write to it is to be asked again */
		__sync_fetch_and_add(&host->changes, 1);
}

/* channel_state returns what is kept of a channel, or what it counts as. No earlier start
 * of the container had it. */
static __always_inline struct file_state channel_state(struct act *act, struct file_id *id)
{
	struct file_key key = id_key(act, id);
	struct file_state *known = bpf_map_lookup_elem(&files, &key), fresh = {};
	struct scope *scope = scope_at(act->slot);

	if (known)
		return *known;
	if (!scope || scope->flags & SCOPE_SATURATED)
		fresh.labels = scope ? scope->assumed_labels : ~0ULL;
	return fresh;
}

static __always_inline u64 channel_labels(struct act *act, struct file_id *id)
{
	return channel_state(act, id).labels;
}

/* channel_flags returns the flags of a channel, and above them who listens there. */
static __always_inline u64 channel_flags(struct act *act, struct file_id *id)
{
	struct file_state state = channel_state(act, id);

	return state.flags | (u64)state.kept << KEPT_SHIFT;
}

/* matters tells whether labels and marks of a file or channel are to be kept, and leaves
 * out the labels that are not. */
static __always_inline bool matters(struct act *act, u64 *labels, u64 marks)
{
	struct scope *scope = scope_at(act->slot);
	struct image *head = image_at(act->image);

	if (!head || !scope)
		return false;
	*labels &= head->labels & ~uncarried(head);
	if (*labels || marks & ~(u64)(FILE_MODIFIED | FILE_NAMED | FILE_CREATED))
		return true;
	if (marks & (FILE_MODIFIED | FILE_NAMED) && head->marks)
		return true;
	return marks & FILE_CREATED && scope->assumed_labels | scope->assumed_flags;
}

/*
 * add_to adds labels and marks to the file or channel of M, which has what it counts as
 * without an entry as well. Marks are enum file_flag, and above them the row that protects
 * a file, or who listens at an endpoint. It returns the labels that it has gained, and
 * notes whether others get them without asking: those of a channel, or of a file that is
 * mapped. When there is no room, the scope is saturated from then on, so nothing is
 * forgotten.
 */
static __always_inline u64 add_to(struct act *act, struct marking *m, u64 labels, u64 marks,
				  bool channel)
{
	u32 above = marks >> KEPT_SHIFT, flags = marks & ~FILE_CREATED;
	struct scope *scope = scope_at(act->slot);
	struct file_state *state;
	u64 gained;

	if (!scope)
		return 0;
	m->key.scope = act->slot;
	m->key.generation = act->generation;
	state = bpf_map_lookup_elem(&files, &m->key);
	if (!state)
		state = new_file_state(act, m, scope);
	if (!state) {
		saturate(act, scope);
		m->shared = channel;
		return labels;
	}
	if ((state->flags | flags) != state->flags)
		__sync_fetch_and_or(&state->flags, flags);
	if (above && channel)
		state->kept = above;
	else if (above)
		keep(state, above, image_at(act->image));
	gained = labels & ~state->labels;
	if (!gained)
		return 0;
	gained &= ~__sync_fetch_and_or(&state->labels, labels);
	m->shared = channel || state->flags & FILE_SHARED;
	return gained;
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

/* drop_id forgets a file or channel. */
static __always_inline void drop_id(struct file_id id)
{
	struct file_drop drop = { .id = id };
	struct file_owners *owners;

	owners = bpf_map_lookup_elem(&owners_by_file, &drop.id);
	if (!owners)
		return;
	drop_file(&drop.id, owners->scope, owners->generation);
	if (owners->more)
		bpf_loop(MAX_SCOPES, drop_step, &drop, 0);
	bpf_map_delete_elem(&owners_by_file, &drop.id);
}

struct carried {
	struct file_id from, to;
};

/* carry_in adds what a scope keeps of a file under one id to what it keeps under another. */
__noinline int carry_in(struct carried *c, u32 slot, u32 generation)
{
	struct scope *scope = scope_at(slot);
	struct act act = { .slot = slot, .generation = generation };
	struct marking m = {};
	struct file_state *known, state;

	if (!c || !scope || scope->generation != generation)
		return 0;
	m.key.id = c->from;
	m.key.scope = slot;
	m.key.generation = generation;
	known = bpf_map_lookup_elem(&files, &m.key);
	if (!known)
		return 0;
	state = *known;
	act.image = scope->image;
	m.key.id = c->to;
	add_to(&act, &m, state.labels, (state.flags & ~FILE_SHARED) | (u64)state.kept << KEPT_SHIFT,
	       false);
	return 0;
}

static long carry_step(u64 slot, struct carried *c)
{
	struct scope *scope = scope_at(slot);

	if (scope && scope->generation)
		carry_in(c, slot, scope->generation);
	return 0;
}

/* carry_id keeps of a file under the id that it will have what is kept of it now. */
static __always_inline void carry_id(struct file_id *from, struct file_id *to)
{
	struct carried c = { .from = *from, .to = *to };
	struct file_owners *owners = bpf_map_lookup_elem(&owners_by_file, &c.from);

	if (!owners)
		return;
	carry_in(&c, owners->scope, owners->generation);
	if (owners->more)
		bpf_loop(MAX_SCOPES, carry_step, &c, 0);
}

/* terminal_id names what programs write on the terminal of an inode's id. */
static __always_inline struct file_id terminal_id(struct file_id *typed)
{
	struct file_id id = {
		.ino = typed->ino,
		.dev = CHANNEL_TERMINAL,
		.generation = typed->dev,
	};

	return id;
}

/* drop_inode forgets a file that is gone: its number can come back as another's, and
 * on overlayfs the generation does not tell. The number of a hard link below stays that of
 * the other names, and no new file gets it. */
static __always_inline void drop_inode(struct inode *inode)
{
	struct file_id id = file_id(inode);

	if (is_overlay(inode) && !found_by(inode))
		return;
	later_id(inode, &id);
	drop_id(id);
	if (inode_type(inode) == S_IFCHR)
		drop_id(terminal_id(&id));
}

/* row_kept returns the rows that protect a path of two rows, or 0. */
__noinline u32 row_kept(u32 image, u32 numbers)
{
	struct row *row = table_entry(rows, image, first_row(numbers));
	u32 kept = row ? row->kept : 0;

	if (!second_row(numbers))
		return kept;
	row = table_entry(rows, image, second_row(numbers));
	return row ? kept | row->kept << ROW_BITS : kept;
}

/* row_marks is what a name adds to a file's marks. */
static __always_inline u64 row_marks(u32 image, u32 numbers)
{
	return (u64)row_kept(image, numbers) << KEPT_SHIFT;
}

#endif
