/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The verdict on one event, from the candidates that its row lists. */
#ifndef ACTPLANE_DECIDE_H
#define ACTPLANE_DECIDE_H

#include "gates.bpf.h"
#include "labels.bpf.h"
#include "match.bpf.h"

/* Which clauses are asked. Those that look at argv can only be asked when it is
 * known, and are asked again when the kernel has its own copy. */
enum args_mode {
	ARGS_NONE,    /* no exec: there is no argv */
	ARGS_KNOWN,   /* every clause */
	ARGS_UNKNOWN, /* without those that look at argv */
	ARGS_ONLY,    /* only those */
	ARGS_MAPPED,  /* no exec, but a program's code: what refuses a named program does */
};

struct decision {
	u64 labels, lineage, targets;
	u32 slot;
	u32 image, first;
	u32 mode;
	u32 clause; /* out */
	u32 effect; /* out */
};

static __always_inline bool excused_by_gate(struct scope *scope, struct clause *clause)
{
	for (int i = 0; i < MAX_CLAUSE_GATES; i++) {
		u8 gate = clause->unless_gates[i];

		if (!gate)
			break;
		if (gate_fresh(scope, gate - 1))
			return true;
	}
	return false;
}

static __always_inline bool args_match(struct clause *clause, u32 mode)
{
	struct thread *thread;

	if (mode == ARGS_MAPPED)
		return !clause->any && clause->effect >= EFFECT_ASK;
	if (clause->arg < 0)
		return mode != ARGS_ONLY;
	if (mode == ARGS_UNKNOWN)
		return false;
	thread = thread_state();
	return !thread || args_reached(&thread->exec.reached, clause->arg);
}

/* Candidates come strictest first, then in file order: the first that matches is
 * the verdict. */
static long candidate_step(u64 step, struct decision *d)
{
	u32 *index = table_entry(candidates, d->image, d->first + (u32)step);
	struct scope *scope = scope_at(d->slot);
	struct clause *clause;

	if (!index || !scope)
		return 1;
	clause = table_entry(clauses, d->image, *index);
	if (!clause)
		return 1;
	if ((d->labels & clause->all) != clause->all || d->labels & clause->none)
		return 0;
	if (d->lineage & clause->unless_lineage)
		return 0;
	if (clause->target >= 0 && d->targets >> (clause->target & 63) & 1)
		return 0;
	if (!args_match(clause, d->mode) || excused_by_gate(scope, clause))
		return 0;
	d->clause = *index;
	d->effect = clause->effect;
	return 1;
}

/* decide asks the clauses that a row lists for OP, and keeps the strictest verdict
 * in ACT. */
__noinline int decide(struct act *act, u32 number, u32 op, u32 mode)
{
	struct decision d = { .mode = mode };
	struct row *row;

	if (!act || op >= NUM_OPS)
		return 0;
	row = table_entry(rows, act->image, number);
	if (!row || !row->clauses[op].count)
		return 0;
	d.labels = act->labels;
	d.lineage = act->lineage;
	d.targets = act->targets;
	d.slot = act->slot;
	d.image = act->image;
	d.first = row->clauses[op].first;
	bpf_loop(row->clauses[op].count, candidate_step, &d, 0);
	if (d.effect <= act->effect)
		return 0;
	act->effect = d.effect;
	act->clause = d.clause;
	act->op = op;
	act->row = number;
	return 0;
}

static __always_inline bool denied(struct act *act)
{
	return act->effect >= EFFECT_ASK;
}

static __always_inline void refuse(struct act *act, enum op op, enum reason reason)
{
	act->effect = EFFECT_BLOCK;
	act->op = op;
	act->reason = reason;
}

#endif
