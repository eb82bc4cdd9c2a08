/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * argv through the token automaton. The set of positions reached says which
 * sequences of tokens have been seen, gaps allowed: one pass for all clauses. It
 * is in the thread's state.
 */
#ifndef ACTPLANE_ARGV_H
#define ACTPLANE_ARGV_H

#include "decide.bpf.h"

struct arg_stream {
	u64 vector; /* the array of pointers; 0: strings one after the other */
	u64 next;   /* the rest of the current token */
	u64 state;
	u32 image;
	u32 index;
	u32 count;  /* without a vector: how many strings there are */
	u32 skip;   /* tokens that are not looked at */
	u32 compat; /* pointers of 4 bytes */
	u32 keep;   /* for the record */
	u32 inside; /* of a token */
	u32 done, failed;
};

/* advance moves the set of positions by one token, which ended in STATE. */
__noinline int advance(u32 image, u64 state)
{
	struct row *row = table_entry(rows, image, row_of_state(image, state));
	struct thread *thread = thread_state();
	struct image *head = image_at(image);
	struct arg_set *satisfied;
	u64 carry = 0;

	if (!row || !thread || !head)
		return 0;
	satisfied = table_entry(tokens, image, row->tokens);
	if (!satisfied)
		return 0;
	for (int i = 0; i < ARG_WORDS; i++) {
		u64 before = thread->exec.reached.words[i];

		thread->exec.reached.words[i] =
			before | ((before << 1 | carry | head->arg_start[i]) & satisfied->words[i]);
		carry = before >> 63;
	}
	return 0;
}

static __always_inline u64 token_start(u32 image)
{
	struct image *head = image_at(image);

	return head ? head->start[START_TOKEN] : 0;
}

static __always_inline bool next_token(struct arg_stream *s)
{
	u64 pointer = 0;
	long error;

	s->state = token_start(s->image);
	if (!s->vector) {
		s->done = s->index >= s->count;
		return !s->done;
	}
	if (s->compat)
		error = bpf_probe_read_user(&pointer, 4, (void *)(s->vector + s->index * 4ULL));
	else
		error = bpf_probe_read_user(&pointer, 8, (void *)(s->vector + s->index * 8ULL));
	s->failed = error != 0;
	s->done = !error && !pointer;
	s->next = pointer;
	return !error && pointer;
}

/* keep_piece appends the piece in the thread's key to the text for the record. */
static __always_inline void keep_piece(struct thread *thread, u64 length)
{
	u64 at = thread->exec.args_size;

	if (at + length > ARGS_SIZE) {
		thread->exec.args_cut = 1;
		return;
	}
	BOUND(at, ARGS_SIZE - 1);
	BOUND(length, 2 * ARG_PIECE - 1);
	if (length > ARG_PIECE)
		return;
	bpf_probe_read_kernel(&thread->args[at], length, thread->key);
	thread->exec.args_size = at + length;
}

/* take_piece has a piece of LENGTH bytes without its NUL in the thread's key; LAST
 * tells that the token ends here. */
static __always_inline void take_piece(struct arg_stream *s, struct thread *thread, u32 length,
				       u32 last)
{
	if (s->keep)
		keep_piece(thread, length + last);
	if (s->index >= s->skip) {
		s->state = token_state(s->image, s->state, length);
		if (last)
			advance(s->image, s->state);
	}
	s->inside = !last;
	s->next += length + last;
	s->index += last;
}

static long piece_step(u64 step, struct arg_stream *s)
{
	struct thread *thread = thread_state();
	long size;

	if (!thread || (!s->inside && !next_token(s)))
		return 1;
	__builtin_memset(thread->key, 0, sizeof(thread->key));
	size = bpf_probe_read_user_str(thread->key, ARG_PIECE, (void *)s->next);
	if (size < 0) {
		s->failed = 1;
		return 1;
	}
	/* A full buffer is a token cut off by a NUL of the helper's own, or one
	 * that just fits: its end then comes as an empty piece. For an empty string
	 * the helper returns 0, for any other it counts the NUL. */
	if (size >= ARG_PIECE)
		take_piece(s, thread, ARG_PIECE - 1, 0);
	else
		take_piece(s, thread, size ? size - 1 : 0, 1);
	return 0;
}

static __always_inline void reset_args(struct thread *thread)
{
	__builtin_memset(&thread->exec.reached, 0, sizeof(thread->exec.reached));
}

/* feed_string gives the automaton a kernel string as one token. One that does not
 * fit is left to the second look. */
static __always_inline void feed_string(u32 image, const char *string)
{
	struct thread *thread = thread_state();
	long size;

	if (!thread)
		return;
	__builtin_memset(thread->key, 0, sizeof(thread->key));
	size = bpf_probe_read_kernel_str(thread->key, ARG_PIECE, string);
	if (size > 0 && size < ARG_PIECE)
		advance(image, token_state(image, token_start(image), size - 1));
}

/* stream_args returns whether all of argv was seen. */
static __always_inline bool stream_args(struct arg_stream *s)
{
	bpf_loop(MAX_ARG_PIECES, piece_step, s, 0);
	return s->done;
}

#endif
