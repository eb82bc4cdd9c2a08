/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records for the daemon. */
#ifndef ACTPLANE_EMIT_H
#define ACTPLANE_EMIT_H

#include "decide.bpf.h"

#define STDERR 2

/* put_object copies a path to where the record's text is; any other object is
 * there already. It returns the object's size. */
static __always_inline u32 put_object(struct act *act, struct output *output)
{
	struct scratch *scratch = scratch_at(act->scratch);
	u64 at = act->object, size;

	if (act->object_kind != OBJECT_PATH)
		return act->object & 127;
	if (!scratch || at >= PATH_SIZE - 1)
		return 0;
	size = PATH_SIZE - 1 - at;
	BOUND(size, PATH_SIZE - 1);
	BOUND(at, PATH_SIZE - 1);
	bpf_probe_read_kernel(output->data, size, &scratch->path[at]);
	return size;
}

static __always_inline u32 put_args(struct output *output, u64 after)
{
	struct thread *thread = thread_state();
	u64 size;

	if (!thread)
		return 0;
	size = thread->exec.args_size;
	if (size > ARGS_SIZE)
		size = ARGS_SIZE;
	BOUND(after, PATH_SIZE - 1);
	BOUND(size, 2 * ARGS_SIZE - 1);
	bpf_probe_read_kernel(&output->data[after], size, thread->args);
	output->record.args_cut = thread->exec.args_cut;
	return size;
}

static __always_inline void put_matches(struct act *act, struct record *record)
{
	struct scratch *scratch = scratch_at(act->scratch);

	record->matches = 0;
	if (!scratch)
		return;
	record->matches = scratch->matches;
	__builtin_memcpy(record->matching, scratch->matching, sizeof(record->matching));
}

static __always_inline void fill_process(struct record *record)
{
	struct process *process = current_process();

	if (!process)
		return;
	record->process = process->id;
	record->carried = process->labels;
	__builtin_memcpy(record->ancestors, process->ancestors, sizeof(record->ancestors));
}

static __always_inline void fill_asked(struct record *record, struct act *act)
{
	struct thread *thread = act->asked ? thread_state() : NULL;
	struct task_struct *task = bpf_get_current_task_btf();
	struct file_id none = {};

	record->directory = act->asked ? file_id(BPF_CORE_READ(task, fs, pwd.dentry, d_inode))
				       : none;
	record->asked = act->asked;
	record->ask[0] = thread ? thread->ask.deciding[0] : 0;
	record->ask[1] = thread ? thread->ask.deciding[1] : 0;
}

/* fill_origin is what tells where the labels came from. */
static __always_inline void fill_origin(struct record *record, struct act *act)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file_id none = {};

	record->lineage = act->lineage;
	record->sources = row_sources(act->image, act->row);
	if (act->op == OP_EXEC)
		record->sources |= row_exec_sources(act->image, act->row);
	record->started = BPF_CORE_READ(task, group_leader, start_boottime);
	record->file = act->inode && act->object_kind == OBJECT_PATH ? file_id((void *)act->inode)
								     : none;
}

/* fill_errors notes the pipe or terminal that the process writes standard error to: until
 * the daemon has the record it can have ended, or have opened something else there. */
static __always_inline void fill_errors(struct record *record)
{
	struct file *file = open_file(STDERR);
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct file_id none = {};

	record->errors = none;
	if (!(BPF_CORE_READ(file, f_mode) & FMODE_WRITE))
		return;
	if (inode_type(inode) == S_IFIFO || is_terminal(inode))
		record->errors = file_id(inode);
}

/* is_marked is marked of another task, by probes. */
static __always_inline bool is_marked(struct task_struct *task)
{
	u32 slot = bpf_core_enum_value(enum cgroup_bpf_attach_type, CGROUP_SYSCTL);
	struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	struct bpf_prog_array *programs = NULL;

	bpf_probe_read_kernel(&programs, sizeof(programs),
			      (void *)cgroup + bpf_core_field_offset(struct cgroup, bpf.effective) +
				      slot * sizeof(void *));
	return programs && BPF_CORE_READ(programs, items[0].prog);
}

/* fill_parents names the processes above the current one, up to the scope's first. */
static __always_inline void fill_parents(struct record *record)
{
	struct task_struct *task = bpf_get_current_task_btf(), *at;
	bool inside = true;

	at = BPF_CORE_READ(task, group_leader);
	for (u32 i = 0; i < MAX_PARENTS; i++) {
		at = BPF_CORE_READ(at, real_parent, group_leader);
		inside = inside && is_marked(at);
		record->parents[i].tgid = inside ? BPF_CORE_READ(at, tgid) : 0;
		record->parents[i].inside = inside ? pid_inside(at) : 0;
		bpf_probe_read_kernel_str(record->parents[i].comm, sizeof(record->parents[i].comm),
					  (void *)at +
						  bpf_core_field_offset(struct task_struct, comm));
	}
}

/* count_lost counts a record that did not fit, by what decided. */
static __always_inline void count_lost(struct act *act, struct scope *scope)
{
	struct lost_key key = {
		.scope = act->slot,
		.generation = act->generation,
		.clause = act->clause,
		.reason = act->reason,
		.effect = act->effect,
		.op = act->op,
	};
	u64 none = 0, *count;

	__sync_fetch_and_add(&scope->lost, 1);
	bpf_map_update_elem(&lost_records, &key, &none, BPF_NOEXIST);
	count = bpf_map_lookup_elem(&lost_records, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
}

/* emit writes a record of what ACT decided; that of an exec has argv. 0: it is lost. */
__noinline int emit(struct act *act, u32 kind)
{
	struct output *output;
	struct record *record;
	struct scope *scope;
	u64 size;

	if (!act)
		return 0;
	output = output_at(act->scratch);
	scope = scope_at(act->slot);
	if (!output || !scope)
		return 0;
	record = &output->record;
	record->time = bpf_ktime_get_boot_ns();
	record->labels = act->labels;
	record->scope = act->slot;
	record->generation = act->generation;
	record->clause = act->clause;
	record->row = act->row;
	record->image = act->image;
	record->pad2 = 0;
	record->tgid = bpf_get_current_pid_tgid() >> 32;
	record->kind = kind;
	record->effect = act->effect;
	record->op = act->op;
	record->reason = act->reason;
	record->object_kind = act->object_kind;
	record->protocol = act->protocol;
	record->flags = act->flags;
	record->args_cut = 0;
	record->uid = bpf_get_current_uid_gid();
	record->mapped = act->mapped;
	put_matches(act, record);
	fill_asked(record, act);
	record->args_size = 0;
	fill_process(record);
	fill_origin(record, act);
	fill_errors(record);
	fill_parents(record);
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	record->object_size = put_object(act, output);
	if (act->op == OP_EXEC && !act->mapped)
		record->args_size = put_args(output, record->object_size);
	size = sizeof(*record) + record->object_size + record->args_size;
	if (size > sizeof(*record) + PATH_SIZE + ARGS_SIZE)
		size = sizeof(*record) + PATH_SIZE + ARGS_SIZE;
	if (!bpf_ringbuf_output(&records, record, size, 0))
		return 1;
	count_lost(act, scope);
	return 0;
}

#endif
