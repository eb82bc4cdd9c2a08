/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every map. All are pinned, so that policies stay in force without
 * the daemon and the next daemon finds them.
 */
#ifndef ACTPLANE_MAPS_H
#define ACTPLANE_MAPS_H

#include "prelude.bpf.h"

/* One element; see struct host. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct host);
} hosts SEC(".maps");

/* By slot. Written by the daemon when a scope comes and goes, by the programs in
 * between (gates, counters). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SCOPES);
	__type(key, u32);
	__type(value, struct scope);
} scopes SEC(".maps");

/* By slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SCOPES);
	__type(key, u32);
	__type(value, struct scope_files);
} files_by_scope SEC(".maps");

/* cgroup id to slot: where a task that nobody has seen yet belongs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_SCOPES);
	__type(key, u64);
	__type(value, u32);
} scopes_by_cgroup SEC(".maps");

/* On the leader of each thread group in a scope: membership does not end when a
 * task is moved to another cgroup. Goes with the task. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct process);
} processes SEC(".maps");

/* What a thread remembers between the hooks of one exec, and of its last write. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* A pool of buffers, too large for the stack: one per CPU would not do, since another
 * task can run on this CPU in the middle of a program. The loader sets the size:
 * SCRATCHES_PER_CPU for each possible CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SCRATCHES_PER_CPU);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* Goes with the buffer of the same number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SCRATCHES_PER_CPU);
	__type(key, u32);
	__type(value, struct output);
} outputs SEC(".maps");

/* Buffers of the thread's own, for when the pool is dry: kernels that preempt can
 * have any number of threads in the middle of a program. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct scratch);
} own_scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct output);
} own_outputs SEC(".maps");

/* Labels and marks of files, by identity and scope. When it is full, the scope
 * is saturated: a file without an entry then counts as carrying every label. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_FILES);
	__type(key, struct file_key);
	__type(value, struct file_state);
} files SEC(".maps");

/* The scopes of each file of that table: its entries go with the file. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_FILES);
	__type(key, struct file_id);
	__type(value, struct file_owners);
} owners_by_file SEC(".maps");

/* Open requests for approval, and how many each scope has. A request goes when it is
 * answered. When either bound is reached, what asks is refused. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_REQUESTS);
	__type(key, struct request_key);
	__type(value, struct request);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SCOPES);
	__type(key, u32);
	__type(value, u32);
} requests_count SEC(".maps");

/* What people answered. Written by the daemon only, through programs of their own, so
 * that a grant which is being used is not overwritten. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_ANSWERS);
	__type(key, struct ask_key);
	__type(value, struct answer);
} answers SEC(".maps");

/* What a grant has opened may be used without another. When it is full, what was
 * used longest ago is asked about again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_GRANTED_USES);
	__type(key, struct granted_use);
	__type(value, struct ask_key); /* whose answer it was */
} granted_uses SEC(".maps");

/* When it is full, what was used longest ago is decided on again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_GRANTED_USES);
	__type(key, struct opened_key);
	__type(value, struct opened_use);
} opened_uses SEC(".maps");

/* A number for each program about which people were asked, by its lasting id: another one
 * after each open to write, since a change through a mapping leaves its times as they
 * were. What is dropped because it is full gets another one, too. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_VERSIONS);
	__type(key, struct file_id);
	__type(value, u64);
} versions SEC(".maps");

/* Processes that share something, by their number, until they end. When a process can't
 * have an entry, what it shares is refused. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_SHARERS);
	__type(key, u64);
	__type(value, struct sharer);
} sharers SEC(".maps");

/* Processes for which rules were added, by their number, until they end. Written by the
 * daemon through a program of its own. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_CONFINED);
	__type(key, u64);
	__type(value, struct confined);
} confined_by_id SEC(".maps");

/* One that shares nothing: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sharer);
} new_sharers SEC(".maps");

/* The rows of the paths that were opened last, by hash. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_KNOWN_PATHS);
	__type(key, u32);
	__type(value, struct known_path);
} known_paths SEC(".maps");

/* What happened. Records that do not fit are counted in their scope. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_SIZE);
} records SEC(".maps");

/* How many records of what decision were lost. Where it is full, they are counted in
 * their scope alone. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_LOST);
	__type(key, struct lost_key);
	__type(value, u64);
} lost_records SEC(".maps");

/* Images, by image slot. Each table is a map of its own, as long as its policy
 * needs; a slot is filled completely before a scope names it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_IMAGES);
	__type(key, u32);
	__type(value, struct image);
} images SEC(".maps");

#define IMAGE_TABLE(name, value_type)                                                              \
	struct name##_table {                                                                      \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(map_flags, BPF_F_INNER_MAP);                                                \
		__uint(max_entries, 1);                                                            \
		__type(key, u32);                                                                  \
		__type(value, value_type);                                                         \
	};                                                                                         \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                          \
		__uint(max_entries, MAX_IMAGES);                                                   \
		__type(key, u32);                                                                  \
		__array(values, struct name##_table);                                              \
	} name SEC(".maps");                                                                       \
	/* Makes clang describe the type in full. */                                               \
	const value_type *type_of_##name __attribute__((unused))

IMAGE_TABLE(dfa_small, struct dfa_small);
IMAGE_TABLE(dfa_large, struct dfa_large);
IMAGE_TABLE(states, struct state);
IMAGE_TABLE(rows, struct row);
IMAGE_TABLE(candidates, u32); /* the rows' lists of clauses */
IMAGE_TABLE(clauses, struct clause);
IMAGE_TABLE(gate_refs, struct gate_ref);
IMAGE_TABLE(tokens, struct arg_set);
IMAGE_TABLE(moves, struct move);
IMAGE_TABLE(move_classes, u64); /* by directory and word */

/* table_entry returns element INDEX of an image's TABLE, or NULL. */
#define table_entry(table, image, index)                                                           \
	({                                                                                         \
		u32 image_ = (image), index_ = (index);                                            \
		void *map_ = bpf_map_lookup_elem(&table, &image_);                                 \
		map_ ? bpf_map_lookup_elem(map_, &index_) : NULL;                                  \
	})

#endif
