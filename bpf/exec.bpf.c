// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/*
 * Programs that start. A first look refuses with EPERM, a second one looks at the
 * argv that the kernel really took, which another thread may have changed in
 * between, and kills before the first instruction. Only then does the exec count.
 */

#define X86_EXECVE 59
#define X86_EXECVEAT 322
#define X86_COMPAT_EXECVE 11
#define X86_COMPAT_EXECVEAT 358

/* caller_argv finds argv in the registers of the running system call. */
static __always_inline void caller_argv(struct pt_regs *regs, u64 *vector, bool *compat)
{
	u64 number = BPF_CORE_READ(regs, orig_ax);

	*compat = number == X86_COMPAT_EXECVE || number == X86_COMPAT_EXECVEAT;
	if (number == X86_EXECVE)
		*vector = BPF_CORE_READ(regs, si);
	else if (number == X86_COMPAT_EXECVE)
		*vector = BPF_CORE_READ(regs, cx);
	else
		*vector = BPF_CORE_READ(regs, dx);
}

struct prefault {
	u64 vector;
	u32 index;
	bool compat;
};

static long prefault_step(u64 step, struct prefault *p)
{
	u64 pointer = 0;
	u8 byte;

	if (p->compat) {
		if (bpf_copy_from_user(&pointer, 4, (void *)(p->vector + step * 4)))
			return 1;
	} else if (bpf_copy_from_user(&pointer, 8, (void *)(p->vector + step * 8))) {
		return 1;
	}
	if (!pointer)
		return 1;
	bpf_copy_from_user(&byte, 1, (void *)pointer);
	bpf_copy_from_user(&byte, 1, (void *)(pointer + ARG_PIECE - 1));
	return 0;
}

/* Brings argv into memory, so that the first look, which may not sleep, can read
 * it. Only LSM programs can sleep; without this, the second look decides. */
SEC("lsm.s/bprm_creds_for_exec")
int BPF_PROG(lsm_bprm_creds_for_exec, struct linux_binprm *bprm)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct prefault p = {};

	if (!marked())
		return 0;
	caller_argv((struct pt_regs *)bpf_task_pt_regs(task), &p.vector, &p.compat);
	bpf_loop(MAX_ARG_PIECES, prefault_step, &p, 0);
	return 0;
}

struct base_name {
	struct scratch *scratch;
	u32 at, length;
};

static long base_name_step(u64 step, struct base_name *b)
{
	u32 at = b->at;

	if (!at)
		return 1;
	at--;
	BOUND(at, PATH_SIZE - 1);
	if (b->scratch->data[at] == '/')
		return 1;
	b->at = at;
	b->length++;
	return 0;
}

/* name_row returns the row of the base name by which a program was invoked. */
static __noinline u32 name_row(struct act *act, struct image *head, const char *invoked)
{
	struct scratch *scratch = act->scratch;
	struct base_name b = { .scratch = scratch };
	long size = bpf_probe_read_kernel_str(scratch->data, PATH_SIZE, invoked);
	u32 at, length;

	if (size <= 1 || size >= PATH_SIZE)
		return ROW_UNKNOWN;
	b.at = size - 1;
	bpf_loop(NAME_SIZE + 1, base_name_step, &b, 0);
	at = b.at;
	length = b.length;
	if (length >= NAME_SIZE)
		return ROW_UNKNOWN;
	BOUND(at, PATH_SIZE - 1);
	BOUND(length, NAME_SIZE - 1);
	__builtin_memset(scratch->name, 0, sizeof(scratch->name));
	bpf_probe_read_kernel(scratch->name, length, &scratch->data[at]);
	return row_of_state(act->image, walk_name(act->image, head, scratch->name, length,
						  head->start[START_NAME]));
}

/* read_args is the first look at argv. At the level of an interpreter the script's
 * name is one of its arguments. */
static __noinline void read_args(struct act *act, struct thread *thread, struct image *head,
				 struct linux_binprm *bprm, u32 level)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct arg_stream s = {
		.thread = thread,
		.head = head,
		.image = act->image,
		.skip = 1, /* argv[0] says what the caller likes */
		.keep = level == 0,
	};

	if (level && !head->arg_words)
		return;
	reset_args(thread);
	if (!level) {
		thread->exec.args_size = 0;
		thread->exec.args_cut = 0;
	} else {
		feed_string(&s, BPF_CORE_READ(bprm, filename));
	}
	caller_argv((struct pt_regs *)bpf_task_pt_regs(task), &s.vector, &s.compat);
	thread->exec.args_read = stream_args(&s);
}

/* judge_level decides on one program of an exec, and remembers how. */
static __noinline void judge_level(struct act *act, struct thread *thread,
				   struct linux_binprm *bprm, u32 level)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct image *head = image_head(act);
	struct file *file = BPF_CORE_READ(bprm, file);
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct scope_files *known = files_of(act);
	struct exec_level *saved;
	struct row *row, *named;
	u32 row_number = ROW_UNKNOWN, named_number, at;
	u64 slot = level;

	BOUND(slot, 7);
	if (!head || slot >= MAX_EXEC_LEVELS)
		return;
	saved = &thread->exec.level[slot];
	named_number = name_row(act, head, BPF_CORE_READ(bprm, interp));
	read_args(act, thread, head, bprm, level);
	at = render(act->scratch, BPF_CORE_READ(file, f_path.mnt),
		    BPF_CORE_READ(file, f_path.dentry));
	if (at != NO_PATH)
		row_number = row_of_state(act->image, walk_path(act->image, head, act->scratch,
								at, START_PATH));
	act->object_kind = OBJECT_PATH;
	act->object = at;
	row = table_entry(rows, act->image, row_number);
	named = table_entry(rows, act->image, named_number);
	if (!row || !named)
		return;
	act->labels = act->process->labels | file_labels(act, inode) | row->sources |
		      row->exec_sources | named->exec_sources;
	act->targets = row->targets;
	saved->labels = act->labels;
	saved->row = row_number;
	saved->name_row = named_number;
	saved->argc = BPF_CORE_READ(bprm, argc);
	saved->trusted = !file_modified(act, inode) && !BPF_CORE_READ(task, ptrace);
	if (known && same_file(inode, &known->guest))
		return;
	decide(act, row_number, OP_EXEC, &thread->exec.reached,
	       thread->exec.args_read ? ARGS_ALL : ARGS_UNKNOWN);
	decide(act, named_number, OP_EXEC, &thread->exec.reached,
	       thread->exec.args_read ? ARGS_ALL : ARGS_UNKNOWN);
}

/* An exec by a thread that is not the leader makes it the leader, and the old one's
 * memory goes with it: keep the process's state where it will be looked for. */
static __always_inline void follow_leader(struct act *act)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct process *copy;

	if (BPF_CORE_READ(task, pid) == BPF_CORE_READ(task, tgid))
		return;
	copy = bpf_task_storage_get(&processes, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (copy)
		__builtin_memcpy(copy, act->process, sizeof(*copy));
	else
		refuse(act, OP_EXEC, REASON_NO_MEMORY);
}

static __always_inline bool on_bprm_check_security(struct linux_binprm *bprm)
{
	struct act act = {};
	enum membership membership = enter(&act);
	struct thread *thread;
	bool refused;
	u32 level;

	if (membership != INSIDE)
		return membership == REFUSED;
	thread = thread_state();
	if (!thread)
		return true;
	if (BPF_CORE_READ(bprm, interp) == BPF_CORE_READ(bprm, filename))
		thread->exec.levels = 0;
	if (in_setup(&act) && !leaves_setup(&act))
		return false;
	level = thread->exec.levels;
	act.scratch = acquire();
	if (!act.scratch)
		return true;
	thread->exec.image = act.image;
	thread->exec.levels = level + 1;
	judge_level(&act, thread, bprm, level);
	if (level >= MAX_EXEC_LEVELS)
		refuse(&act, OP_EXEC, REASON_EXEC_DEPTH);
	follow_leader(&act);
	refused = settle(&act, thread);
	release(act.scratch);
	return refused;
}
TWIN(bprm_check_security, (struct linux_binprm *bprm), (bprm))

/* second_look decides again on the clauses that look at argv, with what the kernel
 * took, and then lets the exec count. */
static __noinline void second_look(struct act *act, struct thread *thread,
				   struct linux_binprm *bprm, struct exec_level *level)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct image *head = image_head(act);
	struct row *row = table_entry(rows, act->image, level->row);
	struct row *named = table_entry(rows, act->image, level->name_row);
	struct arg_stream s = {
		.thread = thread,
		.head = head,
		.image = act->image,
		/* What an interpreter put in front of this level's argv. */
		.skip = BPF_CORE_READ(bprm, argc) - level->argc + 1,
		.next = BPF_CORE_READ(task, mm, arg_start),
		.end = BPF_CORE_READ(task, mm, arg_end),
	};

	if (!head || !row || !named || !(row->exec_args | named->exec_args))
		return;
	reset_args(thread);
	act->labels = level->labels;
	act->targets = row->targets;
	if (!stream_args(&s)) {
		refuse(act, OP_EXEC, REASON_ARGS_UNREADABLE);
		return;
	}
	decide(act, level->row, OP_EXEC, &thread->exec.reached, ARGS_ONLY);
	decide(act, level->name_row, OP_EXEC, &thread->exec.reached, ARGS_ONLY);
}

static __noinline void commit_level(struct act *act, struct thread *thread,
				    struct exec_level *level)
{
	struct row *row = table_entry(rows, act->image, level->row);
	struct row *named = table_entry(rows, act->image, level->name_row);

	if (!row || !named)
		return;
	gain(act, level->labels);
	if (level->trusted)
		__sync_fetch_and_or(&act->process->lineage, row->lineage);
	move_gates(act, row, OP_EXEC, &thread->exec.reached, level->trusted);
	move_gates(act, named, OP_EXEC, &thread->exec.reached, false);
}

struct exec_commit {
	struct act *act;
	struct thread *thread;
	struct linux_binprm *bprm;
	bool refused;
};

static __always_inline void look_at_level(struct act *act, struct thread *thread,
					  struct linux_binprm *bprm, u64 number)
{
	struct exec_level *level;
	bool known = thread->exec.args_read;

	BOUND(number, 7);
	if (number >= MAX_EXEC_LEVELS)
		return;
	level = &thread->exec.level[number];
	second_look(act, thread, bprm, level);
	/* What the first look has reported already. */
	if (known && !denied(act))
		act->effect = EFFECT_ALLOW;
	if (!denied(act))
		commit_level(act, thread, level);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(tp_sched_process_exec, struct task_struct *task, int old_pid,
	     struct linux_binprm *bprm)
{
	struct act act = {};
	struct thread *thread;
	struct file *file;

	if (enter(&act) != INSIDE)
		return 0;
	thread = thread_state();
	act.scratch = acquire();
	if (!thread || !act.scratch) {
		bpf_send_signal(SIGKILL);
		if (act.scratch)
			release(act.scratch);
		return 0;
	}
	if (in_setup(&act) && !leaves_setup(&act)) {
		release(act.scratch);
		return 0;
	}
	act.process->pending_count = 0;
	for (u32 i = 0; i < MAX_EXEC_LEVELS; i++) {
		if (i >= thread->exec.levels || denied(&act))
			break;
		look_at_level(&act, thread, bprm, i);
	}
	file = BPF_CORE_READ(bprm, file);
	act.object_kind = OBJECT_PATH;
	act.object = render(act.scratch, BPF_CORE_READ(file, f_path.mnt),
			    BPF_CORE_READ(file, f_path.dentry));
	if (settle(&act, thread))
		bpf_send_signal(SIGKILL);
	act.process->flags &= ~PROCESS_SETUP;
	thread->exec.levels = 0;
	release(act.scratch);
	return 0;
}
