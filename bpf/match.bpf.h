/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keys to rows: one walk of an image's automaton over the key's bytes, whatever
 * the number of patterns. The table is flat, without byte classes: one load a
 * byte. 64 bytes are taken at a time without looking for the end, since the key
 * is followed by zeros and the byte 0 leads every state to itself.
 */
#ifndef ACTPLANE_MATCH_H
#define ACTPLANE_MATCH_H

#include "maps.bpf.h"

#define CHUNK 64

#define STEP(dfa, states, shift)                                      \
	do {                                                          \
		u64 index_ = ((word >> (shift)) & 0xff) | state << 8; \
		BOUND(index_, (states) * 256 - 1);                    \
		state = (dfa)->next[index_];                          \
	} while (0)

struct dfa_walk {
	const char *key;
	u64 state;
	u32 image;
	u32 at, end;
};

/* A bpf_loop callback that takes CHUNK bytes of a key of at most SIZE bytes, a
 * power of two. */
#define DEFINE_CHUNK(name, table, states, size)                               \
	static long name(u64 step, struct dfa_walk *walk)                     \
	{                                                                     \
		struct table *dfa = table_entry(table, walk->image, 0);       \
		const char *key = walk->key;                                  \
		u64 state = walk->state, at = walk->at;                       \
                                                                              \
		if (!dfa)                                                     \
			return 1;                                             \
		_Pragma("clang loop unroll(disable)")                         \
		for (u32 i = 0; i < CHUNK; i += 8) {                          \
			u64 offset = at + i, word;                            \
                                                                              \
			BOUND(offset, (size) - 1);                            \
			word = *(u64 *)(key + offset);                        \
			STEP(dfa, states, 0);                                 \
			STEP(dfa, states, 8);                                 \
			STEP(dfa, states, 16);                                \
			STEP(dfa, states, 24);                                \
			STEP(dfa, states, 32);                                \
			STEP(dfa, states, 40);                                \
			STEP(dfa, states, 48);                                \
			STEP(dfa, states, 56);                                \
		}                                                             \
		walk->state = state;                                          \
		walk->at = at + CHUNK;                                        \
		return walk->at >= walk->end;                                 \
	}

DEFINE_CHUNK(path_chunk_small, dfa_small, STATES_SMALL, PATH_SIZE)
DEFINE_CHUNK(path_chunk_large, dfa_large, STATES_LARGE, PATH_SIZE)
DEFINE_CHUNK(name_chunk_small, dfa_small, STATES_SMALL, NAME_SIZE)
DEFINE_CHUNK(name_chunk_large, dfa_large, STATES_LARGE, NAME_SIZE)

static __always_inline u32 row_of_state(u32 image, u64 state)
{
	u32 *row = table_entry(state_rows, image, (u32)state);

	/* Never: the daemon fills the whole table. A deny clause must not be
	 * lost all the same. */
	return row ? *row : ROW_UNKNOWN;
}

/* walk_path runs over scratch->path from AT on. */
static __noinline u64 walk_path(u32 image, struct image *head, struct scratch *scratch,
				u32 at, enum start start)
{
	struct dfa_walk walk = {
		.key = scratch->path,
		.state = head->start[start == START_UNIX ? START_UNIX : START_PATH],
		.image = image,
		.at = at,
		.end = PATH_SIZE - 1,
	};

	if (head->large)
		bpf_loop(PATH_SIZE / CHUNK, path_chunk_large, &walk, 0);
	else
		bpf_loop(PATH_SIZE / CHUNK, path_chunk_small, &walk, 0);
	return walk.state;
}

/* walk_name runs over a key of LENGTH bytes, at most NAME_SIZE, and a chunk of
 * zeros behind them. */
static __noinline u64 walk_name(u32 image, struct image *head, const char *key, u32 length,
				u64 state)
{
	struct dfa_walk walk = {
		.key = key,
		.state = state,
		.image = image,
		.end = length,
	};

	if (head->large)
		bpf_loop(NAME_SIZE / CHUNK, name_chunk_large, &walk, 0);
	else
		bpf_loop(NAME_SIZE / CHUNK, name_chunk_small, &walk, 0);
	return walk.state;
}

struct address {
	u8 bytes[ADDRESS_SIZE];
};

/* address_row: 0 is a byte like any other here, so each byte is one step. */
static __noinline u32 address_row(u32 image, struct image *head, struct address *address)
{
	struct dfa_small *small = NULL;
	struct dfa_large *large = NULL;
	u64 state = head->start[START_ADDRESS];

	if (head->large)
		large = table_entry(dfa_large, image, 0);
	else
		small = table_entry(dfa_small, image, 0);
	if (!small && !large)
		return ROW_UNKNOWN;
	for (u32 i = 0; i < ADDRESS_SIZE; i++) {
		u64 word = address->bytes[i];

		if (small)
			STEP(small, STATES_SMALL, 0);
		else if (large)
			STEP(large, STATES_LARGE, 0);
	}
	return row_of_state(image, state);
}

#endif
