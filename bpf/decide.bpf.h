/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The verdict on one event, from the candidates that its row lists. */
#ifndef ACTPLANE_DECIDE_H
#define ACTPLANE_DECIDE_H

#include "ask.bpf.h"
#include "gates.bpf.h"
#include "match.bpf.h"

/* Which clauses are asked. Those that look at argv can only be asked when it is
 * known, and are asked again when the kernel has its own copy. */
enum args_mode {
	ARGS_NONE,    /* no exec: there is no argv */
	ARGS_KNOWN,   /* every clause */
	ARGS_UNKNOWN, /* without those that look at argv */
	ARGS_ONLY,    /* only those */
	ARGS_MAPPED,  /* no exec, but a program's code: what refuses a named program does */
	ARGS_TO_COME, /* an allow counts until they are known */
};

/* Added to the mode: the key is only the name by which a program was invoked. It opens
 * nothing, so that defaults are left to the path. */
#define BY_NAME 0x100

#define BIT(op) (1U << (op))

struct decision {
	u64 labels, lineage, targets;
	u32 slot;
	u32 image, first;
	u32 mode;
	u32 modified; /* bit of enum modified */
	u32 scratch;  /* number of the buffer */
	u32 clause;   /* out */
	u32 effect;   /* out */
	u32 reason;   /* out */
	u64 lifted;   /* out: defaults */
};

/* add_ask notes an ask that matches; what it says, its answer decides. More than an
 * operation can have behind it are refused. In the thread's state, since the verifier
 * would look at each number of them by itself. */
static __always_inline bool add_ask(struct decision *d, u32 number)
{
	struct thread *thread = thread_state();
	u64 at = thread ? thread->ask.matches : MAX_LIFTED;

	if (!thread || at >= MAX_LIFTED) {
		d->effect = EFFECT_BLOCK;
		d->reason = REASON_TOO_MANY_ASKS;
		return false;
	}
	thread->ask.matches = at + 1;
	BOUND(at, MAX_LIFTED - 1);
	thread->ask.matching[at] = number;
	return true;
}

/* excused_by_gate tells whether a gate of the clause of a NUMBER is fresh. A function of
 * its own, since the verifier would follow each of the gates both ways wherever it is
 * asked. What cannot be looked at opens nothing. */
__noinline u32 excused_by_gate(u32 slot, u32 image, u32 number)
{
	struct clause *clause = table_entry(clauses, image, number);
	struct scope *scope = scope_at(slot);

	if (!scope || !clause)
		return clause && clause->effect == EFFECT_ALLOW;
	for (int i = 0; i < MAX_CLAUSE_GATES; i++) {
		u8 gate = clause->unless_gates[i];

		if (!gate)
			break;
		if (gate_fresh(scope, gate - 1))
			return 1;
	}
	return 0;
}

static __always_inline bool args_match(struct clause *clause, u32 mode)
{
	struct thread *thread;

	if (mode == ARGS_MAPPED)
		return !clause->any && clause->effect >= EFFECT_ASK;
	if (mode == ARGS_TO_COME)
		return true;
	if (clause->arg < 0)
		return mode != ARGS_ONLY;
	if (mode == ARGS_UNKNOWN)
		return false;
	thread = thread_state();
	if (!thread)
		return clause->effect != EFFECT_ALLOW;
	return args_reached(&thread->exec.reached, clause->arg);
}

static __always_inline bool clause_holds(struct decision *d, struct clause *clause, u32 number)
{
	struct scope *scope = scope_at(d->slot);

	if (!scope)
		return clause->effect != EFFECT_ALLOW;
	if ((d->labels & clause->all) != clause->all || d->labels & clause->none)
		return false;
	if (d->lineage & clause->unless_lineage)
		return false;
	if (clause->target >= 0 && d->targets >> (clause->target & 63) & 1)
		return false;
	if (d->modified & clause->unless_modified)
		return false;
	if (!args_match(clause, d->mode))
		return false;
	return !clause->unless_gates[0] || !excused_by_gate(d->slot, d->image, number);
}

/* candidate returns the STEPth clause of the row's list, and its number. */
static __always_inline struct clause *candidate(struct decision *d, u64 step, u32 *number)
{
	u32 *index = table_entry(candidates, d->image, d->first + (u32)step);

	if (!index)
		return NULL;
	*number = *index;
	return table_entry(clauses, d->image, *index);
}

/* note_match keeps the number of a clause that matches for the record, if there is one. In
 * the buffer, since the verifier would look at each count of them by itself. */
__noinline int note_match(u32 buffer, u32 number)
{
	struct scratch *scratch = scratch_at(buffer);
	u64 at;

	if (!scratch)
		return 0;
	at = scratch->matches;
	scratch->matches = at + 1;
	if (at >= MAX_MATCHES)
		return 0;
	BOUND(at, MAX_MATCHES - 1);
	scratch->matching[at] = number;
	return 0;
}

/* Candidates come strictest first, then in file order: the first that matches is
 * the verdict, and the others are told with it. */
static long candidate_step(u64 step, struct decision *d)
{
	u32 number = 0;
	struct clause *clause = candidate(d, step, &number);

	if (!clause)
		return 1;
	if (!clause_holds(d, clause, number))
		return 0;
	note_match(d->scratch, number);
	if (d->effect != EFFECT_ALLOW)
		return 0;
	if (clause->effect == EFFECT_ASK) {
		add_ask(d, number);
		return 0;
	}
	d->clause = number;
	d->effect = clause->effect;
	return 0;
}

static long allow_step(u64 step, struct decision *d)
{
	u32 number = 0;
	struct clause *clause = candidate(d, step, &number);

	if (!clause)
		return 1;
	if (clause_holds(d, clause, number))
		d->lifted |= clause->lifts;
	return 0;
}

static __always_inline u32 allow_mode(u32 mode)
{
	if (mode == ARGS_UNKNOWN)
		return ARGS_TO_COME;
	return mode == ARGS_ONLY ? ARGS_KNOWN : mode;
}

/* Defaults come strictest first; STEP is the number of one. */
static long default_step(u64 step, struct decision *d)
{
	struct image *head = image_at(d->image);
	u64 bit = step;
	u8 effect;

	if (!head || !(d->lifted >> step))
		return 1;
	if (!(d->lifted >> step & 1))
		return 0;
	BOUND(bit, MAX_DEFAULTS - 1);
	effect = head->default_effects[bit];
	if (effect <= d->effect)
		return 1;
	if (effect == EFFECT_ASK)
		return !add_ask(d, DEFAULT_RULE | step);
	d->effect = effect;
	d->clause = step;
	d->reason = REASON_DEFAULT;
	return 1;
}

/* decide_default asks the operation's defaults, of which the strictest that no allow
 * clause lifts holds. */
static __always_inline void decide_default(struct decision *d, struct row *row, u32 op)
{
	struct image *head = image_at(d->image);

	if (!head || op >= NUM_OPS)
		return;
	d->first = row->allows[op].first;
	if (!d->modified) /* what is not known opens nothing */
		d->modified = ~0U;
	d->mode = allow_mode(d->mode);
	if (row->allows[op].count)
		bpf_loop(row->allows[op].count, allow_step, d, 0);
	d->lifted = head->defaults[op] & ~d->lifted; /* those that are left */
	if (d->lifted)
		bpf_loop(MAX_DEFAULTS, default_step, d, 0);
}

/* precedes: the strictest holds; of equals a clause goes before a default, and what is
 * first in the file before the rest. */
static __always_inline bool precedes(struct decision *d, struct act *act)
{
	if (d->effect != act->effect || d->effect == EFFECT_ALLOW)
		return d->effect > act->effect;
	if (d->reason != REASON_CLAUSE)
		return false;
	return act->reason == REASON_DEFAULT ||
	       (act->reason == REASON_CLAUSE && d->clause < act->clause);
}

/* rule makes a decision the act's verdict, if it goes before what was decided so far. */
static __always_inline void rule(struct act *act, struct decision *d, u32 op, u32 row)
{
	if (!precedes(d, act))
		return;
	act->effect = d->effect;
	act->clause = d->clause;
	act->reason = d->reason;
	act->op = op;
	act->row = row;
	act->asked = ASKED_NOT;
	act->turns++;
}

/* about begins a decision on ACT. */
static __always_inline struct decision about(struct act *act, u32 mode)
{
	struct decision d = {
		.labels = act->labels,
		.lineage = act->lineage,
		.targets = act->targets,
		.slot = act->slot,
		.image = act->image,
		.mode = mode,
		.scratch = act->scratch,
	};

	return d;
}

/* asked_before tells whether the ask that decides so far goes before another. */
static __always_inline bool asked_before(struct act *act, u32 number)
{
	return act->effect == EFFECT_ASK &&
	       (number & DEFAULT_RULE || (act->reason == REASON_CLAUSE && act->clause <= number));
}

/*
 * settle_asks makes of the asks that match, unless something stricter does, what
 * their answers say: of those without one the first in file order decides. What the
 * one is about that decides stays in the thread's state.
 */
__noinline int settle_asks(struct act *act, u32 op, u32 row)
{
	struct thread *thread = thread_state();
	u32 number, asked, count;

	if (!act || !thread)
		return 0;
	count = thread->ask.matches;
	_Pragma("clang loop unroll(disable)") for (u32 i = 0; i < MAX_LIFTED; i++)
	{
		if (i >= count || act->effect >= EFFECT_BLOCK)
			break;
		number = thread->ask.matching[i];
		asked = answer_ask(act, thread, number, op);
		if (asked == ASKED_GRANTED || (asked != ASKED_DENIED && asked_before(act, number)))
			continue;
		act->effect = asked == ASKED_DENIED ? EFFECT_BLOCK : EFFECT_ASK;
		act->clause = number & (DEFAULT_RULE - 1);
		act->reason = number & DEFAULT_RULE ? REASON_DEFAULT : REASON_CLAUSE;
		act->asked = asked;
		act->op = op < NUM_OPS ? op : thread->ask.ask.op;
		act->row = row;
		act->turns++;
		thread->ask.deciding[0] = thread->ask.sum[0];
		thread->ask.deciding[1] = thread->ask.sum[1];
		thread->ask.hold = thread->ask.ask.hold;
	}
	return 0;
}

/* decide_row is decide but for asks: it returns whether any are to be settled. */
__noinline int decide_row(struct act *act, u32 number, u32 op, u32 mode)
{
	struct decision d;
	struct thread *thread = NULL;
	struct image *head;
	bool asks;
	struct row *row;
	bool defaults;

	if (!act || op >= NUM_OPS)
		return 0;
	row = table_entry(rows, act->image, number);
	if (!row)
		return 0;
	defaults = row->default_ops >> op & 1 && mode != ARGS_MAPPED && !(mode & BY_NAME) &&
		   !act->device;
	if (!row->clauses[op].count && !defaults)
		return 0;
	head = image_at(act->image);
	if (head && head->asks) {
		thread = new_thread_state();
		if (thread)
			thread->ask.matches = 0;
	}
	d = about(act, mode & ~BY_NAME);
	d.first = row->clauses[op].first;
	if (row->modified && number != ROW_UNKNOWN)
		d.modified = 1U << (file_modified(act) & 3) & ~(1U << MODIFIED_UNKNOWN);
	if (row->clauses[op].count)
		bpf_loop(row->clauses[op].count, candidate_step, &d, 0);
	if (defaults)
		decide_default(&d, row, op);
	asks = thread && thread->ask.matches && d.effect < EFFECT_ASK && act->effect < EFFECT_BLOCK;
	rule(act, &d, op, number);
	return asks;
}

/* decide asks the clauses that a row lists for OP, and keeps the strictest verdict
 * in ACT. Two calls, since one inside the other would take too much of the stack. */
static __always_inline void decide(struct act *act, u32 number, u32 op, u32 mode)
{
	if (decide_row(act, number, op, mode))
		settle_asks(act, op, number);
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
	act->asked = ASKED_NOT;
}

#endif
