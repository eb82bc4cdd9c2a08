/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels that come without a hook: no program runs when memory is loaded or stored,
 * nor when a read that waited gets its data. So whatever has such a way in is listed
 * (struct sharer), and when something shared gains a label, all that are listed for it
 * gain it there and then, and what they share in turn; each process takes it over with
 * its next event.
 */
#ifndef ACTPLANE_SHARE_H
#define ACTPLANE_SHARE_H

#include "gain.bpf.h"
#include "gates.bpf.h"
#include "labels.bpf.h"

/* share_number is how struct sharer names something shared. That two have the same
 * number is possible, and carries a label too far. */
static __always_inline u64 share_number(u64 what, u64 more, enum share_kind kind)
{
	u64 number = what * 0x9e3779b97f4a7c15ULL;

	number = (number ^ number >> 32) + more;
	number *= 0xbf58476d1ce4e5b9ULL;
	number ^= number >> 29;
	return (number & ~3ULL) | kind | 4; /* never 0 */
}

static __always_inline u64 id_number(struct file_id *id, enum share_kind kind)
{
	return share_number(id->ino, (u64)id->dev << 32 | id->generation, kind);
}

static __always_inline struct sharer *sharer_of(struct process *process)
{
	u64 id = process->id;

	return bpf_map_lookup_elem(&sharers, &id);
}

/* count_sharer takes one of the scope's share of the table. */
static __always_inline bool count_sharer(struct scope *scope)
{
	if (__sync_fetch_and_add(&scope->sharers, 1) < MAX_SCOPE_SHARERS)
		return true;
	__sync_fetch_and_add(&scope->sharers, -1);
	return false;
}

/* sharer_for returns the entry of a process of the act's scope, and makes it if there
 * is none. NULL: there is no room, deny. */
static __always_inline struct sharer *sharer_for(struct act *act, struct process *process)
{
	struct sharer *sharer = sharer_of(process), *fresh;
	struct scope *scope = scope_at(act->slot);
	u64 id = process->id;
	u32 zero = 0;

	if (sharer)
		return sharer;
	fresh = bpf_map_lookup_elem(&new_sharers, &zero);
	if (!scope || !fresh || !count_sharer(scope))
		return NULL;
	if (bpf_map_update_elem(&sharers, &id, fresh, BPF_NOEXIST))
		__sync_fetch_and_add(&scope->sharers, -1); /* full, or another thread's */
	sharer = bpf_map_lookup_elem(&sharers, &id);
	if (!sharer)
		return NULL;
	sharer->scope = act->slot;
	sharer->generation = act->generation;
	sharer->cleared = process->cleared;
	/* Now it is seen; what the process gained before that is added last. */
	__sync_fetch_and_or(&sharer->labels, process->labels);
	return sharer;
}

__noinline int make_sharer(struct act *act)
{
	struct process *process = current_process();

	return act && process && sharer_for(act, process);
}

/* own_sharer returns the current process's entry, new if need be, or NULL. */
static __always_inline struct sharer *own_sharer(struct act *act)
{
	struct process *process = current_process();

	if (!process)
		return NULL;
	return sharer_of(process) ?: make_sharer(act) ? sharer_of(process) : NULL;
}

static __always_inline void saturate_scope(struct act *act)
{
	struct scope *scope = scope_at(act->slot);

	if (scope)
		saturate(act, scope);
}

/* everything is what a process gains when what it reads cannot be told. */
static __always_inline u64 everything(struct act *act)
{
	struct image *head = image_at(act->image);

	return head ? head->labels & ~uncarried(head) : ~0ULL;
}

/* in_group tells whether a process shares memory without a file. */
static __always_inline bool in_group(struct sharer *sharer)
{
	u64 any = 0;

	for (u32 i = 0; i < MAX_SHARED_GROUPS; i++)
		any |= sharer->groups[i];
	return any;
}

/* push_growth notes what carry_on is to carry further. With more than fits, everything
 * that is shared in the scope gains it. */
static __always_inline void push_growth(struct thread *thread, u64 share, u64 labels)
{
	u64 count = thread->growths_count;

	if (count >= MAX_GROWTHS) {
		thread->growths[0].share = 0;
		thread->growths[0].labels |= labels;
		return;
	}
	thread->growths_count = count + 1;
	BOUND(count, MAX_GROWTHS - 1);
	thread->growths[count].share = share;
	thread->growths[count].labels = labels;
}

/* What carry_on works with; the thread has the thing that gained labels (growing), with
 * share 0 for whatever is shared. */
struct settling {
	struct act *act;
	struct sharer *sharer; /* whose writes are gone through */
	u64 changed;
};

/* own_number is the share of a process alone. */
static __always_inline u64 own_number(u64 id)
{
	return share_number(id, 2, SHARE_GROUP);
}

static __always_inline bool lists(struct sharer *sharer, u64 id, u64 share)
{
	u32 kind = share & 3, many = SHARER_MANY_WRITES;

	if (kind == SHARE_CHANNEL)
		many = SHARER_MANY_WAITS;
	else if (kind == SHARE_FILE)
		many |= SHARER_MANY_READS;
	if (!share || sharer->flags & many || share == own_number(id))
		return true;
	if (kind == SHARE_CHANNEL) {
		for (u32 i = 0; i < MAX_SHARED_WAITS; i++)
			if (sharer->waits[i].channel == share || sharer->waits[i].other == share)
				return true;
		return false;
	}
	if (kind != SHARE_FILE) {
		for (u32 i = 0; i < MAX_SHARED_GROUPS; i++)
			if (sharer->groups[i] == share)
				return true;
		return false;
	}
	for (u32 i = 0; i < MAX_SHARED_READS; i++)
		if (sharer->reads[i] == share)
			return true;
	return false;
}

static __always_inline bool passes(struct sharer *sharer, u64 slot)
{
	return sharer->passes >> slot & 1;
}

/* spread_step gives labels to one of the files that a process has mapped to write, or
 * behind those, of the pipes into which it passes something on. */
static long spread_step(u64 step, struct settling *s)
{
	struct thread *thread = thread_state();
	u64 labels, gained, slot = step - MAX_SHARED_WRITES;

	if (!s->sharer || !s->act || !thread)
		return 1;
	if (step < MAX_SHARED_WRITES) {
		if (step >= s->sharer->writes_count)
			return 0;
		BOUND(step, MAX_SHARED_WRITES - 1);
		thread->marking.key.id = s->sharer->writes[step];
	} else {
		BOUND(slot, MAX_SHARED_WAITS - 1);
		if (!passes(s->sharer, slot))
			return 0;
		thread->marking.key.id = s->sharer->outs[slot];
	}
	thread->marking.fresh.labels = 0; /* there is an entry */
	thread->marking.fresh.flags = FILE_SHARED;
	thread->marking.fresh.kept = 0;
	labels = s->sharer->labels;
	if (!matters(s->act, &labels, FILE_MODIFIED))
		return 0;
	gained = add_to(s->act, &thread->marking, labels, FILE_MODIFIED, false);
	if (!gained || !thread->marking.shared)
		return 0;
	push_growth(thread, id_number(&thread->marking.key.id, SHARE_FILE), gained);
	push_growth(thread, id_number(&thread->marking.key.id, SHARE_CHANNEL), gained);
	return 0;
}

/* spread gives what a process has gained to all that it writes without being seen. */
static __always_inline void spread(struct settling *s, struct sharer *sharer, u64 labels)
{
	struct thread *thread = thread_state();

	if (!thread)
		return;
	if (sharer->flags & SHARER_MANY_WRITES) {
		saturate_scope(s->act);
		push_growth(thread, 0, labels);
	}
	for (u32 i = 0; i < MAX_SHARED_GROUPS; i++)
		if (sharer->groups[i])
			push_growth(thread, sharer->groups[i], labels);
	s->sharer = sharer;
	if (sharer->writes_count || sharer->passes)
		bpf_loop(MAX_SHARED_WRITES + MAX_SHARED_WAITS, spread_step, s, 0);
}

static u64 settle_step(void *map, u64 *id, struct sharer *sharer, struct settling *s)
{
	struct thread *thread = thread_state();
	u64 labels;

	if (!s->act || !thread || sharer->scope != s->act->slot ||
	    sharer->generation != s->act->generation)
		return 0;
	labels = thread->growing.labels & ~sharer->labels & ~sharer->cleared;
	if (!labels || !lists(sharer, *id, thread->growing.share))
		return 0;
	__sync_fetch_and_or(&sharer->labels, labels);
	if (thread->growing.share != own_number(*id)) /* which told it itself */
		note_passed(s->act, labels, WAY_SHARED_FILE + (thread->growing.share & 3), *id);
	s->changed = 1;
	spread(s, sharer, labels);
	return 0;
}

static long settle_round(u64 step, struct settling *s)
{
	struct thread *thread = thread_state();
	u64 last;

	if (!thread || !thread->growths_count)
		return 1;
	last = thread->growths_count - 1;
	thread->growths_count = last;
	BOUND(last, MAX_GROWTHS - 1);
	thread->growing = thread->growths[last];
	bpf_for_each_map_elem(&sharers, settle_step, s, 0);
	return 0;
}

/* More than can be needed: each sharer gains each label once. */
#define MAX_SETTLE_ROUNDS (1 << 20)

/* carry_on does what the thread's growths say until nothing changes. */
__noinline int carry_on(struct act *act)
{
	struct settling s = { .act = act };
	struct thread *thread = thread_state();
	struct scope *scope;

	if (!act || !thread)
		return 0;
	bpf_loop(MAX_SETTLE_ROUNDS, settle_round, &s, 0);
	scope = scope_at(act->slot);
	if (!scope)
		return 0;
	if (thread->growths_count) {
		thread->growths_count = 0;
		saturate(act, scope);
	}
	if (s.changed)
		__sync_fetch_and_add(&scope->growth, 1);
	return 0;
}

/* grow tells all who share something that it has gained labels. */
static __always_inline void grow(struct act *act, u64 share, u64 labels)
{
	struct scope *scope = scope_at(act->slot);
	struct thread *thread;

	if (!scope || !scope->sharers)
		return;
	thread = new_thread_state();
	if (!thread) {
		saturate_scope(act);
		return;
	}
	push_growth(thread, share, labels);
	carry_on(act);
}

/* add_marked is add_to of the thread's marking, in one place. */
__noinline u64 add_marked(struct act *act, u64 labels, u64 marks, u32 channel)
{
	struct thread *thread = thread_state();

	return act && thread ? add_to(act, &thread->marking, labels, marks, channel) : 0;
}

/* add_to_file adds labels and marks to a file, and returns what it gains by that. */
__noinline u64 add_to_file(struct act *act, u64 inode, u64 labels, u64 marks)
{
	struct thread *thread;

	if (!act || !inode || !matters(act, &labels, marks))
		return 0;
	thread = new_thread_state();
	if (!thread) {
		saturate_scope(act);
		return 0;
	}
	if (marks & FILE_CREATED)
		__builtin_memset(&thread->marking.fresh, 0, sizeof(thread->marking.fresh));
	else
		thread->marking.fresh = assumed_state(scope_at(act->slot), (void *)inode);
	if (later_id((void *)inode, &thread->marking.key.id))
		add_marked(act, labels, marks, false);
	thread->marking.key.id = file_id((void *)inode);
	return add_marked(act, labels, marks, false);
}

/* others_gain tells whether others get what the thread has marked last. */
static __always_inline bool others_gain(void)
{
	struct thread *thread = thread_state();

	return !thread || thread->marking.shared;
}

/* mark_file adds labels and marks to a file, and carries them on. Labels come from the
 * process where its contents are modified, and else from its name. */
__noinline int mark_file(struct act *act, u64 inode, u64 labels, u64 marks)
{
	u64 gained = act ? add_to_file(act, inode, labels, marks) : 0, given;
	struct file_id id;

	if (!gained)
		return 0;
	given = marks & FILE_MODIFIED ? act->labels : 0;
	id = file_id((void *)inode);
	note_give(act, gained & given, WAY_FILE, id.ino, id_where(&id));
	note_give(act, gained & ~given, WAY_SOURCE_FILE, id.ino, id_where(&id));
	if (others_gain())
		grow(act, id_number(&id, SHARE_FILE), gained);
	return 0;
}

/* give_stored adds labels to a file for what is kept beside its contents. */
__noinline int give_stored(struct act *act, u64 inode, u64 labels)
{
	struct file_id id;
	u64 gained;

	if (!act || !inode || !labels)
		return 0;
	gained = add_to_file(act, inode, labels, 0);
	if (!gained)
		return 0;
	id = file_id((void *)inode);
	note_give(act, gained, WAY_FILE, id.ino, id_where(&id));
	if (others_gain())
		grow(act, id_number(&id, SHARE_FILE), gained);
	return 0;
}

/* mark_channel is mark_file of what is no file. WHERE is the device and generation of its
 * id. */
__noinline int mark_channel(struct act *act, u64 ino, u64 where, u64 labels, u64 marks)
{
	struct file_id id = { .ino = ino, .dev = where >> 32, .generation = where };
	struct thread *thread;
	u64 gained;

	if (!act || !matters(act, &labels, marks))
		return 0;
	thread = new_thread_state();
	if (!thread) {
		saturate_scope(act);
		return 0;
	}
	thread->marking.key.id = id;
	__builtin_memset(&thread->marking.fresh, 0, sizeof(thread->marking.fresh));
	gained = add_marked(act, labels, marks, true);
	if (!gained)
		return 0;
	note_give(act, gained, way_of(id.dev), ino, where);
	grow(act, id_number(&id, SHARE_CHANNEL), gained);
	return 0;
}

/* gave tells all who share something with a process that it has gained labels. */
static __always_inline void gave(struct act *act, struct sharer *sharer, u64 id, u64 labels)
{
	labels &= everything(act) & ~sharer->labels & ~sharer->cleared;
	if (!labels)
		return;
	if (sharer->writes_count || sharer->passes || sharer->flags & SHARER_MANY_WRITES ||
	    in_group(sharer))
		grow(act, own_number(id), labels);
	else
		__sync_fetch_and_or(&sharer->labels, labels);
}

/*
 * gain gives the current process the labels that a flow brings: not those that its
 * program has cleared, nor those of integrity, which it loses when it gains another. It
 * returns those that it did not have, for the caller to note where they came from.
 */
__noinline u64 gain(struct act *act, u64 labels)
{
	struct process *process = current_process();
	struct sharer *sharer;

	if (!act || !process)
		return 0;
	labels &= ~process->cleared;
	act->labels |= labels;
	labels &= ~process->labels;
	if (!labels)
		return 0;
	labels = add_labels(process, image_at(act->image), labels);
	sharer = sharer_of(process);
	if (sharer)
		gave(act, sharer, process->id, labels);
	return labels;
}

/* clear_shared notes what a process's program has cleared: what it shares does not bring
 * that back. */
static __always_inline void clear_shared(struct process *process, u64 labels)
{
	struct sharer *sharer = sharer_of(process);

	if (!sharer)
		return;
	sharer->cleared = process->cleared;
	__sync_fetch_and_and(&sharer->labels, ~labels);
}

/* give_again: what its program had cleared was taken back, and is a process's again. */
static __always_inline void give_again(struct act *act, struct process *process)
{
	struct sharer *sharer = sharer_of(process);

	if (!sharer)
		return;
	sharer->cleared = process->cleared;
	gave(act, sharer, process->id, process->labels);
}

/* full_barrier: an atomic operation that returns something is one; MEMORY is any. */
static __always_inline void full_barrier(u32 *memory)
{
	u32 old = __sync_fetch_and_or(memory, 0);

	asm volatile("" : "+r"(old));
}

/* await notes that the thread reads a channel, and perhaps gets its data later. False:
 * there is no room, deny. */
static __always_inline bool await(struct act *act, u64 channel, u64 other)
{
	struct thread *thread = new_thread_state();
	struct sharer *sharer;
	u64 slot;

	if (!thread)
		return false;
	if (thread->wait_slot && thread->wait.channel == channel && thread->wait.other == other)
		return true;
	sharer = own_sharer(act);
	if (!sharer)
		return false;
	slot = thread->wait_slot;
	for (u32 i = 0; i < MAX_SHARED_WAITS && !slot; i++)
		if (!(sharer->wait_slots >> i & 1) &&
		    !(__sync_fetch_and_or(&sharer->wait_slots, 1U << i) >> i & 1))
			slot = i + 1;
	if (slot) {
		thread->wait_slot = slot;
		slot--;
		BOUND(slot, MAX_SHARED_WAITS - 1);
		if (passes(sharer, slot))
			__sync_fetch_and_and(&sharer->passes, ~(1U << slot));
		sharer->waits[slot].channel = channel;
		sharer->waits[slot].other = other;
	} else {
		__sync_fetch_and_or(&sharer->flags, SHARER_MANY_WAITS);
	}
	thread->wait.channel = channel;
	thread->wait.other = other;
	/* Only behind this are the channel's labels looked at: who adds to them later sees
	 * the slot. */
	full_barrier(&sharer->passes);
	return true;
}

/* pass_on notes that what the thread waits for goes on into a pipe, in which nobody looks
 * at it again. False: there is no slot for that. */
static __always_inline bool pass_on(struct sharer *sharer, struct file_id *out)
{
	struct thread *thread = thread_state();
	u64 slot;

	if (!thread || !thread->wait_slot)
		return false;
	slot = thread->wait_slot - 1;
	BOUND(slot, MAX_SHARED_WAITS - 1);
	sharer->outs[slot] = *out;
	__sync_fetch_and_or(&sharer->passes, 1U << slot);
	return true;
}

/* end_pass: what the thread has passed on is all in the pipe. */
static __always_inline void end_pass(void)
{
	struct process *process = current_process();
	struct thread *thread = thread_state();
	struct sharer *sharer;

	if (!process || !thread || !thread->wait_slot)
		return;
	sharer = sharer_of(process);
	if (sharer && passes(sharer, thread->wait_slot - 1 & 31))
		__sync_fetch_and_and(&sharer->passes, ~(1U << (thread->wait_slot - 1 & 31)));
}

/* end_wait frees the slot of a thread that ends. */
static __always_inline void end_wait(struct process *process)
{
	struct thread *thread = thread_state();
	struct sharer *sharer;

	if (!thread || !thread->wait_slot)
		return;
	sharer = sharer_of(process);
	if (sharer) {
		__sync_fetch_and_and(&sharer->passes, ~(1U << (thread->wait_slot - 1 & 31)));
		__sync_fetch_and_and(&sharer->wait_slots, ~(1U << (thread->wait_slot - 1 & 31)));
	}
	thread->wait_slot = 0;
}

#endif
