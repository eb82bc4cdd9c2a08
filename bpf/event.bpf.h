/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a hook begins and ends, and finds the row of a file. */
#ifndef ACTPLANE_EVENT_H
#define ACTPLANE_EVENT_H

#include "known.bpf.h"
#include "settle.bpf.h"
#include "share.bpf.h"

/* Of struct file. */
#define O_APPEND 02000

/* Of file_permission. */
#define MAY_WRITE 2
#define MAY_READ 4

static __always_inline u64 syscall_number(void)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	return BPF_CORE_READ(regs, orig_ax);
}

/* begin enters the scope for an event. False: nothing to do, *REFUSED is the
 * verdict. */
static __always_inline bool begin(struct act *act, bool *refused)
{
	enum membership membership = enter(act);

	*refused = membership == REFUSED;
	if (membership != INSIDE || in_setup(act))
		return false;
	*refused = !acquire(act);
	return !*refused;
}

static __always_inline bool end(struct act *act)
{
	bool refused = settle(act);

	release(act);
	return refused;
}

/* locate finds the rows of a name, and makes it the act's object. With OF_PROGRAM it is
 * one of a program that is run. */
static __always_inline u32 locate(struct act *act, u64 mount, u64 dentry, u32 of)
{
	struct inode *inode = BPF_CORE_READ((struct dentry *)dentry, d_inode);

	act->object_kind = OBJECT_PATH;
	act->object = render(act->scratch, mount, dentry);
	act->device = inode && is_device(inode);
	if (!inode)
		act->parent = (u64)BPF_CORE_READ((struct dentry *)dentry, d_parent, d_inode);
	if (!act->device)
		return path_row(act->image, act->scratch, act->object, START_PATH | of);
	if (act->object == NO_PATH)
		return ROW_NONE; /* a terminal of the host's */
	return path_row(act->image, act->scratch, act->object, START_DEVICE);
}

static __always_inline u32 locate_file(struct act *act, struct file *file)
{
	return locate(act, (u64)BPF_CORE_READ(file, f_path.mnt),
		      (u64)BPF_CORE_READ(file, f_path.dentry), 0);
}

/*
 * find_file is locate_file for a file that is opened, and knows the rows of those that were
 * opened lately. Then the path is not in the buffer: render_later puts it there when it is
 * to be told. OPS about which a person can be asked need it at once.
 */
static __always_inline u32 find_file(struct act *act, struct file *file, u32 ops)
{
	struct image *head = image_at(act->image);
	u32 at = NOT_KNOWN, rows;
	u64 known;

	if (head && !(head->asks & ops))
		at = make_key(act, file);
	if (at == NOT_KNOWN)
		return locate_file(act, file);
	known = known_rows(act->scratch, at);
	if (!(known >> 32)) {
		act->object_kind = OBJECT_PATH;
		act->object = OBJECT_LATER;
		return known;
	}
	rows = locate_file(act, file);
	if (act->object != NO_PATH)
		learn_rows(act->scratch, at, rows);
	return rows;
}

static __always_inline void render_later(struct act *act, struct file *file)
{
	if (act->object == OBJECT_LATER)
		act->object = render(act->scratch, (u64)BPF_CORE_READ(file, f_path.mnt),
				     (u64)BPF_CORE_READ(file, f_path.dentry));
}

/* judge decides on all operations in the set OPS at once; the strictest holds. */
static __always_inline void judge(struct act *act, u32 row, u32 ops)
{
	ops &= row_ops(act->image, row);
	for (u32 op = OP_OPEN; op <= OP_UNLINK; op++)
		if (ops & BIT(op))
			decide(act, row, op, ARGS_NONE);
}

/* kept_of returns the rows of what protects a file from OPS, under whatever name it is
 * known by; 0: nothing does. A function of its own, and not one that decides, so that
 * their stacks do not add up. */
__noinline u32 kept_of(struct act *act, u32 ops)
{
	struct image *head;
	struct file_state *state;
	struct file_key key;

	if (!act || !act->inode || !(ops & (BIT(OP_WRITE) | BIT(OP_APPEND) | BIT(OP_UNLINK))))
		return 0;
	head = image_at(act->image);
	if (!head || !head->kept_all || act->device)
		return 0;
	key = file_key(act, (void *)act->inode);
	state = bpf_map_lookup_elem(&files, &key);
	if (!state)
		return saturated(act) ? head->kept_all : 0;
	return state->kept && kept_by_all(act) ? head->kept_all : state->kept;
}

static __always_inline void judge_kept(struct act *act, u32 ops)
{
	u32 kept = kept_of(act, ops);

	if (kept)
		decide_row(act, kept, OP_WRITE, ARGS_NONE | BY_NAME); /* nothing there asks */
}

#define MAX_NAMES 4 /* mounts that show one file */

/*
 * judge_other_mounts decides on what changes a file that is protected below another
 * mount. That it is sticks to the file, so that its descriptors know.
 */
__noinline int judge_other_mounts(struct act *act, u64 mount, u64 dentry, u32 ops)
{
	struct image *head;
	u32 kept, turns, i;
	u64 other;

	if (!act || !(ops & (BIT(OP_WRITE) | BIT(OP_APPEND) | BIT(OP_UNLINK))))
		return 0;
	head = image_at(act->image);
	if (!head || !head->kept_all || act->device)
		return 0;
	turns = act->turns;
	for (i = 0; i < MAX_NAMES && act->turns == turns; i++) {
		other = mount_of(dentry, i);
		if (!other)
			break;
		if (other == mount)
			continue;
		act->object = render(act->scratch, other, dentry);
		kept = row_kept(act->image,
				path_row(act->image, act->scratch, act->object, START_PATH));
		if (!kept)
			continue;
		/* Nothing is carried on: there is no label, and no stack left for it. */
		add_to_file(act, act->inode, 0, (u64)kept << KEPT_SHIFT);
		decide_row(act, kept, OP_WRITE, ARGS_NONE | BY_NAME);
	}
	if (i && act->turns == turns) /* a record is to tell the name that was used */
		act->object = render(act->scratch, mount, dentry);
	return 0;
}

/* move_all_gates is for what is done to the file of a name. */
static __always_inline void move_all_gates(struct act *act, u32 row, u32 ops, u64 mount, u64 dentry)
{
	u64 staled = 0;

	ops &= row_ops(act->image, row);
	act->targets = 0;
	for (u32 op = OP_OPEN; op <= OP_UNLINK; op++)
		if (ops & BIT(op))
			staled |= move_gates(act, row, op, 1);
	if (staled | act->targets)
		note_moves(act, staled, mount, dentry);
}

#endif
