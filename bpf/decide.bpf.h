/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The verdict on one event, from the candidates that its row lists. */
#ifndef ACTPLANE_DECIDE_H
#define ACTPLANE_DECIDE_H

#include "labels.bpf.h"
#include "match.bpf.h"

struct decision {
	struct scope *scope;
	struct arg_set *args; /* exec only */
	u64 labels, lineage, targets;
	u32 image, first;
	u32 clause; /* out */
	u32 effect; /* out */
	u32 args_only; /* only clauses that look at argv */
	u32 no_args; /* argv is not known: clauses that look at it do not match yet */
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

/* Candidates come strictest first, then in file order: the first that matches is
 * the verdict. */
static long candidate_step(u64 step, struct decision *d)
{
	u32 *index = table_entry(candidates, d->image, d->first + (u32)step);
	struct arg_set *args = d->args;
	struct clause *clause;

	if (!index)
		return 1;
	clause = table_entry(clauses, d->image, *index);
	if (!clause)
		return 1;
	if (clause->arg >= 0 ? d->no_args : d->args_only)
		return 0;
	if ((d->labels & clause->all) != clause->all || d->labels & clause->none)
		return 0;
	if (d->lineage & clause->unless_lineage)
		return 0;
	if (clause->target >= 0 && d->targets >> (clause->target & 63) & 1)
		return 0;
	if (args && !args_reached(args, clause->arg))
		return 0;
	if (excused_by_gate(d->scope, clause))
		return 0;
	d->clause = *index;
	d->effect = clause->effect;
	return 1;
}

enum args_mode {
	ARGS_ALL, /* every clause */
	ARGS_UNKNOWN, /* without those that look at argv */
	ARGS_ONLY, /* only those */
};

/* decide asks the clauses that ROW lists for OP, and keeps the strictest verdict
 * in ACT. */
static __noinline void decide(struct act *act, u32 row_number, u32 op, struct arg_set *args,
			      enum args_mode mode)
{
	struct row *row = table_entry(rows, act->image, row_number);
	struct decision d = {
		.scope = act->scope,
		.args = args,
		.labels = act->labels,
		.lineage = act->process->lineage,
		.targets = act->targets,
		.image = act->image,
		.args_only = mode == ARGS_ONLY,
		.no_args = mode == ARGS_UNKNOWN,
	};

	if (!row || op >= NUM_OPS || !row->clauses[op].count)
		return;
	d.first = row->clauses[op].first;
	bpf_loop(row->clauses[op].count, candidate_step, &d, 0);
	if (d.effect <= act->effect)
		return;
	act->effect = d.effect;
	act->clause = d.clause;
	act->op = op;
	act->row = row_number;
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
