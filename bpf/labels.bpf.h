/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Labels of processes and files, gates of scopes. */
#ifndef ACTPLANE_LABELS_H
#define ACTPLANE_LABELS_H

#include "identity.bpf.h"

static __always_inline struct image *image_head(struct act *act)
{
	u32 image = act->image;

	return bpf_map_lookup_elem(&images, &image);
}

static __always_inline struct file_key file_key(struct act *act, struct inode *inode)
{
	struct file_key key = {
		.id = file_id(inode),
		.scope = act->process->scope,
		.generation = act->process->generation,
	};

	return key;
}

/* file_labels returns what a file carries by itself. */
static __noinline u64 file_labels(struct act *act, struct inode *inode)
{
	struct file_key key = file_key(act, inode);
	struct file_state *state = bpf_map_lookup_elem(&files, &key);
	struct image *head;

	if (state)
		return state->labels;
	if (!(act->scope->flags & SCOPE_SATURATED))
		return 0;
	head = image_head(act);
	return head ? head->labels : ~0ULL;
}

static __noinline bool file_modified(struct act *act, struct inode *inode)
{
	struct file_key key = file_key(act, inode);
	struct file_state *state = bpf_map_lookup_elem(&files, &key);

	if (state)
		return state->flags & FILE_MODIFIED;
	return act->scope->flags & SCOPE_SATURATED;
}

/* mark_file adds labels and flags to a file. When the table is full, the scope is
 * saturated from then on, so nothing is forgotten. */
static __noinline void mark_file(struct act *act, struct inode *inode, u64 labels, u64 flags)
{
	struct file_key key = file_key(act, inode);
	struct file_state *state = bpf_map_lookup_elem(&files, &key);
	struct file_state fresh = {};

	if (!state) {
		bpf_map_update_elem(&files, &key, &fresh, BPF_NOEXIST);
		state = bpf_map_lookup_elem(&files, &key);
		if (!state) {
			__sync_fetch_and_or(&act->scope->flags, SCOPE_SATURATED);
			return;
		}
	}
	if ((state->labels | labels) != state->labels)
		__sync_fetch_and_or(&state->labels, labels);
	if ((state->flags | flags) != state->flags)
		__sync_fetch_and_or(&state->flags, flags);
}

static __always_inline void gain(struct act *act, u64 labels)
{
	if ((act->process->labels | labels) != act->process->labels)
		__sync_fetch_and_or(&act->process->labels, labels);
}

/* A gate is fresh when it was armed after it last became stale. Epochs come from
 * the scope's own clock; 0 is never. */
static __always_inline bool gate_fresh(struct scope *scope, u64 gate)
{
	BOUND(gate, MAX_GATES - 1);
	return scope->armed[gate] > scope->stale[gate];
}

static __always_inline u64 tick(struct scope *scope)
{
	return __sync_fetch_and_add(&scope->clock, 1) + 1;
}

/* raise_to makes an epoch at least VALUE. It gives up after some lost races,
 * which leaves a gate unarmed (never wrongly fresh). */
static __always_inline void raise_to(u64 *epoch, u64 value)
{
	for (int i = 0; i < 8; i++) {
		u64 seen = *(volatile u64 *)epoch;

		if (seen >= value ||
		    __sync_val_compare_and_swap(epoch, seen, value) == seen)
			return;
	}
}

static __always_inline void arm_gate(struct scope *scope, u64 gate, u64 epoch)
{
	BOUND(gate, MAX_GATES - 1);
	raise_to(&scope->armed[gate], epoch);
}

/* A lost race means that somebody else has just made the gate stale. */
static __always_inline void spoil_gate(struct scope *scope, u64 gate)
{
	BOUND(gate, MAX_GATES - 1);
	raise_to(&scope->stale[gate], tick(scope));
}

static __always_inline bool args_reached(struct arg_set *set, s32 position)
{
	u32 word = (u32)position >> 6;

	if (position < 0)
		return true;
	BOUND(word, ARG_WORDS - 1);
	return set->words[word] >> (position & 63) & 1;
}

struct gate_walk {
	struct scope *scope;
	struct process *process;
	struct arg_set *args; /* exec only */
	u32 image, first;
	u32 trusted; /* may arm */
	u32 arming; /* the second round */
};

static long gate_step(u64 step, struct gate_walk *walk)
{
	struct gate_ref *ref = table_entry(gate_refs, walk->image, walk->first + (u32)step);
	struct process *process = walk->process;
	struct arg_set *args = walk->args;
	u64 count;

	if (!ref)
		return 1;
	if (ref->arm != walk->arming || (args && !args_reached(args, ref->arg)))
		return 0;
	if (!ref->arm) {
		spoil_gate(walk->scope, ref->gate);
		return 0;
	}
	if (!walk->trusted)
		return 0;
	if (ref->exit < 0) {
		arm_gate(walk->scope, ref->gate, tick(walk->scope));
		return 0;
	}
	count = process->pending_count;
	if (count >= MAX_PENDING)
		return 0; /* one gate fewer opens */
	BOUND(count, MAX_PENDING - 1);
	process->pending[count].epoch = tick(walk->scope);
	process->pending[count].gate = ref->gate;
	process->pending[count].exit = ref->exit;
	process->pending_count = count + 1;
	return 0;
}

/*
 * move_gates does to the gates what an event of operation OP on ROW does. First
 * what it spoils, then what it arms: an event never invalidates its own effect.
 */
static __noinline void move_gates(struct act *act, struct row *row, u32 op,
				  struct arg_set *args, u32 trusted)
{
	struct gate_walk walk = {
		.scope = act->scope,
		.process = act->process,
		.args = args,
		.image = act->image,
		.trusted = trusted,
	};

	if (op >= NUM_OPS || !row->gates[op].count)
		return;
	walk.first = row->gates[op].first;
	bpf_loop(row->gates[op].count, gate_step, &walk, 0);
	walk.arming = 1;
	bpf_loop(row->gates[op].count, gate_step, &walk, 0);
}

#endif
