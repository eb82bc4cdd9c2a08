/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How labels came to where they are, told when they come there: the daemon makes a graph
 * of it. Nothing is told of the rest of reading and writing, so that it costs nothing. A
 * scope has a share of such records, and they leave half of the ring buffer to verdicts:
 * what there is no room for is counted, and is then not known.
 */
#ifndef ACTPLANE_GAIN_H
#define ACTPLANE_GAIN_H

#include "identity.bpf.h"

#define BPF_RB_AVAIL_DATA 0

static __always_inline u64 id_where(struct file_id *id)
{
	return (u64)id->dev << 32 | id->generation;
}

/* way_of tells what a channel is, as far as its id does. */
static __always_inline u32 way_of(u32 dev)
{
	if (dev == CHANNEL_TERMINAL)
		return WAY_TERMINAL;
	if (dev == CHANNEL_QUEUE)
		return WAY_QUEUE;
	return dev >= CHANNEL_SOCKET ? WAY_SOCKET : WAY_PIPE;
}

/* gain_room takes one of the scope's share; kinds have one each. */
static __always_inline bool gain_room(struct scope *scope, u64 now, bool gives)
{
	u64 window = now >> GAIN_WINDOW;

	if (scope->gain_window != window) {
		scope->gain_window = window;
		scope->gains[0] = 0;
		scope->gains[1] = 0;
	}
	return __sync_fetch_and_add(&scope->gains[gives], 1) < MAX_GAINS &&
	       bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) <= RING_SIZE / 2;
}

/* begin_gain returns a record to be filled and sent, or NULL. */
static __always_inline struct origin *begin_gain(struct act *act, u32 kind, u32 way, u64 labels)
{
	struct scope *scope = scope_at(act->slot);
	struct task_struct *task = bpf_get_current_task_btf();
	struct process *process = current_process();
	u64 now = bpf_ktime_get_boot_ns();
	struct origin *origin = NULL;

	if (!scope || !process)
		return NULL;
	if (gain_room(scope, now, kind == RECORD_GIVE))
		origin = bpf_ringbuf_reserve(&records, sizeof(*origin), 0);
	if (!origin) {
		__sync_fetch_and_add(&scope->gains_missed, 1);
		return NULL;
	}
	origin->kind = kind;
	origin->way = way;
	origin->object_kind = OBJECT_NONE;
	origin->protocol = act->protocol;
	origin->cut = 0;
	origin->flags = act->flags;
	origin->object_size = 0;
	origin->time = now;
	origin->process = process->id;
	origin->labels = labels;
	origin->other = 0;
	origin->started = BPF_CORE_READ(task, group_leader, start_boottime);
	__builtin_memcpy(origin->ancestors, process->ancestors, sizeof(origin->ancestors));
	__builtin_memset(origin->objects, 0, sizeof(origin->objects));
	origin->scope = act->slot;
	origin->generation = act->generation;
	origin->tgid = bpf_get_current_pid_tgid() >> 32;
	origin->inside = pid_inside(BPF_CORE_READ(task, group_leader));
	origin->uid = bpf_get_current_uid_gid();
	origin->pad = 0;
	bpf_get_current_comm(origin->comm, sizeof(origin->comm));
	__builtin_memset(origin->object, 0, sizeof(origin->object));
	return origin;
}

/* name_gain copies the name of the act's object: of a long path its end. */
static __always_inline void name_gain(struct origin *origin, struct act *act)
{
	struct scratch *scratch = act->scratch ? scratch_at(act->scratch) : NULL;
	struct output *output = act->scratch ? output_at(act->scratch) : NULL;
	u64 at = act->object, size;

	if (!scratch || !output || act->object_kind == OBJECT_NONE)
		return;
	origin->object_kind = act->object_kind;
	if (act->object_kind != OBJECT_PATH) {
		origin->object_size = act->object & 127;
		__builtin_memcpy(origin->object, output->data, 128);
		return;
	}
	if (at >= PATH_SIZE - 1)
		return;
	size = PATH_SIZE - 1 - at;
	if (size > GAIN_TEXT - 1) {
		at = PATH_SIZE - GAIN_TEXT;
		size = GAIN_TEXT - 1;
		origin->cut = 1;
	}
	BOUND(size, GAIN_TEXT - 1);
	BOUND(at, PATH_SIZE - 1);
	origin->object_size = size;
	bpf_probe_read_kernel(origin->object, size, &scratch->path[at]);
}

/* note_gain tells that the current process has gained labels from what INO and WHERE are
 * the id of; with WAY_INTO, INO is the number of the other process. */
__noinline int note_gain(struct act *act, u64 labels, u32 way, u64 ino, u64 where)
{
	struct origin *origin;

	if (!act || !labels)
		return 0;
	origin = begin_gain(act, RECORD_GAIN, way, labels);
	if (!origin)
		return 0;
	if (way == WAY_INTO) {
		origin->other = ino;
	} else {
		origin->objects[0].ino = ino;
		origin->objects[0].dev = where >> 32;
		origin->objects[0].generation = where;
	}
	if (way < WAY_SOCKET)
		name_gain(origin, act);
	bpf_ringbuf_submit(origin, 0);
	return 0;
}

/* note_give tells that the current process has given labels to what has that id: to a
 * channel, or to a file, which with WAY_SOURCE_FILE has them by its name. */
__noinline int note_give(struct act *act, u64 labels, u32 way, u64 ino, u64 where)
{
	struct origin *origin;

	if (!act || !labels)
		return 0;
	origin = begin_gain(act, RECORD_GIVE, way, labels);
	if (!origin)
		return 0;
	origin->objects[0].ino = ino;
	origin->objects[0].dev = where >> 32;
	origin->objects[0].generation = where;
	if (way == WAY_FILE)
		name_gain(origin, act);
	bpf_ringbuf_submit(origin, 0);
	return 0;
}

/* note_passed tells that the process of a number has gained labels by what the current one
 * does; they can be the same one. */
__noinline int note_passed(struct act *act, u64 labels, u32 way, u64 to)
{
	struct origin *origin;

	if (!act || !labels)
		return 0;
	origin = begin_gain(act, RECORD_GIVE, way, labels);
	if (!origin)
		return 0;
	origin->other = to;
	bpf_ringbuf_submit(origin, 0);
	return 0;
}

/* note_file tells that the current process has gained labels by reading a file, some of
 * them for its name. */
__noinline int note_file(struct act *act, u64 labels, u64 sources, u64 inode)
{
	struct file_id id;

	if (!act)
		return 0;
	id = file_id((void *)inode);
	note_gain(act, labels & sources, WAY_SOURCE_FILE, id.ino, id_where(&id));
	note_gain(act, labels & ~sources, WAY_FILE, id.ino, id_where(&id));
	return 0;
}

/* name_opened makes an open file the act's object, if nothing is yet. */
__noinline int name_opened(struct act *act, u64 opened)
{
	struct file *file = (void *)opened;

	if (!act || act->object_kind != OBJECT_NONE)
		return 0;
	act->object = render(act->scratch, (u64)BPF_CORE_READ(file, f_path.mnt),
			     (u64)BPF_CORE_READ(file, f_path.dentry));
	act->object_kind = OBJECT_PATH;
	return 0;
}

#endif
