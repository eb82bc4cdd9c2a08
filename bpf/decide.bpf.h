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
	ARGS_LOADER,  /* the same of a program's loader; and what refuses modified programs does */
	ARGS_TO_COME, /* an allow counts until they are known */
};

/* Added to the mode: the key is only another name, by which a program was invoked or a
 * file is protected. It opens nothing, so that defaults are left to the path. */
#define BY_NAME 0x100

#define BIT(op) (1U << (op))

struct decision {
	struct act *act;
	struct range list, more; /* of two rows */
	u32 image;
	u32 mode;
	u32 modified; /* bit of enum modified */
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
	if (mode == ARGS_LOADER)
		return (!clause->any || clause->unless_modified) && clause->effect >= EFFECT_ASK;
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
	struct act *act = d->act;

	if (!act || !scope_at(act->slot))
		return clause->effect != EFFECT_ALLOW;
	if ((act->labels & clause->all) != clause->all || act->labels & clause->none)
		return false;
	if (act->lineage & clause->unless_lineage)
		return false;
	if (clause->target >= 0 && act->targets >> (clause->target & 63) & 1)
		return false;
	if (d->modified & clause->unless_modified)
		return false;
	if (!args_match(clause, d->mode))
		return false;
	return !clause->unless_gates[0] || !excused_by_gate(act->slot, d->image, number);
}

/* candidate returns the STEPth clause of both rows' lists, and its number. */
static __always_inline struct clause *candidate(struct decision *d, u32 step, u32 *number)
{
	u32 at = step < d->list.count ? d->list.first + step : d->more.first + step - d->list.count;
	u32 *index = table_entry(candidates, d->image, at);

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

/* rank is greater of what goes before: what is stricter, and then what is first in the
 * file. */
static __always_inline u32 rank(u32 effect, u32 number)
{
	return effect << 16 | (0xffff - number);
}

/* Each list has its candidates strictest first, then in file order: the first of them
 * that matches decides, unless the other list's goes before it; the others are told. */
static long candidate_step(u64 step, struct decision *d)
{
	u32 number = 0;
	struct clause *clause = candidate(d, step, &number);
	struct act *act = d->act;

	if (!clause || !act)
		return 1;
	if (!clause_holds(d, clause, number))
		return 0;
	note_match(act->scratch, number);
	if (rank(clause->effect, number) <= rank(d->effect, d->clause))
		return 0;
	if (clause->effect == EFFECT_ASK) {
		add_ask(d, number);
		return 0;
	}
	d->clause = number;
	d->effect = clause->effect;
	d->reason = REASON_CLAUSE;
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
 * clause of the lists lifts holds. */
static __always_inline void decide_default(struct decision *d, u32 op)
{
	struct image *head = image_at(d->image);

	if (!head || op >= NUM_OPS)
		return;
	if (!d->modified) /* what is not known opens nothing */
		d->modified = ~0U;
	d->mode = allow_mode(d->mode);
	if (d->list.count | d->more.count)
		bpf_loop(d->list.count + d->more.count, allow_step, d, 0);
	d->lifted = head->defaults[op] & ~d->lifted; /* those that are left */
	if (d->lifted)
		bpf_loop(MAX_DEFAULTS, default_step, d, 0);
}

/* precedes: the strictest holds; of equals what the policy says goes before what the
 * language itself refuses, a clause before a default, and what is first in the file before
 * the rest. */
static __always_inline bool precedes(struct decision *d, struct act *act)
{
	if (d->effect != act->effect || d->effect == EFFECT_ALLOW)
		return d->effect > act->effect;
	if (act->reason == REASON_MOVED_SOURCE)
		return d->reason != REASON_MOVED_SOURCE;
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
		.act = act,
		.image = act->image,
		.mode = mode,
		.clause = act->zero,
		.effect = act->zero,
		.reason = act->zero,
		.lifted = act->zero,
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

/* forget_asks begins a decision in which no ask matches yet. */
static __always_inline void forget_asks(struct act *act)
{
	struct image *head = image_at(act->image);
	struct thread *thread;

	if (!head || !head->asks)
		return;
	thread = new_thread_state();
	if (thread)
		thread->ask.matches = 0;
}

/* asks_matched tells whether asks matched since then. */
static __always_inline bool asks_matched(struct act *act)
{
	struct image *head = image_at(act->image);
	struct thread *thread;

	if (!head || !head->asks)
		return false;
	thread = thread_state();
	return thread && thread->ask.matches;
}

/*
 * decide_row is decide but for asks: it returns whether any are to be settled. Without a
 * second row it looks at row 0, which has nothing, and it asks for little twice: what
 * the verifier need not tell apart, it looks at once.
 */
__noinline int decide_row(struct act *act, u32 numbers, u32 op, u32 mode)
{
	struct row *row, *second;
	u32 defaults, count, image, both[2];
	struct decision d;
	void *table;

	if (!act || op >= NUM_OPS)
		return 0;
	image = act->image;
	both[0] = first_row(numbers);
	both[1] = second_row(numbers);
	table = bpf_map_lookup_elem(&rows, &image);
	if (!table)
		return 0;
	row = bpf_map_lookup_elem(table, &both[0]);
	second = bpf_map_lookup_elem(table, &both[1]);
	if (!row || !second)
		return 0;
	defaults = row->default_ops >> op & (mode != ARGS_MAPPED) & (mode != ARGS_LOADER) &
		   !(mode & BY_NAME) & !act->device;
	count = row->clauses[op].count + second->clauses[op].count;
	if (!(count | defaults))
		return 0;
	forget_asks(act);
	d = about(act, mode & ~BY_NAME);
	d.list = row->clauses[op];
	d.more = second->clauses[op];
	if ((row->modified | second->modified) && numbers != ROW_UNKNOWN)
		d.modified = act->used == USED_WRITABLE
				     ? BIT(MODIFIED_YES) | BIT(MODIFIED_NO)
				     : BIT(file_modified(act) & 3) & ~BIT(MODIFIED_UNKNOWN);
	if (count)
		bpf_loop(count, candidate_step, &d, 0);
	if (defaults) {
		d.list = row->allows[op];
		d.more = second->allows[op];
		decide_default(&d, op);
	}
	rule(act, &d, op, numbers);
	return d.effect < EFFECT_ASK && act->effect < EFFECT_BLOCK && asks_matched(act);
}

/* decide asks the clauses that a path's rows list for OP, and keeps the strictest verdict
 * in ACT. Two calls, since one inside the other would take too much of the stack. */
static __always_inline void decide(struct act *act, u32 numbers, u32 op, u32 mode)
{
	if (decide_row(act, numbers, op, mode))
		settle_asks(act, op, numbers);
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
