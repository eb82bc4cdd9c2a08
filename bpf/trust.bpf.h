/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a program has to be for its run to open something: to arm gates, be lineage and
 * transform labels. And how that is taken back.
 */
#ifndef ACTPLANE_TRUST_H
#define ACTPLANE_TRUST_H

#include "share.bpf.h"

/* file_touched tells whether a program is not what it was outside of the scope: its
 * contents, or what it is called. */
static __always_inline bool file_touched(struct act *act, struct inode *inode)
{
	return file_state_of(act, inode).flags & (FILE_MODIFIED | FILE_NAMED | FILE_UNKNOWN);
}

struct climb {
	struct act *act;
	struct dentry *dentry;
	struct vfsmount *mount;
	bool named;
};

static long climb_step(u64 step, struct climb *climb)
{
	struct dentry *dentry = climb->dentry, *parent;
	struct vfsmount *vfsmount = climb->mount;
	struct file_state *state;
	struct file_key key;

	if (!climb->act)
		return 1;
	if (dentry == BPF_CORE_READ(vfsmount, mnt_root)) {
		u32 offset = bpf_core_field_offset(struct mount, mnt);
		struct mount *mount = (void *)vfsmount - offset;
		struct mount *above = BPF_CORE_READ(mount, mnt_parent);

		climb->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		climb->mount = (void *)above + offset;
		return above == mount;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry == parent)
		return 1;
	climb->dentry = parent;
	key = file_key(climb->act, BPF_CORE_READ(parent, d_inode));
	state = bpf_map_lookup_elem(&files, &key);
	climb->named = state && state->flags & FILE_NAMED;
	return climb->named;
}

/* named_below tells whether a file's path was made inside the scope, by the rename of a
 * directory above it. */
__noinline int named_below(struct act *act, u64 mount, u64 dentry)
{
	struct climb climb = { .act = act, .dentry = (void *)dentry, .mount = (void *)mount };
	struct image *head;

	if (!act)
		return 1;
	head = image_at(act->image);
	if (!head || !head->marks)
		return 0; /* nothing asks for it */
	bpf_loop(MAX_PATH_DEPTH, climb_step, &climb, 0);
	return climb.named;
}

/* is_foreign tells whether a file was written or got its name inside. */
static __always_inline bool is_foreign(struct act *act, struct file *file)
{
	return file_touched(act, BPF_CORE_READ(file, f_inode)) ||
	       named_below(act, (u64)BPF_CORE_READ(file, f_path.mnt),
			   (u64)BPF_CORE_READ(file, f_path.dentry));
}

/* foreign_file tells why a program opens nothing; 0: nothing is against it. */
static __always_inline u32 foreign_file(struct act *act, struct file *file)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (is_foreign(act, file))
		return REASON_FOREIGN_FILE;
	return BPF_CORE_READ(task, ptrace) ? REASON_FOREIGN_TRACED : 0;
}

/* The beginning of a variable. In words, since clang makes of bytes that are compared
 * one after the other a call of memcmp, which is not there. */
struct beginning {
	u64 words[3];
};

#define LETTER(name, at) ((at) < sizeof(name) ? (u64)(name "=")[(at) % sizeof(name)] : 0)
#define MASK(name, at) ((at) < sizeof(name) ? 0xffULL : 0)
#define WORD_OF(part, name, at)                                                                    \
	(part(name, at) | part(name, at + 1) << 8 | part(name, at + 2) << 16 |                     \
	 part(name, at + 3) << 24 | part(name, at + 4) << 32 | part(name, at + 5) << 40 |          \
	 part(name, at + 6) << 48 | part(name, at + 7) << 56)
#define SAME_WORD(b, name, i)                                                                      \
	(((b).words[i] & WORD_OF(MASK, name, 8 * i)) == WORD_OF(LETTER, name, 8 * i))
#define IS(b, name) (SAME_WORD(b, name, 0) && SAME_WORD(b, name, 1) && SAME_WORD(b, name, 2))

/* loads_code tells whether a variable makes a program or an interpreter run other code
 * than its own; package ir has the list. */
static __always_inline bool loads_code(struct beginning b)
{
	return (b.words[0] & 0xffffff) == ('L' | 'D' << 8 | '_' << 16) || IS(b, "BASH_ENV") ||
	       IS(b, "ENV") || IS(b, "PYTHONSTARTUP") || IS(b, "PYTHONPATH") ||
	       IS(b, "PYTHONHOME") || IS(b, "PERL5LIB") || IS(b, "PERL5OPT") || IS(b, "PERLLIB") ||
	       IS(b, "RUBYLIB") || IS(b, "RUBYOPT") || IS(b, "NODE_OPTIONS") ||
	       IS(b, "NODE_PATH") || IS(b, "JAVA_TOOL_OPTIONS") || IS(b, "CLASSPATH") ||
	       IS(b, "LUA_INIT") || IS(b, "LUA_PATH") || IS(b, "PHPRC") || IS(b, "GCONV_PATH");
}

struct env_walk {
	u64 next;
	u32 args, variables; /* left */
	u32 inside;	     /* of a string */
	u32 foreign;
};

static long env_step(u64 step, struct env_walk *walk)
{
	struct thread *thread = thread_state();
	struct beginning beginning;
	long size;

	if (!walk->args && !walk->variables)
		return 1;
	walk->foreign = 1; /* until it was read */
	if (!thread)
		return 1;
	size = bpf_probe_read_user_str(thread->key, ARG_PIECE, (void *)walk->next);
	if (size < 0)
		return 1;
	__builtin_memcpy(&beginning, thread->key, sizeof(beginning));
	if (!walk->args && !walk->inside && size > 3 && loads_code(beginning))
		return 1;
	walk->foreign = 0;
	walk->inside = size >= ARG_PIECE;
	if (walk->inside) {
		walk->next += ARG_PIECE - 1;
		return 0;
	}
	walk->next += size ?: 1; /* the helper returns 0 for an empty string */
	if (walk->args)
		walk->args--;
	else
		walk->variables--;
	return 0;
}

/* foreign_env looks at the ENVC variables of a new program, which follow its ARGC
 * arguments in its memory from FROM on. */
__noinline u32 foreign_env(u64 from, u32 argc, u32 envc)
{
	struct env_walk walk = { .next = from, .args = argc, .variables = envc };

	bpf_loop(MAX_ARG_PIECES, env_step, &walk, 0);
	return walk.foreign || walk.args || walk.variables ? REASON_FOREIGN_ENV : 0;
}

/* transform does to the current process what the program that it runs now is named for:
 * its rows. */
static __always_inline void transform(struct process *process, u32 image, u32 rows)
{
	u64 lineage = row_lineage(image, rows), declassify = row_declassify(image, rows);
	u64 endorse = row_endorse(image, rows);

	process->opened.lineage |= lineage & ~process->lineage;
	__sync_fetch_and_or(&process->lineage, lineage);
	if (!(declassify | endorse))
		return;
	process->opened.stripped |= process->labels & declassify;
	process->cleared |= declassify;
	__sync_fetch_and_and(&process->labels, ~declassify);
	process->opened.endorsed |= endorse & ~process->labels;
	__sync_fetch_and_or(&process->labels, endorse);
	clear_shared(process, declassify);
}

/* close_gate takes an arming back, unless the gate was armed again since. What was armed
 * before it is not known any more. It tells whether that closes the gate. */
static __always_inline bool close_gate(struct scope *scope, struct armed *armed)
{
	u64 gate = armed->gate;

	BOUND(gate, MAX_GATES - 1);
	return __sync_val_compare_and_swap(&scope->armed[gate], armed->epoch, 0) == armed->epoch &&
	       armed->epoch > scope->stale[gate];
}

/* take_back undoes what the exec of a process's program has opened. It returns the gates
 * that are closed by that. */
static __always_inline u64 take_back(struct process *process)
{
	u64 closed = 0;
	struct opened *opened = &process->opened;
	struct host *host = host_state();
	struct scope *scope;
	u32 slot = process->scope;

	if (host &&
	    (opened->lineage || opened->endorsed || opened->stripped || opened->armed_count))
		__sync_fetch_and_add(&host->changes, 1);
	scope = scope_at(slot);
	process->pending_count = 0;
	process->cleared = 0;
	__sync_fetch_and_and(&process->lineage, ~opened->lineage);
	__sync_fetch_and_and(&process->labels, ~opened->endorsed);
	__sync_fetch_and_or(&process->labels, opened->stripped);
	clear_shared(process, 0);
	for (u32 i = 0; scope && i < MAX_PENDING; i++) {
		if (i >= opened->armed_count)
			break;
		if (close_gate(scope, &opened->armed[i]))
			closed |= gate_bit(opened->armed[i].gate);
	}
	__builtin_memset(opened, 0, sizeof(*opened));
	return closed;
}

#endif
