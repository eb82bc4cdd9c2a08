/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Is this task in a scope, and in which? */
#ifndef ACTPLANE_SCOPE_H
#define ACTPLANE_SCOPE_H

#include "maps.bpf.h"

/*
 * What a hook works with, and what it found. Only numbers, no pointers: functions
 * that are not static get it, which the verifier looks at once each, whoever calls
 * them (static ones it follows from every call, which multiplies).
 */
struct act {
	u64 labels; /* L: the process's, and what the event would bring in */
	u64 lineage;
	u64 targets; /* exec: target sets that hold */
	u64 cleared; /* labels that the process does not regain */
	u64 inode;   /* of the object, if it is a file that there is */
	u64 parent;  /* of an object that there is not: the directory */
	u64 beside;  /* what else makes the operation: the other name of a rename */
	u32 slot, generation;
	u32 image;
	u32 scratch; /* number of the buffer held, plus one */
	u32 row;     /* the deciding row */
	u32 clause;  /* the deciding clause */
	u32 object;  /* where a path begins in the buffer; else the size of its text */
	u8 effect;
	u8 op; /* of the deciding clause */
	u8 reason;
	u8 object_kind;
	u8 protocol;
	u8 flags;  /* of the process */
	u8 device; /* the object is a terminal or the like: no default holds */
	u8 turns;  /* how often the verdict has changed */
	u8 asked;  /* enum asked */
	u8 lifted; /* grants that the operation uses are in the thread's state */
	u8 stage;  /* enum stage */
	u8 level;  /* of an exec: a script is 0, its interpreter 1 */
	u8 mapped; /* code that is mapped, and not run by exec */
	u8 used;   /* enum used: what was decided on when it was opened */
	u8 zero;   /* 0, which the verifier does not know: see about */
	u8 pad;
};

/* A descriptor or connection that was decided on when it was opened. */
enum used {
	NOT_USED,
	USED,
	USED_WRITABLE, /* opening the file counted as writing it */
};

/* Where an operation is that has more than one hook. */
enum stage {
	STAGE_WHOLE, /* this hook is all of it */
	STAGE_EXEC,  /* of an exec, before it can happen */
	STAGE_LAST,  /* of an exec that can only be killed any more */
};

#define TS_COMPAT 2

/* is_compat tells whether the system call is one of 32 bits: they have other numbers. */
static __always_inline bool is_compat(struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT;
}

static __always_inline struct host *host_state(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&hosts, &zero);
}

/*
 * marked is the filter that every task on the host passes through: a do-nothing
 * cgroup program is attached to each scope's cgroup, and the kernel keeps the
 * programs in effect in every cgroup below it too. Somebody else's program of this
 * type only lets in too many, never too few: the exact answer comes behind it.
 */
static __always_inline bool marked(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 slot = bpf_core_enum_value(enum cgroup_bpf_attach_type, CGROUP_SYSCTL);

	return task->cgroups->dfl_cgrp->bpf.effective[slot]->items[0].prog != NULL;
}

/* process_of must not be called from a sleepable program: kernels from 6.4 on
 * trust group_leader only under RCU. */
static __always_inline struct process *process_of(struct task_struct *task)
{
	return bpf_task_storage_get(&processes, task->group_leader, NULL, 0);
}

/*
 * new_storage returns TASK's element of MAP, and makes it if there is none. Kernels
 * from 7.0 on take the memory only if no lock is held that it would have to wait for,
 * so one failure says little. NULL: there is none, deny.
 */
#define STORAGE_TRIES 32
#define new_storage(map, task)                                                                     \
	({                                                                                         \
		void *storage_ = NULL;                                                             \
		for (u32 try_ = 0; try_ < STORAGE_TRIES && !storage_; try_++)                      \
			storage_ = bpf_task_storage_get((map), (task), NULL,                       \
							BPF_LOCAL_STORAGE_GET_F_CREATE);           \
		storage_;                                                                          \
	})

/* slot_by_cgroup returns the slot of the outermost scope around the current
 * task's cgroup, plus one, or 0. */
__noinline int slot_by_cgroup(void)
{
	for (int level = 1; level <= MAX_CGROUP_DEPTH; level++) {
		u64 id = bpf_get_current_ancestor_cgroup_id(level);
		u32 *slot;

		if (!id)
			break;
		slot = bpf_map_lookup_elem(&scopes_by_cgroup, &id);
		if (slot)
			return *slot + 1;
	}
	return 0;
}

/* past_setup tells whether a process has a state and is past its setup. */
static __always_inline bool past_setup(struct process *process)
{
	return process && process->generation && !(process->flags & PROCESS_SETUP);
}

/*
 * adopt makes a process of a scope out of a task that came from outside of every
 * scope: runc's init, or runc's exec. It is in setup. A child of a process of the
 * scope did not come from outside, even if it has no state, and is not adopted.
 */
__noinline int adopt(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct host *host = host_state();
	struct process *process;
	struct scope *scope;
	u32 slot = slot_by_cgroup();

	if (!slot || !host || past_setup(process_of(task->group_leader->real_parent)))
		return 0;
	slot--;
	scope = bpf_map_lookup_elem(&scopes, &slot);
	if (!scope)
		return 0;
	process = new_storage(&processes, task->group_leader);
	if (!process || process->generation)
		return process != NULL;
	process->scope = slot;
	process->flags = PROCESS_SETUP;
	process->id = __sync_fetch_and_add(&host->next_process, 1) + 1;
	process->generation = scope->generation; /* last: makes it valid */
	return 1;
}

static __always_inline struct image *image_at(u32 image)
{
	return bpf_map_lookup_elem(&images, &image);
}

enum membership {
	OUTSIDE,
	INSIDE,
	REFUSED, /* inside, and its state cannot be had, or the scope is locked: deny */
};

static __always_inline struct scope *scope_at(u32 slot)
{
	return bpf_map_lookup_elem(&scopes, &slot);
}

/* current_process returns the state of the current task's process, if it is in a
 * scope. */
static __always_inline struct process *current_process(void)
{
	return process_of(bpf_get_current_task_btf());
}

/* pid_inside is a process's number in its own pid namespace. */
static __always_inline u32 pid_inside(struct task_struct *leader)
{
	struct pid *pid = BPF_CORE_READ(leader, thread_pid);
	u32 at = bpf_core_field_offset(struct pid, numbers) +
		 BPF_CORE_READ(pid, level) * bpf_core_type_size(struct upid) +
		 bpf_core_field_offset(struct upid, nr);
	u32 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), (void *)pid + at);
	return number;
}

static __always_inline bool in_setup(struct act *act)
{
	return act->flags & PROCESS_SETUP;
}

/* strays tells whether some task was moved out of its scope's cgroup, where the
 * marker does not find it. */
static __always_inline bool strays(void)
{
	struct host *host = host_state();

	return host && host->strays;
}

/* bring adds to L what an event other than an exec would bring in. */
static __always_inline void bring(struct act *act, u64 labels)
{
	act->labels |= labels & ~act->cleared;
}

/* count_starved counts an operation that is refused for want of memory. */
static __always_inline void count_starved(struct act *act)
{
	struct scope *scope = scope_at(act->slot);

	if (scope)
		__sync_fetch_and_add(&scope->starved, 1);
}

/* uncarried are the labels that no flow carries. */
static __always_inline u64 uncarried(struct image *head)
{
	return head->integrity | head->confines;
}

/* add_labels gives a process labels that a flow brings. */
static __always_inline u64 add_labels(struct process *process, struct image *head, u64 labels)
{
	if (head)
		labels &= ~uncarried(head);
	if (head && head->integrity && labels)
		__sync_fetch_and_and(&process->labels, ~head->integrity);
	__sync_fetch_and_or(&process->labels, labels);
	return labels;
}

/* take_confines gives a process the labels that the daemon gave it. The entry stays:
 * more may be on its way. */
static __always_inline void take_confines(struct process *process, u64 id)
{
	struct confined *confined = bpf_map_lookup_elem(&confined_by_id, &id);

	if (confined && confined->scope == process->scope &&
	    confined->generation == process->generation)
		__sync_fetch_and_or(&process->labels, *(volatile u64 *)&confined->labels);
}

/*
 * take_shared gives the current process the labels that came to what it shares, and those
 * of rules that were added for it. It returns whether the scope is locked: then the
 * process's number stays behind the scope's, which grew when it was locked, so that each
 * event comes here and an open scope pays nothing.
 */
__noinline int take_shared(void)
{
	struct process *process = current_process();
	struct scope *scope = process ? scope_at(process->scope) : NULL;
	struct sharer *sharer;
	u64 labels, id, growth;

	if (!scope)
		return 0;
	id = process->id;
	/* First the number: what comes meanwhile is taken the next time. Noted last, since
	 * other threads go on without looking once it is. */
	growth = *(volatile u64 *)&scope->growth;
	if (*(volatile u32 *)&scope->flags & SCOPE_LOCKED) {
		__sync_fetch_and_add(&scope->locked, 1);
		return 1;
	}
	take_confines(process, id);
	sharer = bpf_map_lookup_elem(&sharers, &id);
	labels = sharer ? *(volatile u64 *)&sharer->labels & ~process->labels & ~process->cleared
			: 0;
	if (labels)
		add_labels(process, image_at(scope->image), labels);
	*(volatile u64 *)&process->growth = growth;
	return 0;
}

/* enter fills in ACT for the current task. */
static __always_inline enum membership enter(struct act *act)
{
	struct process *process;
	struct scope *scope;

	if (!marked() && !strays())
		return OUTSIDE;
	process = current_process();
	if (!process) {
		process = adopt() ? current_process() : NULL;
		if (!process) {
			u32 slot = slot_by_cgroup();

			if (!slot)
				return OUTSIDE;
			act->slot = slot - 1;
			count_starved(act);
			return REFUSED;
		}
	}
	act->slot = process->scope;
	act->generation = process->generation;
	act->flags = process->flags;
	scope = scope_at(act->slot);
	if (!scope || scope->generation != act->generation)
		return REFUSED;
	act->image = scope->image;
	if (process->growth != scope->growth && take_shared())
		return REFUSED;
	act->labels = process->labels;
	act->lineage = process->lineage;
	act->cleared = process->cleared;
	return INSIDE;
}

/* is_locked tells whether the current task is in a scope that is locked, or whose state
 * cannot be had. */
static __always_inline bool is_locked(void)
{
	struct act act = {};

	return enter(&act) == REFUSED;
}

static __always_inline struct scope_files *files_of(struct act *act)
{
	u32 slot = act->slot;

	return bpf_map_lookup_elem(&files_by_scope, &slot);
}

/*
 * leaves_setup tells whether an exec now would end the setup: when the task's root
 * is no longer the host's. Where a scope keeps the host's root, any exec does. Inode
 * numbers would not do: all subvolumes of btrfs have a root of the same number.
 */
static __always_inline bool leaves_setup(struct act *act)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct host *host = host_state();
	struct scope *scope = scope_at(act->slot);

	if (!host || !scope || scope->flags & SCOPE_HOST_ROOT)
		return true;
	return (u64)BPF_CORE_READ(task, fs, root.dentry, d_inode) != host->root;
}

/* thread_state returns the current thread's memory, if it has some. */
static __always_inline struct thread *thread_state(void)
{
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);
}

__noinline int make_thread_state(void)
{
	return new_storage(&threads, bpf_get_current_task_btf()) != NULL;
}

/* new_thread_state gives it some. */
static __always_inline struct thread *new_thread_state(void)
{
	return thread_state() ?: make_thread_state() ? thread_state() : NULL;
}

#define OWN_SCRATCH 0xffffffff

static __always_inline struct scratch *scratch_at(u32 number)
{
	u32 index = number - 1;

	if (number == OWN_SCRATCH)
		return bpf_task_storage_get(&own_scratches, bpf_get_current_task_btf(), NULL, 0);
	return bpf_map_lookup_elem(&scratches, &index);
}

static __always_inline struct output *output_at(u32 number)
{
	u32 index = number - 1;

	if (number == OWN_SCRATCH)
		return bpf_task_storage_get(&own_outputs, bpf_get_current_task_btf(), NULL, 0);
	return bpf_map_lookup_elem(&outputs, &index);
}

__noinline int make_own_buffers(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return new_storage(&own_scratches, task) && new_storage(&own_outputs, task);
}

static __always_inline void forget_matches(u32 number)
{
	struct scratch *scratch = scratch_at(number);

	if (scratch)
		scratch->matches = 0;
}

/* acquire takes buffers for the rest of the program; release gives them back. False:
 * there are none, deny. */
static __always_inline bool acquire(struct act *act)
{
	u32 first = bpf_get_smp_processor_id() * SCRATCHES_PER_CPU;

	for (u32 i = 0; i < SCRATCHES_PER_CPU; i++) {
		struct scratch *scratch = scratch_at(first + i + 1);

		if (scratch && !__sync_val_compare_and_swap(&scratch->busy, 0, 1)) {
			act->scratch = first + i + 1;
			scratch->matches = 0;
			return true;
		}
	}
	act->scratch = OWN_SCRATCH;
	if (make_own_buffers()) {
		forget_matches(OWN_SCRATCH);
		return true;
	}
	count_starved(act);
	return false;
}

static __always_inline void release(struct act *act)
{
	struct scratch *scratch = scratch_at(act->scratch);

	if (scratch)
		__sync_lock_test_and_set(&scratch->busy, 0);
}

#endif
