/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * argv through the token automaton. The set of positions reached says which
 * sequences of tokens have been seen, gaps allowed: one pass for all clauses.
 */
#ifndef ACTPLANE_ARGV_H
#define ACTPLANE_ARGV_H

#include "decide.bpf.h"

struct arg_stream {
	struct thread *thread;
	struct image *head;
	u64 vector; /* the array of pointers; 0: strings one after the other */
	u64 next; /* the rest of the current token */
	u64 end; /* without a vector: where the strings end */
	u64 state;
	u32 image;
	u32 skip; /* tokens that are not looked at */
	u32 index;
	bool compat; /* pointers of 4 bytes */
	bool keep; /* for the record */
	bool inside; /* of a token */
	bool done, failed;
};

/* advance moves the set of positions by one token, which ended in STATE. */
static __noinline void advance(struct arg_set *reached, struct image *head, u32 image,
			       u64 state)
{
	struct row *row = table_entry(rows, image, row_of_state(image, state));
	struct arg_set *satisfied;
	u64 carry = 0;

	if (!row)
		return;
	satisfied = table_entry(tokens, image, row->tokens);
	if (!satisfied)
		return;
	for (int i = 0; i < ARG_WORDS; i++) {
		u64 before = reached->words[i];

		reached->words[i] = before | ((before << 1 | carry | head->arg_start[i]) &
					      satisfied->words[i]);
		carry = before >> 63;
	}
}

static __always_inline bool next_token(struct arg_stream *s)
{
	u64 pointer = 0;
	u32 size = s->compat ? 4 : 8;
	void *from = (void *)(s->vector + (u64)s->index * size);
	long error;

	if (!s->vector) {
		s->done = s->next >= s->end;
		return !s->done;
	}
	if (s->compat)
		error = bpf_probe_read_user(&pointer, 4, from);
	else
		error = bpf_probe_read_user(&pointer, 8, from);
	s->failed = error;
	s->done = !error && !pointer;
	s->next = pointer;
	return !s->failed && !s->done;
}

static __always_inline void keep_piece(struct thread *thread, u32 length)
{
	u32 at = thread->exec.args_size;

	if (at >= ARGS_SIZE) {
		thread->exec.args_cut = 1;
		return;
	}
	BOUND(at, ARGS_SIZE - 1);
	BOUND(length, ARG_PIECE - 1);
	bpf_probe_read_kernel(&thread->args[at], length, thread->key);
	thread->exec.args_size = at + length;
	if (thread->exec.args_size > ARGS_SIZE) {
		thread->exec.args_size = ARGS_SIZE;
		thread->exec.args_cut = 1;
	}
}

/* take_piece has a piece of LENGTH bytes without its NUL in thread->key; LAST
 * tells that the token ends here. */
static __always_inline void take_piece(struct arg_stream *s, u32 length, bool last)
{
	struct thread *thread = s->thread;

	if (s->keep)
		keep_piece(thread, length + last);
	if (s->index >= s->skip && s->head->arg_words) {
		s->state = walk_name(s->image, s->head, thread->key, length, s->state);
		if (last)
			advance(&thread->exec.reached, s->head, s->image, s->state);
	}
	s->inside = !last;
	s->next += length + last;
	s->index += last;
}

/* A bpf_loop callback, because as a plain loop it takes the verifier a million
 * steps. */
static long piece_step(u64 step, struct arg_stream *s)
{
	struct thread *thread = s->thread;
	long size;

	if (!s->inside) {
		if (!next_token(s))
			return 1;
		s->state = s->head->start[START_TOKEN];
	}
	__builtin_memset(thread->key, 0, sizeof(thread->key));
	size = bpf_probe_read_user_str(thread->key, ARG_PIECE, (void *)s->next);
	if (size <= 0) {
		s->failed = true;
		return 1;
	}
	/* A full buffer is a token cut off by a NUL of the helper's own, or one
	 * that just fits: its end then comes as an empty piece. */
	if (size >= ARG_PIECE)
		take_piece(s, ARG_PIECE - 1, false);
	else
		take_piece(s, size - 1, true);
	return 0;
}

static __always_inline void reset_args(struct thread *thread)
{
	__builtin_memset(&thread->exec.reached, 0, sizeof(thread->exec.reached));
}

/* feed_string gives the automaton a kernel string as one token. One that does not
 * fit is left to the second look. */
static __noinline void feed_string(struct arg_stream *s, const char *string)
{
	struct thread *thread = s->thread;
	long size;

	__builtin_memset(thread->key, 0, sizeof(thread->key));
	size = bpf_probe_read_kernel_str(thread->key, ARG_PIECE, string);
	if (size <= 0 || size >= ARG_PIECE || !s->head->arg_words)
		return;
	s->state = walk_name(s->image, s->head, thread->key, size - 1,
			     s->head->start[START_TOKEN]);
	advance(&thread->exec.reached, s->head, s->image, s->state);
}

/* stream_args returns whether all of argv was seen. */
static __noinline bool stream_args(struct arg_stream *s)
{
	bpf_loop(MAX_ARG_PIECES, piece_step, s, 0);
	return s->done;
}

#endif
