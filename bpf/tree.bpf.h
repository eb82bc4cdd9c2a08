/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Directories that are renamed. All that is below has other names then, which nobody
 * can look at one by one. So the compiler has put directories in classes: for each
 * clause, source, protected pattern and gate, those below which it names the same
 * files. What has the old path and the new one in two classes counts.
 */
#ifndef ACTPLANE_TREE_H
#define ACTPLANE_TREE_H

#include "event.bpf.h"

struct tree_walk {
	struct decision d;
	u32 from, to; /* numbers of directories; NO_DIRECTORY: all classes differ */
	u32 words;
	u32 op;	      /* of what decided */
	u32 spoiling; /* the second round, of gates */
	u64 staled;   /* gates, in it */
	u32 pad;
	u64 lifted_at_one[2]; /* of write, and of unlink: defaults that only one path lifts */
};

static __always_inline bool apart(struct tree_walk *walk, struct move *move)
{
	u64 *from, *to;

	if (walk->from == NO_DIRECTORY || walk->to == NO_DIRECTORY)
		return true;
	from = table_entry(move_classes, walk->d.image, walk->from * walk->words + move->word);
	to = table_entry(move_classes, walk->d.image, walk->to * walk->words + move->word);
	return !from || !to || (*from ^ *to) & move->mask;
}

/* concern takes the verdict of one thing that names other files than before. */
static __always_inline void concern(struct tree_walk *walk, struct move *move)
{
	struct decision *d = &walk->d;
	struct clause *clause;

	if (move->kind == MOVE_SOURCE) {
		if (d->effect >= EFFECT_BLOCK)
			return;
		d->effect = EFFECT_BLOCK;
		d->reason = REASON_MOVED_SOURCE;
		d->clause = move->index;
		walk->op = move->op;
		return;
	}
	clause = table_entry(clauses, d->image, move->index);
	if (!clause || !d->act)
		return;
	if (move->kind == MOVE_ALLOW) {
		walk->lifted_at_one[move->op == OP_UNLINK] |= clause->lifts;
		return;
	}
	if (!clause_holds(d, clause, move->index))
		return;
	note_match(d->act->scratch, move->index);
	if (clause->effect < d->effect ||
	    (clause->effect == d->effect && d->reason != REASON_MOVED_SOURCE))
		return;
	if (clause->effect == EFFECT_ASK) {
		add_ask(d, move->index);
		return;
	}
	d->effect = clause->effect;
	d->reason = REASON_CLAUSE;
	d->clause = move->index;
	walk->op = move->op;
}

static long tree_step(u64 step, struct tree_walk *walk)
{
	struct move *move = table_entry(moves, walk->d.image, (u32)step);
	struct act *act = walk->d.act;
	struct scope *scope;

	if (!move || !act)
		return 1;
	if ((move->kind == MOVE_GATE) != walk->spoiling || !apart(walk, move))
		return 0;
	if (!walk->spoiling) {
		concern(walk, move);
		return 0;
	}
	scope = scope_at(act->slot);
	if (scope)
		walk->staled |= spoil_gate(scope, move->index);
	return 0;
}

/* A default that only the files of one place are excepted from holds. */
static __always_inline void tree_default(struct tree_walk *walk, struct image *head, u32 op)
{
	u32 before = walk->d.effect;

	walk->d.lifted = head->defaults[op] & walk->lifted_at_one[op == OP_UNLINK];
	if (walk->d.lifted)
		bpf_loop(MAX_DEFAULTS, default_step, &walk->d, 0);
	if (walk->d.effect != before)
		walk->op = op;
}

/* asks_of_tree tells whether asks are to be settled, of the directory as it is called
 * now: its path is in the buffer. */
static __always_inline bool asks_of_tree(struct act *act, struct decision *d, u64 from, u32 at)
{
	struct thread *thread = thread_state();

	act->object_kind = OBJECT_PATH;
	act->object = at;
	act->inode = (u64)BPF_CORE_READ((struct dentry *)from, d_inode);
	return thread && thread->ask.matches && d->effect < EFFECT_ASK &&
	       act->effect < EFFECT_BLOCK;
}

/* walk_tree looks at all that is not the same below the paths that two names have below
 * a mount: it decides, or SPOILING it makes gates stale. It returns whether asks are to
 * be settled. */
__noinline int walk_tree(struct act *act, u64 mount, u64 from, u64 to, u32 spoiling)
{
	struct tree_walk walk = { .spoiling = spoiling };
	struct thread *thread;
	struct image *head;
	bool asks;
	u32 at;

	if (!act)
		return 0;
	head = image_at(act->image);
	if (!head || !head->moves)
		return 0;
	thread = head->asks && !spoiling ? new_thread_state() : NULL;
	if (thread)
		thread->ask.matches = 0;
	walk.d = about(act, ARGS_NONE);
	walk.staled = act->zero;
	walk.words = head->move_words;
	at = render(act->scratch, mount, to);
	walk.to = path_directory(act->image, act->scratch, at);
	at = render(act->scratch, mount, from);
	walk.from = path_directory(act->image, act->scratch, at);
	bpf_loop(head->moves, tree_step, &walk, 0);
	if (spoiling) {
		note_gates(act, walk.staled, GATE_STALED, 0);
		return 0;
	}
	tree_default(&walk, head, OP_WRITE);
	tree_default(&walk, head, OP_UNLINK);
	asks = thread && asks_of_tree(act, &walk.d, from, at);
	rule(act, &walk.d, walk.op, ROW_NONE);
	return asks;
}

__noinline int walk_tree_below(struct act *act, u64 mount, u64 from, u64 to, u32 spoiling)
{
	if (act && walk_tree(act, mount, from, to, spoiling))
		settle_asks(act, NUM_OPS, ROW_NONE); /* the operations of the clauses */
	return 0;
}

/* walk_trees does so for all mounts that show the directory, since its files get other
 * names there too. With too many of them, nothing is known. The path in the buffer is
 * lost. */
__noinline int walk_trees(struct act *act, u64 mount, u64 from, u64 to, u32 spoiling)
{
	u64 other;

	if (!act)
		return 0;
	walk_tree_below(act, mount, from, to, spoiling);
	for (u32 i = 0; i < MAX_NAMES; i++) {
		other = mount_of(from, i);
		if (other && other != mount)
			walk_tree_below(act, other, from, to, spoiling);
	}
	if (mount_of(from, MAX_NAMES))
		walk_tree_below(act, 0, from, to, spoiling);
	return 0;
}

#endif
