/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records for the daemon. */
#ifndef ACTPLANE_EMIT_H
#define ACTPLANE_EMIT_H

#include "decide.bpf.h"

/* put_object copies the object's text to scratch->data and returns its size. A
 * path lies in scratch->path from act->object on; any other object is there
 * already, act->object long. */
static __always_inline u32 put_object(struct act *act)
{
	struct scratch *scratch = act->scratch;
	u32 at = act->object, size;

	if (act->object_kind != OBJECT_PATH)
		return act->object;
	if (at >= PATH_SIZE - 1)
		return 0;
	size = PATH_SIZE - 1 - at;
	BOUND(size, PATH_SIZE - 1);
	BOUND(at, PATH_SIZE - 1);
	bpf_probe_read_kernel(scratch->data, size, &scratch->path[at]);
	return size;
}

static __always_inline u32 put_args(struct act *act, struct thread *thread, u32 after)
{
	struct record *record = &act->scratch->record;
	u32 size = thread->exec.args_size;

	if (size > ARGS_SIZE)
		size = ARGS_SIZE;
	BOUND(after, PATH_SIZE - 1);
	BOUND(size, 2 * ARGS_SIZE - 1);
	bpf_probe_read_kernel(&act->scratch->data[after], size, thread->args);
	record->args_cut = thread->exec.args_cut;
	return size;
}

/* emit writes a record of what ACT decided. THREAD, for an exec, has argv. */
static __noinline void emit(struct act *act, struct thread *thread, u32 kind)
{
	struct record *record = &act->scratch->record;
	struct process *process = act->process;
	u32 size;

	record->time = bpf_ktime_get_boot_ns();
	record->process = process->id;
	record->labels = act->labels;
	__builtin_memcpy(record->ancestors, process->ancestors, sizeof(record->ancestors));
	record->scope = process->scope;
	record->generation = process->generation;
	record->clause = act->clause;
	record->row = act->row;
	record->tgid = bpf_get_current_pid_tgid() >> 32;
	record->kind = kind;
	record->effect = act->effect;
	record->op = act->op;
	record->reason = act->reason;
	record->object_kind = act->object_kind;
	record->protocol = act->protocol;
	record->setup = in_setup(act);
	record->args_cut = 0;
	record->args_size = 0;
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	record->object_size = put_object(act);
	if (thread)
		record->args_size = put_args(act, thread, record->object_size);

	size = sizeof(*record) + record->object_size + record->args_size;
	if (size > sizeof(*record) + PATH_SIZE + ARGS_SIZE)
		size = sizeof(*record) + PATH_SIZE + ARGS_SIZE;
	if (bpf_ringbuf_output(&records, record, size, 0))
		__sync_fetch_and_add(&act->scope->lost, 1);
}

/* settle records the verdict and returns whether the operation is refused. */
static __always_inline bool settle(struct act *act, struct thread *thread)
{
	if (act->effect < EFFECT_NOTIFY)
		return false;
	emit(act, thread, RECORD_VERDICT);
	if (!denied(act)) {
		__sync_fetch_and_add(&act->scope->notified, 1);
		return false;
	}
	__sync_fetch_and_add(&act->scope->denied, 1);
	if (act->effect == EFFECT_KILL)
		bpf_send_signal(SIGKILL);
	return true;
}

#endif
