/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asks and their answers. A grant lifts one rule for one operation; it is taken
 * before the operation happens, so that of those who race for it one has it, and
 * given back when the operation is refused after all.
 */
#ifndef ACTPLANE_ASK_H
#define ACTPLANE_ASK_H

#include "sums.bpf.h"

#define DEFAULT_RULE 0x10000 /* and the number of the default */

/* take_grant takes a use of a grant. */
static __always_inline bool take_grant(struct answer *answer, u64 now, u8 *counted)
{
	if (answer->timed && (!answer->until || now < answer->until))
		return true;
	if (!answer->timed && answer->until && now >= answer->until)
		return false;
	for (u32 i = 0; i < 16; i++) {
		u32 left = *(volatile u32 *)&answer->count;

		if (!left)
			return false;
		if (__sync_val_compare_and_swap(&answer->count, left, left - 1) == left) {
			*counted = 1;
			return true;
		}
	}
	return false;
}

static __always_inline struct answer *answer_to(struct act *act, u64 *sum)
{
	struct ask_key key = { .sum = { sum[0], sum[1] },
			       .scope = act->slot,
			       .generation = act->generation };

	return bpf_map_lookup_elem(&answers, &key);
}

/* give_back gives back what was taken for an operation that did not happen. */
__noinline int give_back(struct act *act)
{
	struct thread *thread = thread_state();

	if (!act || !thread)
		return 0;
	for (u32 i = 0; i < MAX_LIFTED; i++) {
		struct lifted *lifted = &thread->ask.lifted[i];
		struct answer *answer;

		if (i >= thread->ask.count)
			break;
		answer = lifted->counted ? answer_to(act, lifted->sum) : NULL;
		if (answer)
			__sync_fetch_and_add(&answer->count, 1);
	}
	thread->ask.count = 0;
	return 0;
}

/* forget_request: false if there was none. */
static __always_inline bool forget_request(struct request_key *key)
{
	u32 slot = key->ask.scope;
	u32 *count;

	if (bpf_map_delete_elem(&requests, key))
		return false;
	count = bpf_map_lookup_elem(&requests_count, &slot);
	if (count)
		__sync_fetch_and_add(count, -1);
	return true;
}

static __always_inline struct request_key request_key(struct act *act, u64 *sum, bool held)
{
	struct process *process = held ? current_process() : NULL;
	struct request_key key = {
		.ask = { .sum = { sum[0], sum[1] },
			 .scope = act->slot,
			 .generation = act->generation },
		.process = process ? process->id : 0,
	};

	return key;
}

/* already tells whether the operation has this grant: from an earlier hook of it, or
 * because it uses what was opened with it. */
__noinline int already(struct act *act)
{
	struct process *process = current_process();
	struct thread *thread = thread_state();
	struct granted_use use = {};

	if (!act || !thread)
		return 0;
	use.sum[0] = thread->ask.use[0];
	use.sum[1] = thread->ask.use[1];
	for (u32 i = 0; i < MAX_LIFTED; i++)
		if (i < thread->ask.count && thread->ask.lifted[i].sum[0] == thread->ask.sum[0] &&
		    thread->ask.lifted[i].sum[1] == thread->ask.sum[1])
			return true;
	if (!act->used || !process)
		return false;
	use.process = process->id;
	return bpf_map_lookup_elem(&granted_uses, &use) != NULL;
}

static __always_inline void lift(struct thread *thread, u8 counted)
{
	u64 at = thread->ask.count;
	struct lifted *lifted;

	if (at >= MAX_LIFTED)
		return;
	thread->ask.count = at + 1;
	BOUND(at, MAX_LIFTED - 1);
	lifted = &thread->ask.lifted[at];
	lifted->sum[0] = thread->ask.sum[0];
	lifted->sum[1] = thread->ask.sum[1];
	lifted->use[0] = thread->ask.use[0];
	lifted->use[1] = thread->ask.use[1];
	lifted->clause = thread->ask.ask.clause;
	lifted->op = thread->ask.ask.op;
	lifted->reason = thread->ask.ask.reason;
	lifted->counted = counted;
}

/* begin_lifted: what another operation of this thread has taken is not this one's. */
static __always_inline void begin_lifted(struct act *act, struct thread *thread)
{
	if (act->lifted)
		return;
	act->lifted = 1;
	if (act->stage == STAGE_WHOLE && thread->ask.count)
		give_back(act);
}

/* answered is what the answer to the operation that was summed says, ASKED_OPENED
 * when there is none. */
__noinline int answered(struct act *act)
{
	struct thread *thread = thread_state();
	u64 now = bpf_ktime_get_boot_ns();
	struct answer *answer;
	u8 counted = 0;

	if (!act || !thread)
		return ASKED_FULL;
	answer = answer_to(act, thread->ask.sum);
	if (!answer)
		return ASKED_OPENED;
	if (answer->denied) {
		if (answer->until && now >= answer->until)
			return ASKED_OPENED;
		__sync_fetch_and_add(&answer->used, 1);
		return ASKED_DENIED;
	}
	if (thread->ask.count >= MAX_LIFTED)
		return ASKED_FULL;
	if (!take_grant(answer, now, &counted))
		return ASKED_OPENED;
	lift(thread, counted);
	return ASKED_GRANTED;
}

/* default_op is what a default of a moved directory is about, which is no operation of
 * its own. */
static __always_inline u32 default_op(struct image *head, u64 bit)
{
	return head->defaults[OP_WRITE] >> bit & 1 ? OP_WRITE : OP_UNLINK;
}

/* the_ask finds the clause or the default of that number. OP is NUM_OPS where it is what
 * they say. */
__noinline int the_ask(struct act *act, u32 number, u32 op)
{
	struct thread *thread = thread_state();
	u64 bit = number & (MAX_DEFAULTS - 1);
	struct clause *clause;
	struct image *head;
	struct ask *ask;

	if (!act || !thread)
		return 0;
	ask = &thread->ask.ask;
	if (number & DEFAULT_RULE) {
		head = image_at(act->image);
		if (!head)
			return 0;
		BOUND(bit, MAX_DEFAULTS - 1);
		ask->hold = head->default_holds[bit];
		ask->op = op == OP_SEND ? OP_CONNECT : op < NUM_OPS ? op : default_op(head, bit);
		ask->clause = bit;
		ask->rule = number;
		ask->reason = REASON_DEFAULT;
		return 1;
	}
	clause = table_entry(clauses, act->image, number);
	if (!clause)
		return 0;
	/* One of connect is for what is sent then, too. */
	ask->op = op == OP_SEND || op >= NUM_OPS ? clause->op : op;
	ask->hold = clause->hold;
	ask->clause = number;
	ask->rule = clause->rule;
	ask->reason = REASON_CLAUSE;
	return 1;
}

/* answer_closes: who was held until now has the answer. */
__noinline int answer_closes(struct act *act)
{
	struct thread *thread = thread_state();
	struct request_key key;

	if (!act || !thread || !thread->ask.ask.hold)
		return 0;
	key = request_key(act, thread->ask.sum, true);
	return forget_request(&key);
}

/*
 * answer_ask decides on an ask by the answer that there is: it returns ASKED_GRANTED
 * when that lifts it, and ASKED_OPENED when there is none. What it is about is then in
 * the thread's state.
 */
static __always_inline u32 answer_ask(struct act *act, struct thread *thread, u32 number, u32 op)
{
	u32 asked;

	begin_lifted(act, thread);
	asked = unbound(act);
	if (asked)
		return asked;
	if (!the_ask(act, number, op) || !make_sums(act, thread->ask.ask.op, thread->ask.ask.rule))
		return ASKED_UNNAMED;
	asked = already(act) ? ASKED_GRANTED : answered(act);
	if (asked == ASKED_GRANTED || asked == ASKED_DENIED)
		answer_closes(act);
	return asked;
}

#endif
