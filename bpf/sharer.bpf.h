/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a process shares: how it comes to be listed, and what becomes of the list with
 * fork, exec and exit. */
#ifndef ACTPLANE_SHARER_H
#define ACTPLANE_SHARER_H

#include "share.bpf.h"

/* join makes a process one of those that share memory. */
static __always_inline void join(struct sharer *sharer, u64 group, bool fixed)
{
	for (u32 i = 0; i < MAX_SHARED_GROUPS; i++) {
		if (sharer->groups[i] == group ||
		    (!sharer->groups[i] &&
		     !__sync_val_compare_and_swap(&sharer->groups[i], 0, group))) {
			if (fixed)
				__sync_fetch_and_or(&sharer->fixed_groups, 1U << i);
			return;
		}
	}
	__sync_fetch_and_or(&sharer->flags, SHARER_MANY_WRITES);
}

/* map_read lists a file that the process has mapped. */
static __always_inline void map_read(struct sharer *sharer, u64 number)
{
	u64 at;

	for (u32 i = 0; i < MAX_SHARED_READS; i++)
		if (sharer->reads[i] == number)
			return;
	at = __sync_fetch_and_add(&sharer->reads_count, 1);
	if (at >= MAX_SHARED_READS) {
		__sync_fetch_and_or(&sharer->flags, SHARER_MANY_READS);
		sharer->reads_count = MAX_SHARED_READS;
		return;
	}
	BOUND(at, MAX_SHARED_READS - 1);
	sharer->reads[at] = number;
}

/* map_write lists a file that the process has mapped to write. */
static __always_inline void map_write(struct sharer *sharer, struct file_id *id)
{
	u64 at;

	for (u32 i = 0; i < MAX_SHARED_WRITES; i++)
		if (sharer->writes[i].ino == id->ino && sharer->writes[i].dev == id->dev &&
		    sharer->writes[i].generation == id->generation)
			return;
	at = sharer->writes_count;
	if (at >= MAX_SHARED_WRITES) {
		__sync_fetch_and_or(&sharer->flags, SHARER_MANY_WRITES);
		return;
	}
	BOUND(at, MAX_SHARED_WRITES - 1);
	sharer->writes[at] = *id;
	__sync_fetch_and_add(&sharer->writes_count, 1);
}

struct hold_walk {
	struct sharer *sharer;
	u32 slot, image, first;
	s32 by; /* 1: one more process holds the sharer's gates, -1: one fewer */
};

static long hold_step(u64 gate, struct hold_walk *walk)
{
	struct scope *scope = scope_at(walk->slot);

	if (!scope || !walk->sharer)
		return 1;
	BOUND(gate, MAX_GATES - 1);
	if (!(walk->sharer->gates >> gate & 1))
		return 0;
	if (walk->by < 0) /* it may have been written to until now */
		spoil_gate(scope, gate);
	__sync_fetch_and_add(&scope->held[gate], walk->by);
	return 0;
}

/* hold counts a process among those that keep its sharer's gates stale. */
static __always_inline void hold(struct sharer *sharer, u32 slot, s32 by)
{
	struct hold_walk walk = { .sharer = sharer, .slot = slot, .by = by };

	if (sharer->gates)
		bpf_loop(MAX_GATES, hold_step, &walk, 0);
}

static long hold_ref_step(u64 step, struct hold_walk *walk)
{
	struct gate_ref *ref = table_entry(gate_refs, walk->image, walk->first + (u32)step);
	struct scope *scope = scope_at(walk->slot);
	u64 gate, bit;

	if (!ref || !scope || !walk->sharer)
		return 1;
	gate = ref->gate;
	BOUND(gate, MAX_GATES - 1);
	bit = 1ULL << gate;
	if (!ref->arm && !(__sync_fetch_and_or(&walk->sharer->gates, bit) & bit))
		__sync_fetch_and_add(&scope->held[gate], 1);
	return 0;
}

/* hold_gates_of keeps the gates stale that writing to what is mapped spoils, of one row. */
static __always_inline void hold_gates_of(struct act *act, struct sharer *sharer, u32 number)
{
	struct hold_walk walk = { .sharer = sharer, .slot = act->slot, .image = act->image };
	struct row *row = table_entry(rows, act->image, number);

	if (!row || !row->gates[OP_WRITE].count)
		return;
	walk.first = row->gates[OP_WRITE].first;
	bpf_loop(row->gates[OP_WRITE].count, hold_ref_step, &walk, 0);
}

static __always_inline void hold_gates(struct act *act, struct sharer *sharer, u32 numbers)
{
	hold_gates_of(act, sharer, first_row(numbers));
	if (second_row(numbers))
		hold_gates_of(act, sharer, second_row(numbers));
}

/* inherit gives a child what it shares with its parent: with CLONE_VM all memory. False:
 * there is no room, deny. */
static __always_inline bool inherit(struct act *act, struct process *parent, struct process *child,
				    bool vm)
{
	struct sharer *from = sharer_of(parent), *to;
	struct scope *scope = scope_at(act->slot);
	u64 id = child->id, group = share_number(parent->id, 0, SHARE_VM);

	if (!from && vm)
		from = make_sharer(act) ? sharer_of(parent) : NULL;
	if (!from)
		return !vm;
	if (!scope || !count_sharer(scope))
		return false;
	if (vm)
		join(from, group, false);
	if (bpf_map_update_elem(&sharers, &id, from, BPF_NOEXIST)) {
		__sync_fetch_and_add(&scope->sharers, -1);
		return false;
	}
	to = bpf_map_lookup_elem(&sharers, &id);
	if (!to)
		return false;
	to->wait_slots = 0;
	to->passes = 0;
	to->flags &= ~SHARER_MANY_WAITS;
	__builtin_memset(to->waits, 0, sizeof(to->waits));
	for (u32 i = 0; i < MAX_SHARED_GROUPS && !vm; i++)
		if ((to->groups[i] & 3) == SHARE_VM)
			to->groups[i] = 0;
	hold(to, act->slot, 1);
	/* The parent may have gained something since it was copied. */
	__sync_fetch_and_or(&to->labels, from->labels & ~to->cleared);
	return true;
}

/* exec_sharer: an exec ends the process's mappings, and what it has cleared. */
static __always_inline void exec_sharer(struct act *act, struct process *process)
{
	struct sharer *sharer = sharer_of(process);

	if (!sharer)
		return;
	hold(sharer, act->slot, -1);
	sharer->gates = 0;
	sharer->cleared = 0;
	sharer->writes_count = 0;
	sharer->reads_count = 0;
	__sync_fetch_and_and(&sharer->flags, SHARER_MANY_WAITS);
	__builtin_memset(sharer->writes, 0, sizeof(sharer->writes));
	__builtin_memset(sharer->reads, 0, sizeof(sharer->reads));
	for (u32 i = 0; i < MAX_SHARED_GROUPS; i++)
		if (!(sharer->fixed_groups >> i & 1))
			sharer->groups[i] = 0;
}

/* end_sharer forgets a process that is gone. */
static __always_inline void end_sharer(struct process *process)
{
	struct sharer *sharer = sharer_of(process);
	struct scope *scope = scope_at(process->scope);
	u64 id = process->id;

	if (!sharer || !scope || scope->generation != process->generation)
		return;
	hold(sharer, process->scope, -1);
	sharer->gates = 0;
	if (!bpf_map_delete_elem(&sharers, &id))
		__sync_fetch_and_add(&scope->sharers, -1);
}

#endif
