// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/*
 * The code that matches and decides, off the hooks: programs that can be run by
 * themselves, on machines that refuse programs on hooks too. For tests and
 * benchmarks only; the engine does not load it.
 */
#include "decide.bpf.h"

/* What to ask, and the answers. */
struct query {
	u64 labels, lineage, targets;
	u32 image, row;
	u32 op, start;
	u32 length;	    /* of the key, which ends the buffer's path or begins its name */
	u32 effect, clause; /* answers */
	u32 times, pad;
	u8 address[24];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct query);
} queries SEC(".maps");

static __always_inline struct query *the_query(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&queries, &zero);
}

static long find_row(u64 step, void *unused)
{
	struct query *q = the_query();
	struct address address;

	if (!q)
		return 1;
	if (q->start == START_ADDRESS) {
		__builtin_memcpy(address.bytes, q->address, ADDRESS_SIZE);
		q->row = address_row(q->image, &address);
	} else if (q->start == START_NAME) {
		q->row = name_key_row(q->image, 1, q->length, q->start);
	} else {
		q->row = path_row(q->image, 1, PATH_SIZE - 1 - q->length, q->start);
	}
	return 0;
}

/* Finds the row of the key in the first buffer, as often as asked. Not "tc": finding
 * a buffer may look at the current task. */
SEC("syscall")
int check_row(void *unused)
{
	struct query *q = the_query();

	if (!q)
		return 1;
	bpf_loop(q->times, find_row, NULL, 0);
	return 0;
}

/* Decides on a row, without argv. No program that may sleep: see process_of. */
SEC("raw_tp")
int check_decide(void *unused)
{
	struct query *q = the_query();
	struct act act = {};

	if (!q)
		return 1;
	act.labels = q->labels;
	act.lineage = q->lineage;
	act.targets = q->targets;
	act.image = q->image;
	decide(&act, q->row, q->op, ARGS_NONE);
	q->effect = act.effect;
	q->clause = act.clause;
	return 0;
}

const struct query *type_of_query __attribute__((unused));

char LICENSE[] SEC("license") = "Dual BSD/GPL";
