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

static __always_inline bool saturated(struct act *act)
{
	struct scope *scope = scope_at(act->slot);

	return !scope || scope->flags & SCOPE_SATURATED;
}

/* file_labels returns what a file carries by itself. */
static __always_inline u64 file_labels(struct act *act, struct inode *inode)
{
	struct file_key key = file_key(act, inode);
	struct file_state *state = bpf_map_lookup_elem(&files, &key);
	u32 image = act->image;
	struct image *head;

	if (state)
		return state->labels;
	if (!saturated(act))
		return 0;
	head = bpf_map_lookup_elem(&images, &image);
	return head ? head->labels : ~0ULL;
}

/* file_touched tells whether a program is not what it was outside of the scope: its
 * contents, or what it is called. */
static __always_inline bool file_touched(struct act *act, struct inode *inode)
{
	struct file_key key = file_key(act, inode);
	struct file_state *state = bpf_map_lookup_elem(&files, &key);

	return state ? state->flags & (FILE_MODIFIED | FILE_NAMED) : saturated(act);
}

/* mark_file adds labels and flags to a file. When the table is full, the scope is
 * saturated from then on, so nothing is forgotten. */
__noinline int mark_file(struct act *act, u64 inode, u64 labels, u64 flags)
{
	struct file_state fresh = {}, *state;
	struct image *head;
	struct file_key key;
	struct scope *scope;
	u32 image;

	if (!act || !inode)
		return 0;
	image = act->image;
	head = bpf_map_lookup_elem(&images, &image);
	/* What nothing asks for is not kept. */
	if (head && !(labels & head->labels) && !(flags && head->marks))
		return 0;
	key = file_key(act, (void *)inode);
	state = bpf_map_lookup_elem(&files, &key);
	if (!state) {
		bpf_map_update_elem(&files, &key, &fresh, BPF_NOEXIST);
		state = bpf_map_lookup_elem(&files, &key);
	}
	if (!state) {
		scope = scope_at(act->slot);
		if (scope)
			__sync_fetch_and_or(&scope->flags, SCOPE_SATURATED);
		return 0;
	}
	if ((state->labels | labels) != state->labels)
		__sync_fetch_and_or(&state->labels, labels);
	if ((state->flags | flags) != state->flags)
		__sync_fetch_and_or(&state->flags, flags);
	return 0;
}

/* gain gives labels to the current process. */
static __always_inline void gain(struct act *act, u64 labels)
{
	struct process *process = current_process();

	act->labels |= labels;
	if (process && (process->labels | labels) != process->labels)
		__sync_fetch_and_or(&process->labels, labels);
}

static __always_inline u64 row_sources(u32 image, u32 number)
{
	struct row *row = table_entry(rows, image, number);

	return row ? row->sources : ~0ULL;
}

#endif
