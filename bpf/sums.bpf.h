/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an answer is for, as a number: SipHash-2-4 of the rule, the operation, its
 * object and argv, and of all that a grant binds. Its key is the host's secret, so
 * that nobody in a container can look for another operation of the same sum.
 */
#ifndef ACTPLANE_SUMS_H
#define ACTPLANE_SUMS_H

#include "labels.bpf.h"

#define X86_EXECVE 59
#define X86_EXECVEAT 322
#define X86_COMPAT_EXECVE 11
#define X86_COMPAT_EXECVEAT 358

/* lasting_id names a file as the next start of the container will, too: by the UUID of
 * its file system, since the numbers of overlays are new each time. */
static __always_inline struct file_id lasting_id(struct inode *inode)
{
	struct file_id id = file_id(inode);
	u64 uuid[2] = {};
	struct super_block *sb = BPF_CORE_READ(inode, i_sb);

	bpf_core_read(uuid, sizeof(uuid), &sb->s_uuid);
	id.dev = uuid[0] ^ uuid[0] >> 32 ^ uuid[1] ^ uuid[1] >> 32;
	return id;
}

#define ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

static __always_inline void sip_round(struct sip *sip)
{
	u64 a = sip->v[0], b = sip->v[1], c = sip->v[2], d = sip->v[3];

	a += b;
	c += d;
	b = ROTATE(b, 13) ^ a;
	d = ROTATE(d, 16) ^ c;
	a = ROTATE(a, 32);
	a += d;
	c += b;
	d = ROTATE(d, 21) ^ a;
	b = ROTATE(b, 17) ^ c;
	c = ROTATE(c, 32);
	sip->v[0] = a;
	sip->v[1] = b;
	sip->v[2] = c;
	sip->v[3] = d;
}

/* Two sums can be made side by side. */
static __always_inline struct sip *sip_of(struct thread *thread, u32 other)
{
	return other ? &thread->ask.other : &thread->ask.sip;
}

/* The functions below are not static so that the verifier looks at them once: there is
 * one way for all that is summed, through the thread's key. */

__noinline int sip_begin(u32 other)
{
	struct thread *thread = thread_state();
	struct host *host = host_state();
	struct sip *sip;

	if (!thread || !host)
		return 0;
	sip = sip_of(thread, other);
	sip->v[0] = host->secret[0] ^ 0x736f6d6570736575ULL;
	sip->v[1] = host->secret[1] ^ 0x646f72616e646f6dULL ^ 0xee; /* of 128 bits */
	sip->v[2] = host->secret[0] ^ 0x6c7967656e657261ULL;
	sip->v[3] = host->secret[1] ^ 0x7465646279746573ULL;
	return 1;
}

static __always_inline void sip_word(struct sip *sip, u64 word)
{
	sip->v[3] ^= word;
	sip_round(sip);
	sip_round(sip);
	sip->v[0] ^= word;
}

/* sip_key adds the ARG_PIECE bytes of the thread's key, of which LENGTH mean
 * something and the others are 0. */
__noinline int sip_key(u32 other, u64 length)
{
	struct thread *thread = thread_state();
	struct sip *sip;

	if (!thread)
		return 0;
	sip = sip_of(thread, other);
	sip_word(sip, length);
	_Pragma("clang loop unroll(disable)") for (u32 at = 0; at < ARG_PIECE; at += 8)
		sip_word(sip, *(u64 *)(thread->key + at));
	return 0;
}

/* sip_end puts the sum into the thread's state. What goes in has a length of its own,
 * so that no length comes at the end. */
__noinline int sip_end(u32 other)
{
	struct thread *thread = thread_state();
	struct sip *sip;

	if (!thread)
		return 0;
	sip = sip_of(thread, other);
	sip->v[2] ^= 0xee;
	_Pragma("clang loop unroll(disable)") for (u32 i = 0; i < 4; i++) sip_round(sip);
	thread->ask.ended[0] = sip->v[0] ^ sip->v[1] ^ sip->v[2] ^ sip->v[3];
	sip->v[1] ^= 0xdd;
	_Pragma("clang loop unroll(disable)") for (u32 i = 0; i < 4; i++) sip_round(sip);
	thread->ask.ended[1] = sip->v[0] ^ sip->v[1] ^ sip->v[2] ^ sip->v[3];
	return 1;
}

/* end_sum ends one of the two sums into TO, in the thread's state. */
static __always_inline void end_sum(struct thread *thread, u32 other, u64 *to)
{
	sip_end(other);
	to[0] = thread->ask.ended[0];
	to[1] = thread->ask.ended[1];
}

/* caller_strings finds argv and the environment in the registers of the running
 * system call. */
static __always_inline void caller_strings(struct pt_regs *regs, u64 *argv, u64 *envp, bool *compat)
{
	u64 number = BPF_CORE_READ(regs, orig_ax);

	*compat = number == X86_COMPAT_EXECVE || number == X86_COMPAT_EXECVEAT;
	if (number == X86_EXECVE) {
		*argv = BPF_CORE_READ(regs, si);
		*envp = BPF_CORE_READ(regs, dx);
	} else if (number == X86_COMPAT_EXECVE) {
		*argv = BPF_CORE_READ(regs, cx);
		*envp = BPF_CORE_READ(regs, dx);
	} else {
		*argv = BPF_CORE_READ(regs, dx);
		*envp = number == X86_EXECVEAT ? BPF_CORE_READ(regs, r10) : BPF_CORE_READ(regs, si);
	}
}

#define NO_FIRST 0xffffffff

static __always_inline bool next_string(struct string_walk *w)
{
	u64 pointer = 0;
	long error;

	if (!w->vector) {
		w->done = w->index >= w->count;
		return !w->done;
	}
	if (w->compat)
		error = bpf_probe_read_user(&pointer, 4, (void *)(w->vector + w->index * 4ULL));
	else
		error = bpf_probe_read_user(&pointer, 8, (void *)(w->vector + w->index * 8ULL));
	w->done = !error && !pointer;
	w->next = pointer;
	return !error && pointer;
}

static long string_step(u64 step, void *unused)
{
	struct thread *thread = thread_state();
	struct string_walk *w;
	u64 length, last;
	long size;

	if (!thread)
		return 1;
	w = &thread->ask.walk;
	if (!w->inside && !next_string(w))
		return 1;
	__builtin_memset(thread->key, 0, sizeof(thread->key));
	size = bpf_probe_read_user_str(thread->key, ARG_PIECE, (void *)w->next);
	if (size < 0)
		return 1;
	/* As in piece_step. */
	last = size < ARG_PIECE;
	length = !last ? ARG_PIECE - 1 : size ? size - 1 : 0;
	if (w->index == w->first || w->index >= w->skip)
		sip_key(w->index == w->first, length | last << 32);
	w->inside = !last;
	w->next += length + last;
	w->index += last;
	return 0;
}

/* walk_strings returns whether all were seen. */
static __always_inline bool walk_strings(struct thread *thread, struct string_walk *from)
{
	thread->ask.walk = *from;
	bpf_loop(2 * MAX_ARG_PIECES, string_step, NULL, 0);
	return thread->ask.walk.done;
}

/* What the kernel took is in one piece: argv, then the environment. */
static __always_inline bool walk_taken(struct thread *thread)
{
	struct string_walk w = {
		.next = thread->ask.from,
		.count = thread->ask.args + thread->ask.env,
		.first = thread->ask.skip == 1 ? 0 : NO_FIRST,
		.skip = thread->ask.skip,
	};

	return walk_strings(thread, &w);
}

static __always_inline bool walk_given(struct thread *thread)
{
	struct string_walk w = { .first = 0, .skip = 1 };
	struct task_struct *task = bpf_get_current_task_btf();
	u64 envp;
	bool compat;

	caller_strings((struct pt_regs *)bpf_task_pt_regs(task), &w.vector, &envp, &compat);
	w.compat = compat;
	if (w.vector && !walk_strings(thread, &w))
		return false;
	w.vector = envp;
	w.first = NO_FIRST;
	w.skip = 0;
	return !envp || walk_strings(thread, &w);
}

/* sum_strings sums argv and environment, of the running system call or of what the
 * kernel has taken. 0: they cannot be read. */
__noinline int sum_strings(void)
{
	struct thread *thread = thread_state();

	if (!thread || !sip_begin(0) || !sip_begin(1))
		return 0;
	if (!(thread->ask.from ? walk_taken(thread) : walk_given(thread)))
		return 0;
	end_sum(thread, 0, thread->ask.strings.rest);
	if (!thread->ask.from || thread->ask.skip == 1)
		end_sum(thread, 1, thread->ask.strings.first);
	thread->ask.strings_known = 1;
	return 1;
}

/* sum_path sums the path that begins at AT; behind it are zeros. */
__noinline int sum_path(u32 number, u32 begin)
{
	struct scratch *scratch = scratch_at(number);
	struct thread *thread = thread_state();
	u64 at = begin;

	if (!thread || !scratch || !sip_begin(0))
		return 0;
	_Pragma("clang loop unroll(disable)") for (u32 i = 0; i < PATH_SIZE / ARG_PIECE; i++)
	{
		if (at >= PATH_SIZE - 1)
			break;
		BOUND(at, PATH_SIZE - 1);
		bpf_probe_read_kernel(thread->key, ARG_PIECE, &scratch->path[at]);
		sip_key(0, ARG_PIECE);
		at += ARG_PIECE;
	}
	end_sum(thread, 0, thread->ask.object);
	return 1;
}

/* sum_text sums an object that is no path. */
__noinline int sum_text(struct act *act)
{
	struct thread *thread = thread_state();
	struct output *output;
	u64 size;

	if (!act || !thread || !sip_begin(0))
		return 0;
	output = output_at(act->scratch);
	if (!output)
		return 0;
	size = act->object;
	BOUND(size, 127);
	__builtin_memset(thread->key, 0, sizeof(thread->key));
	bpf_probe_read_kernel(thread->key, size, output->data);
	sip_key(0, size);
	end_sum(thread, 0, thread->ask.object);
	return 1;
}

/* object_sum: after an exec its programs' paths are no longer in the buffer. */
static __always_inline bool object_sum(struct act *act, struct thread *thread)
{
	u64 level = act->level;

	if (act->stage == STAGE_LAST && level < MAX_EXEC_LEVELS) {
		BOUND(level, 7);
		thread->ask.object[0] = thread->exec.level[level].object[0];
		thread->ask.object[1] = thread->exec.level[level].object[1];
		return thread->ask.object[0];
	}
	if (act->object_kind != OBJECT_PATH)
		return act->object_kind != OBJECT_NONE && sum_text(act);
	return act->object < PATH_SIZE - 1 && sum_path(act->scratch, act->object);
}

/* changed_at is when a file was last changed, which no program can set. */
static __always_inline u64 changed_at(struct inode *inode)
{
	if (bpf_core_field_exists(struct inode___split, i_ctime_sec)) {
		struct inode___split *split = (void *)inode;

		return BPF_CORE_READ(split, i_ctime_sec) << 30 | BPF_CORE_READ(split, i_ctime_nsec);
	}
	if (bpf_core_field_exists(struct inode___accessors, __i_ctime)) {
		struct inode___accessors *hidden = (void *)inode;

		return BPF_CORE_READ(hidden, __i_ctime.tv_sec) << 30 |
		       BPF_CORE_READ(hidden, __i_ctime.tv_nsec);
	}
	return BPF_CORE_READ(inode, i_ctime.tv_sec) << 30 | BPF_CORE_READ(inode, i_ctime.tv_nsec);
}

/* version_of returns the number of a program, 0 if it can have none. */
__noinline u64 version_of(u64 inode)
{
	struct file_id id = lasting_id((void *)inode);
	u64 *known = bpf_map_lookup_elem(&versions, &id), fresh;
	struct host *host = host_state();

	if (known || !host)
		return known ? *known : 0;
	fresh = __sync_fetch_and_add(&host->versions, 1) + 1;
	bpf_map_update_elem(&versions, &id, &fresh, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&versions, &id);
	return known ? *known : 0;
}

/* end_version: who has opened a file to write can change it from now on. */
__noinline int end_version(u64 inode)
{
	struct host *host = host_state();
	struct file_id id;

	if (!host || !host->versions)
		return 0;
	id = lasting_id((void *)inode);
	return bpf_map_delete_elem(&versions, &id);
}

#define LSM_UNSAFE_SHARE 1 /* processes, not threads of this one, share its directory */

/* unbound tells why no grant can be for an exec: enum asked, or 0. */
__noinline u32 unbound(struct act *act)
{
	struct thread *thread = thread_state();
	struct inode *opened;

	if (!act || !thread || act->mapped || act->stage != STAGE_EXEC)
		return 0;
	opened = (void *)thread->exec.opened;
	if (thread->exec.unsafe & LSM_UNSAFE_SHARE)
		return ASKED_SHARED;
	if (!opened || BPF_CORE_READ(opened, i_writecount.counter) > 0 ||
	    BPF_CORE_READ(opened, i_mapping, i_mmap_writable.counter) > 0)
		return ASKED_WRITTEN;
	return 0;
}

/* note_program keeps of a program of an exec what its sums need later: its path, and of
 * the first its file, since an interpreter's grant is for this script. */
static __always_inline void note_program(struct act *act, struct exec_level *level,
					 struct inode *inode)
{
	struct image *head = image_at(act->image);
	struct thread *thread = thread_state();

	if (!thread || !head || !head->asks)
		return;
	if (act->object < PATH_SIZE - 1 && sum_path(act->scratch, act->object)) {
		level->object[0] = thread->ask.object[0];
		level->object[1] = thread->ask.object[1];
	}
	if (!act->level) {
		struct file_id id = lasting_id(inode);

		thread->ask.script[0] = id.ino;
		thread->ask.script[1] = (u64)id.dev << 32 | id.generation;
		thread->ask.script[2] = changed_at(inode);
		thread->ask.script[3] = version_of(number_of(inode));
	}
}

/* What a sum is of, in the order in which it is summed. */
struct summed {
	u64 rule, object[2], beside;
	struct file_id file; /* the object, or the directory of what is to be made */
	/* From here on what is not asked of descriptors and connections, which are
	 * used elsewhere and after the file was changed. */
	u64 modified, who;
	struct file_id directory;
	/* Of an exec. */
	u64 changed, version, script[4];
	struct strings_sum strings;
};

_Static_assert(sizeof(struct summed) <= ARG_PIECE, "summed");

/* add_exec adds what an exec is, beside its program: as it is now, and what it gets. */
static __always_inline void add_exec(struct act *act, struct thread *thread, struct summed *s)
{
	s->changed = changed_at((void *)act->inode);
	s->version = version_of(act->inode);
	if (act->level)
		__builtin_memcpy(s->script, thread->ask.script, sizeof(s->script));
	s->strings = thread->ask.strings;
}

/* add_subject adds who does it, and where. An exec can change who it is: what it was
 * when the exec began is what was granted. */
static __always_inline void add_subject(struct act *act, struct thread *thread, struct summed *s)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (act->stage != STAGE_LAST)
		thread->ask.who = (u64)BPF_CORE_READ(task, cred, euid.val) << 32 |
				  BPF_CORE_READ(task, cred, uid.val);
	s->who = thread->ask.who;
	s->directory = lasting_id(BPF_CORE_READ(task, fs, pwd.dentry, d_inode));
	if (act->stage != STAGE_LAST)
		thread->ask.directory = s->directory;
}

/* begin_summed fills in the part that descriptors and connections have, too. */
__noinline int begin_summed(struct act *act, u32 op, u32 rule)
{
	struct thread *thread = thread_state();
	struct summed *s;
	u64 file;

	if (!act || !thread)
		return 0;
	s = (struct summed *)thread->key;
	__builtin_memset(thread->key, 0, sizeof(thread->key));
	s->rule = (u64)rule << 32 | op << 16;
	s->beside = act->beside;
	if (act->beside) /* which has both names and files */
		return 1;
	s->rule |= act->protocol << 8 | act->mapped << 7 | (act->inode != 0) << 6 |
		   act->object_kind;
	s->object[0] = thread->ask.object[0];
	s->object[1] = thread->ask.object[1];
	file = act->inode ?: act->parent;
	if (file)
		s->file = lasting_id((void *)file);
	return 1;
}

__noinline int end_summed(struct act *act, bool exec)
{
	struct thread *thread = thread_state();
	struct summed *s;

	if (!act || !thread)
		return 0;
	s = (struct summed *)thread->key;
	if (act->inode && !act->beside)
		s->modified = 1U << (file_modified(act) & 3);
	add_subject(act, thread, s);
	if (exec)
		add_exec(act, thread, s);
	return 1;
}

/*
 * make_sums sums what ACT does under a rule, into the thread's state: all that a grant
 * binds, and the part of it that descriptors and connections have. 0: it cannot be
 * told.
 */
__noinline int make_sums(struct act *act, u32 op, u32 rule)
{
	struct thread *thread = thread_state();
	bool exec;

	if (!act || !thread)
		return 0;
	exec = op == OP_EXEC && !act->mapped;
	if (!object_sum(act, thread) || (exec && !thread->ask.strings_known))
		return 0;
	begin_summed(act, op, rule);
	sip_begin(0);
	sip_key(0, 1);
	end_sum(thread, 0, thread->ask.use);
	end_summed(act, exec);
	sip_begin(0);
	sip_key(0, 2);
	end_sum(thread, 0, thread->ask.sum);
	return 1;
}

static __always_inline void add_name(struct thread *thread, struct dentry *dentry)
{
	long size;

	__builtin_memset(thread->key, 0, sizeof(thread->key));
	*(struct file_id *)thread->key = lasting_id(BPF_CORE_READ(dentry, d_parent, d_inode));
	sip_key(0, 0);
	__builtin_memset(thread->key, 0, sizeof(thread->key));
	size = bpf_probe_read_kernel_str(thread->key, ARG_PIECE,
					 BPF_CORE_READ(dentry, d_name.name));
	sip_key(0, size);
}

/* add_named adds the file that has a name, and whether it was modified. */
static __always_inline void add_named(struct act *act, struct thread *thread, u64 dentry)
{
	u64 inode = act->inode;
	u8 kind = act->object_kind;

	__builtin_memset(thread->key, 0, sizeof(thread->key));
	act->inode = (u64)BPF_CORE_READ((struct dentry *)dentry, d_inode);
	act->object_kind = OBJECT_PATH;
	if (act->inode)
		*(struct file_id *)thread->key = lasting_id((void *)act->inode);
	thread->key[sizeof(struct file_id)] = file_modified(act);
	sip_key(0, 0);
	act->inode = inode;
	act->object_kind = kind;
}

/* sum_names makes an operation on two names one: whoever is asked about the first is
 * asked about it with the second. */
__noinline int sum_names(struct act *act, u64 from, u64 to)
{
	struct thread *thread;
	struct image *head;

	if (!act)
		return 0;
	head = image_at(act->image);
	if (!head || !head->asks)
		return 0;
	thread = new_thread_state();
	if (!thread || !sip_begin(0))
		return 0;
	add_name(thread, (void *)from);
	add_named(act, thread, from);
	add_name(thread, (void *)to);
	add_named(act, thread, to);
	sip_end(0);
	act->beside = thread->ask.ended[0];
	return 0;
}

#endif
