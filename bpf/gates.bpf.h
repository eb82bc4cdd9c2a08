/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Gates: a gate is fresh when it was armed after it last became stale. Epochs come
 * from the scope's own clock; 0 is never. While somebody holds a gate, by a mapping
 * that may write at any time, it is not fresh. What opens one, or makes an open one stale,
 * is told: that is rare.
 */
#ifndef ACTPLANE_GATES_H
#define ACTPLANE_GATES_H

#include "gain.bpf.h"
#include "match.bpf.h"

static __always_inline bool gate_fresh(struct scope *scope, u64 gate)
{
	BOUND(gate, MAX_GATES - 1);
	return scope->armed[gate] > scope->stale[gate] && !scope->held[gate];
}

static __always_inline u64 tick(struct scope *scope)
{
	return __sync_fetch_and_add(&scope->clock, 1) + 1;
}

/* raise_to makes an epoch at least VALUE. It gives up after some lost races: then
 * somebody else has just written a newer one, and at worst a gate stays closed. */
static __always_inline void raise_to(u64 *epoch, u64 value)
{
	for (int i = 0; i < 8; i++) {
		u64 seen = *(volatile u64 *)epoch;

		if (seen >= value || __sync_val_compare_and_swap(epoch, seen, value) == seen)
			return;
	}
}

/* above is 1 if an epoch is later than another, and else 0, without a branch: the verifier
 * would follow each of them wherever gates are moved. */
static __always_inline u64 above(u64 epoch, u64 other)
{
	return (other - epoch) >> 63;
}

/* arm_gate returns the gate's bit if that opens the gate, and else 0. */
static __always_inline u64 arm_gate(struct scope *scope, u64 gate, u64 epoch)
{
	u64 opens;

	BOUND(gate, MAX_GATES - 1);
	opens = above(epoch, scope->stale[gate]) & ~above(scope->armed[gate], scope->stale[gate]) &
		above(1, scope->held[gate]);
	raise_to(&scope->armed[gate], epoch);
	return opens << gate;
}

/* spoil_gate returns the gate's bit if the gate was open, and else 0. */
static __always_inline u64 spoil_gate(struct scope *scope, u64 gate)
{
	u64 closes;

	BOUND(gate, MAX_GATES - 1);
	closes = above(scope->armed[gate], scope->stale[gate]);
	raise_to(&scope->stale[gate], tick(scope));
	return closes << gate;
}

static __always_inline u64 gate_bit(u64 gate)
{
	BOUND(gate, MAX_GATES - 1);
	return 1ULL << gate;
}

static __always_inline bool args_reached(struct arg_set *set, s32 position)
{
	u64 word = (u32)position >> 6;

	if (position < 0)
		return true;
	BOUND(word, ARG_WORDS - 1);
	return set->words[word] >> (position & 63) & 1;
}

/* A gate that waits for the exit status of the process that runs now. */
static __always_inline void wait_for_exit(struct scope *scope, struct gate_ref *ref)
{
	struct process *process = current_process();
	u64 count;

	if (!process)
		return;
	count = process->pending_count;
	if (count >= MAX_PENDING)
		return; /* one gate fewer opens */
	process->pending_count = count + 1;
	BOUND(count, MAX_PENDING - 1);
	process->pending[count].epoch = tick(scope);
	process->pending[count].gate = ref->gate;
	process->pending[count].exit = ref->exit;
}

/* note_armed remembers what the exec of the current process has armed. False: there is
 * no room, so that it is not to be armed. */
static __always_inline bool note_armed(u32 gate, u64 epoch)
{
	struct process *process = current_process();
	u64 count;

	if (!process)
		return false;
	count = process->opened.armed_count;
	if (count >= MAX_PENDING)
		return false;
	process->opened.armed_count = count + 1;
	BOUND(count, MAX_PENDING - 1);
	process->opened.armed[count].gate = gate;
	process->opened.armed[count].epoch = epoch;
	return true;
}

static __always_inline u64 arm_now(struct scope *scope, u32 gate, u32 exec)
{
	u64 epoch = tick(scope);

	if (exec && !note_armed(gate, epoch))
		return 0;
	return arm_gate(scope, gate, epoch);
}

struct gate_walk {
	u32 slot;
	u32 image;
	struct range list, more; /* of two rows */
	u32 exec;		 /* argv is in the thread's state */
	u32 trusted;		 /* may arm */
	u32 arming;		 /* the second round */
	u64 opened, staled;	 /* gates, by it */
};

static long gate_step(u64 step, struct gate_walk *walk)
{
	u32 at = step < walk->list.count ? walk->list.first + (u32)step
					 : walk->more.first + (u32)step - walk->list.count;
	struct gate_ref *ref = table_entry(gate_refs, walk->image, at);
	struct scope *scope = scope_at(walk->slot);

	if (!ref || !scope)
		return 1;
	if (ref->arm != walk->arming)
		return 0;
	if (walk->exec) {
		struct thread *thread = thread_state();

		/* What cannot be looked at spoils, and does not arm. */
		if (!thread || !args_reached(&thread->exec.reached, ref->arg)) {
			if (thread || ref->arm)
				return 0;
		}
	}
	if (!ref->arm)
		walk->staled |= spoil_gate(scope, ref->gate);
	else if (walk->trusted && ref->exit >= 0)
		wait_for_exit(scope, ref);
	else if (walk->trusted)
		walk->opened |= arm_now(scope, ref->gate, walk->exec);
	return 0;
}

/*
 * move_gates does to the gates what an event of operation OP on a path's rows does. First
 * what it spoils, then what it arms: an event never invalidates its own effect. It returns
 * the gates that were open and are stale now; those that it has opened are added to the
 * act's targets, which nobody needs any more.
 */
__noinline u64 move_gates(struct act *act, u32 numbers, u32 op, u32 trusted)
{
	struct gate_walk walk = { .exec = op == OP_EXEC, .trusted = trusted };
	struct row *row;
	u32 count;

	if (!act || op >= NUM_OPS)
		return 0;
	row = table_entry(rows, act->image, first_row(numbers));
	if (row)
		walk.list = row->gates[op];
	if (second_row(numbers)) {
		row = table_entry(rows, act->image, second_row(numbers));
		if (row)
			walk.more = row->gates[op];
	}
	count = walk.list.count + walk.more.count;
	if (!count)
		return 0;
	walk.slot = act->slot;
	walk.image = act->image;
	/* Not known to the verifier, so that a step changes nothing of what it knows. */
	walk.opened = act->targets;
	walk.staled = act->zero;
	bpf_loop(count, gate_step, &walk, 0);
	walk.arming = 1;
	bpf_loop(count, gate_step, &walk, 0);
	act->targets = walk.opened;
	return walk.staled;
}

/* note_gates tells what became of gates by what the current process does, with a STATUS. */
__noinline int note_gates(struct act *act, u64 gates, u32 move, u32 status)
{
	struct origin *origin;

	if (!act || !gates)
		return 0;
	origin = begin_gain(act, RECORD_GATE, move, gates);
	if (!origin)
		return 0;
	origin->other = status;
	if (move <= GATE_STALED)
		name_gain(origin, act);
	bpf_ringbuf_submit(origin, 0);
	return 0;
}

/* note_moves tells of the gates that an event on a file has opened or made stale. */
__noinline int note_moves(struct act *act, u64 staled, u64 mount, u64 dentry)
{
	if (!act || !(staled | act->targets))
		return 0;
	if (act->object_kind == OBJECT_NONE && dentry) {
		act->object = render(act->scratch, mount, dentry);
		act->object_kind = OBJECT_PATH;
	}
	note_gates(act, staled, GATE_STALED, 0);
	note_gates(act, act->targets, GATE_OPENED, 0);
	return 0;
}

#endif
