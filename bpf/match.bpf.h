/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keys to rows: one walk of an image's automaton over the key's bytes, whatever
 * the number of patterns. The table is flat, without byte classes: one load a
 * byte. 64 bytes are taken at a time without looking for the end, since the key
 * is followed by zeros and the byte 0 leads every state to itself.
 */
#ifndef ACTPLANE_MATCH_H
#define ACTPLANE_MATCH_H

#include "scope.bpf.h"

#define CHUNK 64
#define NAME_CHUNK 16 /* of a path's last name, which is short */

#define STEP(dfa, states, shift)                                                                   \
	do {                                                                                       \
		u64 index_ = ((word >> (shift)) & 0xff) | state << 8;                              \
		BOUND(index_, (states)*256 - 1);                                                   \
		state = (dfa)->next[index_];                                                       \
	} while (0)

struct dfa_walk {
	const char *key;
	u64 state;
	u32 image;
	u32 at, end;
};

/* A bpf_loop callback that takes CHUNK bytes of a key of at most SIZE bytes, a
 * power of two. */
#define DEFINE_CHUNK(name, table, states, size, chunk)                                             \
	static long name(u64 step, struct dfa_walk *walk)                                          \
	{                                                                                          \
		struct table *dfa = table_entry(table, walk->image, 0);                            \
		const char *key = walk->key;                                                       \
		u64 state = walk->state, at = walk->at;                                            \
                                                                                                   \
		if (!dfa)                                                                          \
			return 1;                                                                  \
		/* Not inside the loop: behind the key are its zeros, not its start. */            \
		BOUND(at, (size)-1);                                                               \
		_Pragma("clang loop unroll(disable)") for (u32 i = 0; i < (chunk); i += 8)         \
		{                                                                                  \
			u64 word = *(u64 *)(key + at + i);                                         \
                                                                                                   \
			STEP(dfa, states, 0);                                                      \
			STEP(dfa, states, 8);                                                      \
			STEP(dfa, states, 16);                                                     \
			STEP(dfa, states, 24);                                                     \
			STEP(dfa, states, 32);                                                     \
			STEP(dfa, states, 40);                                                     \
			STEP(dfa, states, 48);                                                     \
			STEP(dfa, states, 56);                                                     \
		}                                                                                  \
		walk->state = state;                                                               \
		walk->at = at + (chunk);                                                           \
		return walk->at >= walk->end;                                                      \
	}

DEFINE_CHUNK(path_chunk_small, dfa_small, STATES_SMALL, PATH_SIZE, CHUNK)
DEFINE_CHUNK(path_chunk_large, dfa_large, STATES_LARGE, PATH_SIZE, CHUNK)
DEFINE_CHUNK(base_chunk_small, dfa_small, STATES_SMALL, PATH_SIZE, NAME_CHUNK)
DEFINE_CHUNK(base_chunk_large, dfa_large, STATES_LARGE, PATH_SIZE, NAME_CHUNK)
DEFINE_CHUNK(name_chunk_small, dfa_small, STATES_SMALL, NAME_SIZE, CHUNK)
DEFINE_CHUNK(name_chunk_large, dfa_large, STATES_LARGE, NAME_SIZE, CHUNK)

static __always_inline u32 row_of_state(u32 image, u64 state)
{
	struct state *entry = table_entry(states, image, (u32)state);

	/* Never: the daemon fills the whole table. A deny clause must not be
	 * lost all the same. */
	return entry ? entry->row : ROW_UNKNOWN;
}

#define NO_STATE 0xffffffff

/* path_state walks the path in the buffer from AT on. */
static __always_inline u32 path_state(u32 image, u32 number, u32 at, u32 start)
{
	struct image *head = image_at(image);
	struct scratch *scratch = scratch_at(number);
	struct dfa_walk walk = { .image = image, .at = at, .end = PATH_SIZE - 1 };

	if (!head || !scratch || at >= PATH_SIZE - 1 || start >= NUM_STARTS)
		return NO_STATE;
	walk.key = scratch->path;
	walk.state = head->start[start];
	if (head->large)
		bpf_loop(PATH_SIZE / CHUNK, path_chunk_large, &walk, 0);
	else
		bpf_loop(PATH_SIZE / CHUNK, path_chunk_small, &walk, 0);
	return walk.state;
}

/* base_row returns the row of the last name of the path in the buffer. */
static __always_inline u32 base_row(u32 image, struct image *head, u32 number)
{
	struct scratch *scratch = scratch_at(number);
	struct dfa_walk walk = { .image = image, .end = PATH_SIZE - 1 };

	if (!scratch)
		return ROW_UNKNOWN;
	walk.key = scratch->path;
	walk.state = head->start[START_BASE];
	walk.at = scratch->base;
	if (head->large)
		bpf_loop(NAME_SIZE / NAME_CHUNK, base_chunk_large, &walk, 0);
	else
		bpf_loop(NAME_SIZE / NAME_CHUNK, base_chunk_small, &walk, 0);
	return row_of_state(image, walk.state);
}

/* Added to START_PATH: the path of a program that is run. */
#define OF_PROGRAM 0x100

/* path_row returns the row of the path in the buffer from AT on; from START_PATH the two
 * rows, see ROW_BITS, of the path that was rendered last. */
__noinline u32 path_row(u32 image, u32 number, u32 at, u32 start)
{
	u32 entry = start & ~OF_PROGRAM;
	u32 state = path_state(image, number, at, entry);
	struct image *head = image_at(image);
	u32 row;

	if (state == NO_STATE || !head)
		return ROW_UNKNOWN;
	row = row_of_state(image, state);
	if (entry != START_PATH || !head->start[START_BASE] ||
	    !(start & OF_PROGRAM || head->ops & USES_NAMES))
		return row;
	return row | base_row(image, head, number) << ROW_BITS;
}

/* first_row and second_row take two rows apart; 0: there is nothing in it. */
static __always_inline u32 first_row(u32 rows)
{
	return rows & ((1 << ROW_BITS) - 1);
}

static __always_inline u32 second_row(u32 rows)
{
	return rows >> ROW_BITS;
}

/* Functions that return what two rows have of a field together; MISSING is for a row that
 * cannot be looked at, which is never. */
#define DEFINE_OF_ROWS(name, field, missing)                                                       \
	__noinline u64 name(u32 image, u32 numbers)                                                \
	{                                                                                          \
		struct row *row = table_entry(rows, image, first_row(numbers));                    \
		u64 both = row ? row->field : (missing);                                           \
                                                                                                   \
		if (second_row(numbers)) {                                                         \
			row = table_entry(rows, image, second_row(numbers));                       \
			both |= row ? row->field : (missing);                                      \
		}                                                                                  \
		return both;                                                                       \
	}

DEFINE_OF_ROWS(row_sources, sources, ~0ULL)
DEFINE_OF_ROWS(row_exec_sources, exec_sources, ~0ULL)
DEFINE_OF_ROWS(row_targets, targets, 0)
DEFINE_OF_ROWS(row_lineage, lineage, 0)
DEFINE_OF_ROWS(row_declassify, declassify, 0)
DEFINE_OF_ROWS(row_endorse, endorse, 0)
DEFINE_OF_ROWS(row_opens, opens, 0)
DEFINE_OF_ROWS(row_exec_args, exec_args, 1)
DEFINE_OF_ROWS(row_ops, ops, ~0U)

static __always_inline u32 next_state(u32 image, u64 state, u8 byte)
{
	struct image *head = image_at(image);
	u64 word = byte;

	if (!head)
		return NO_STATE;
	if (head->large) {
		struct dfa_large *dfa = table_entry(dfa_large, image, 0);

		if (!dfa)
			return NO_STATE;
		STEP(dfa, STATES_LARGE, 0);
	} else {
		struct dfa_small *dfa = table_entry(dfa_small, image, 0);

		if (!dfa)
			return NO_STATE;
		STEP(dfa, STATES_SMALL, 0);
	}
	return state;
}

#define NO_DIRECTORY 0

/* path_directory returns the number of the directory that has the path in the buffer. */
__noinline u32 path_directory(u32 image, u32 number, u32 at)
{
	u32 state = path_state(image, number, at, START_PATH);
	struct state *entry;

	if (state == NO_STATE)
		return NO_DIRECTORY;
	entry = table_entry(states, image, next_state(image, state, '/'));
	return entry ? entry->directory : NO_DIRECTORY;
}

static __always_inline u64 walk_key(u32 image, bool large, const char *key, u32 length, u64 state)
{
	struct dfa_walk walk = { .key = key, .state = state, .image = image, .end = length };

	if (large)
		bpf_loop(NAME_SIZE / CHUNK, name_chunk_large, &walk, 0);
	else
		bpf_loop(NAME_SIZE / CHUNK, name_chunk_small, &walk, 0);
	return walk.state;
}

/* name_key_row returns the row of the key of LENGTH bytes in the buffer's name. */
__noinline u32 name_key_row(u32 image, u32 number, u32 length, u32 start)
{
	struct image *head = image_at(image);
	struct scratch *scratch = scratch_at(number);
	u64 state;

	if (!head || !scratch || length >= NAME_SIZE)
		return ROW_UNKNOWN;
	state = head->start[start == START_UNIX ? START_UNIX : START_NAME];
	return row_of_state(image, walk_key(image, head->large, scratch->name, length, state));
}

/* token_state runs over the piece of argv of LENGTH bytes in the thread's key. */
__noinline u64 token_state(u32 image, u64 state, u32 length)
{
	struct image *head = image_at(image);
	struct thread *thread = thread_state();

	if (!head || !thread)
		return 0;
	return walk_key(image, head->large, thread->key, length, state);
}

struct address {
	u8 bytes[ADDRESS_SIZE];
};

/* address_row: 0 is a byte like any other here, so each byte is one step. */
__noinline u32 address_row(u32 image, struct address *address)
{
	struct image *head = image_at(image);
	u64 state;

	if (!head || !address)
		return ROW_UNKNOWN;
	state = head->start[START_ADDRESS];
	if (head->large) {
		struct dfa_large *dfa = table_entry(dfa_large, image, 0);

		for (u32 i = 0; dfa && i < ADDRESS_SIZE; i++) {
			u64 word = address->bytes[i];

			STEP(dfa, STATES_LARGE, 0);
		}
	} else {
		struct dfa_small *dfa = table_entry(dfa_small, image, 0);

		for (u32 i = 0; dfa && i < ADDRESS_SIZE; i++) {
			u64 word = address->bytes[i];

			STEP(dfa, STATES_SMALL, 0);
		}
	}
	return row_of_state(image, state);
}

#endif
