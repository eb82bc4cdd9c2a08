// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/*
 * Programs that start. A first look refuses with EPERM, a second one looks at the
 * argv that the kernel really took, which another thread may have changed in
 * between, and kills before the first instruction. Only then does the exec count.
 */

/* caller_argv finds argv in the registers of the running system call. */
static __always_inline void caller_argv(struct pt_regs *regs, u64 *vector, bool *compat)
{
	u64 environment;

	caller_strings(regs, vector, &environment, compat);
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
	if (b->scratch->path[at] == '/')
		return 1;
	b->at = at;
	b->length++;
	return 0;
}

/* name_row returns the row of the base name by which a program was invoked. The path
 * in the buffer is lost. */
__noinline u32 name_row(struct act *act, u64 invoked)
{
	struct base_name b = {};
	struct scratch *scratch;
	long size;
	u64 at, length;

	if (!act)
		return ROW_UNKNOWN;
	scratch = scratch_at(act->scratch);
	if (!scratch)
		return ROW_UNKNOWN;
	size = bpf_probe_read_kernel_str(scratch->path, PATH_SIZE, (void *)invoked);
	if (size <= 1 || size >= PATH_SIZE)
		return ROW_UNKNOWN;
	b.scratch = scratch;
	b.at = size - 1;
	bpf_loop(NAME_SIZE + 1, base_name_step, &b, 0);
	at = b.at;
	length = b.length;
	if (length >= NAME_SIZE)
		return ROW_UNKNOWN;
	BOUND(at, PATH_SIZE - 1);
	BOUND(length, NAME_SIZE - 1);
	__builtin_memset(scratch->name, 0, sizeof(scratch->name));
	bpf_probe_read_kernel(scratch->name, length, &scratch->path[at]);
	return name_key_row(act->image, act->scratch, length, START_NAME);
}

/* read_args is the first look at argv. At the level of an interpreter the script's
 * name is one of its arguments. */
__noinline int read_args(u32 image, u64 script, u32 level)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_state();
	struct arg_stream s = {
		.image = image,
		.skip = 1, /* argv[0] says what the caller likes */
		.keep = level == 0,
	};
	bool compat;

	if (!thread)
		return 0;
	reset_args(thread);
	if (level) {
		feed_string(image, (void *)script);
	} else {
		thread->exec.args_size = 0;
		thread->exec.args_cut = 0;
	}
	caller_argv((struct pt_regs *)bpf_task_pt_regs(task), &s.vector, &compat);
	s.compat = compat;
	thread->exec.args_read = stream_args(&s);
	return 0;
}

static __always_inline u32 args_mode(void)
{
	struct thread *thread = thread_state();

	return thread && thread->exec.args_read ? ARGS_KNOWN : ARGS_UNKNOWN;
}

/* match_level finds the rows of one program of an exec and remembers them. */
static __always_inline void match_level(struct act *act, struct linux_binprm *bprm,
					struct exec_level *level)
{
	struct file *file = BPF_CORE_READ(bprm, file);
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	level->name_row = name_row(act, (u64)BPF_CORE_READ(bprm, interp));
	act->object_kind = OBJECT_PATH;
	act->object = render(act->scratch, (u64)BPF_CORE_READ(file, f_path.mnt),
			     (u64)BPF_CORE_READ(file, f_path.dentry));
	level->row = path_row(act->image, act->scratch, act->object, START_PATH | OF_PROGRAM);
	act->labels |= file_labels(act, inode) | row_sources(act->image, level->row) |
		       row_exec_sources(act->image, level->row) |
		       row_exec_sources(act->image, level->name_row);
	act->targets = row_targets(act->image, level->row);
	act->inode = number_of(inode);
	level->labels = act->labels;
	level->inode = act->inode;
	level->argc = BPF_CORE_READ(bprm, argc);
	note_program(act, level, inode);
	level->foreign = foreign_file(act, file);
}

#define ELF_MAGIC 0x464c457f

/* begin_level notes what the kernel can open for a program of an exec. */
__noinline int begin_level(u64 program, u32 first)
{
	struct linux_binprm *bprm = (void *)program;
	struct thread *thread = thread_state();
	u32 magic = 0;

	if (!thread)
		return 0;
	thread->exec.unsafe = BPF_CORE_READ(bprm, unsafe);
	bpf_core_read(&magic, sizeof(magic), &bprm->buf);
	thread->exec.elf = magic == ELF_MAGIC;
	if (first)
		thread->exec.by_link = 0;
	thread->exec.loader.labels = 0;
	thread->exec.loader.row = ROW_NONE;
	thread->exec.loader.foreign = 0;
	return 0;
}

/* judge_level decides on one program of an exec. */
static __always_inline void judge_level(struct act *act, struct thread *thread,
					struct linux_binprm *bprm, u64 number)
{
	struct scope_files *known = files_of(act);
	struct exec_level level = {};

	if (number >= MAX_EXEC_LEVELS) {
		refuse(act, OP_EXEC, REASON_EXEC_DEPTH);
		return;
	}
	act->stage = STAGE_EXEC;
	act->level = number;
	read_args(act->image, (u64)BPF_CORE_READ(bprm, filename), number);
	match_level(act, bprm, &level);
	level.exempt = known && same_file(BPF_CORE_READ(bprm, file, f_inode), &known->guest);
	BOUND(number, 7);
	if (number < MAX_EXEC_LEVELS)
		thread->exec.level[number] = level;
	if (level.exempt)
		return;
	decide(act, level.row, OP_EXEC, args_mode());
	decide(act, level.name_row, OP_EXEC, args_mode() | BY_NAME);
}

/* An exec by a thread that is not the leader makes it the leader, and the old one's
 * memory goes with it: keep the process's state where it will be looked for. */
static __always_inline void follow_leader(struct act *act)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct process *process, *copy;

	if (BPF_CORE_READ(task, pid) == BPF_CORE_READ(task, tgid))
		return;
	process = current_process();
	copy = new_storage(&processes, task);
	if (copy && process)
		__builtin_memcpy(copy, process, sizeof(*copy));
	else
		refuse(act, OP_EXEC, REASON_NO_MEMORY);
}

static __always_inline bool asks_of_execs(struct act *act)
{
	struct image *head = image_at(act->image);

	return head && head->asks & BIT(OP_EXEC);
}

/* begin_exec forgets what an exec that failed has left. */
static __always_inline void begin_exec(struct act *act, struct thread *thread)
{
	if (thread->ask.count)
		give_back(act);
	thread->ask.strings_known = 0;
	thread->ask.from = 0;
	if (asks_of_execs(act))
		sum_strings();
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
	thread = new_thread_state();
	if (!thread) {
		count_starved(&act);
		return true;
	}
	if (BPF_CORE_READ(bprm, interp) == BPF_CORE_READ(bprm, filename))
		thread->exec.levels = 0;
	if (in_setup(&act) && !leaves_setup(&act))
		return false;
	if (!acquire(&act))
		return true;
	level = thread->exec.levels;
	thread->exec.levels = level + 1;
	thread->exec.image = act.image;
	begin_level(number_of(bprm), !level);
	if (!level)
		begin_exec(&act, thread);
	judge_level(&act, thread, bprm, level);
	follow_leader(&act);
	refused = settle(&act);
	release(&act);
	return refused;
}
TWIN_BODY(lsm_bprm_check_security, "lsm/bprm_check_security", (struct linux_binprm * bprm),
	  on_bprm_check_security(bprm))
TWIN_BODY(mod_bprm_check_security, "fmod_ret/security_bprm_check", (struct linux_binprm * bprm),
	  on_bprm_check_security(bprm))

/* exec_looks_at_args tells whether the second look has anything to look at. */
static __always_inline bool exec_looks_at_args(u32 image, struct exec_level *level)
{
	return row_exec_args(image, level->row) || row_exec_args(image, level->name_row);
}

/* reread_args reads the COUNT strings that the kernel took for argv, which begin at
 * FROM in the new memory, without the SKIP that interpreters put in front. */
__noinline int reread_args(u32 image, u64 from, u32 count, u32 skip)
{
	struct thread *thread = thread_state();
	struct arg_stream s = { .image = image, .skip = skip, .next = from, .count = count };

	if (!thread)
		return 0;
	reset_args(thread);
	return stream_args(&s);
}

/* second_look decides again on the clauses that look at argv. What the first look
 * has reported is not reported again. */
__noinline int second_look(struct act *act, u64 from, u32 argc, u64 number)
{
	struct thread *thread = thread_state();
	struct exec_level level;

	if (!act || !thread || number >= MAX_EXEC_LEVELS)
		return 0;
	level = thread->exec.level[number];
	if (!exec_looks_at_args(act->image, &level))
		return 0;
	act->labels = level.labels;
	act->inode = level.inode;
	act->level = number;
	act->object_kind = OBJECT_PATH;
	act->targets = row_targets(act->image, level.row);
	if (!reread_args(act->image, from, argc, argc - level.argc + 1)) {
		refuse(act, OP_EXEC, REASON_ARGS_UNREADABLE);
		return 0;
	}
	if (level.exempt)
		return 0;
	decide(act, level.row, OP_EXEC, ARGS_ONLY);
	decide(act, level.name_row, OP_EXEC, ARGS_ONLY | BY_NAME);
	if (thread->exec.args_read && !denied(act))
		act->effect = EFFECT_ALLOW;
	return 0;
}

/* foreign_from tells why a program of the exec opens nothing: what interprets and loads it
 * must be what it was as well. */
static __always_inline u32 foreign_from(struct thread *thread, u64 number)
{
	u32 foreign = thread->exec.loader.foreign;

	if (thread->exec.by_link)
		foreign = REASON_FOREIGN_FILE;
	for (u32 i = 0; i < MAX_EXEC_LEVELS; i++)
		if (i >= number && i < thread->exec.levels && thread->exec.level[i].foreign)
			foreign = thread->exec.level[i].foreign;
	return foreign;
}

/* commit_level does what one program of the exec does to gates, lineage and labels. ENV
 * is what foreign_env says. It returns the reason for which it opened nothing, though it
 * would. */
__noinline u32 commit_level(struct act *act, u64 number, u32 env)
{
	struct process *process = current_process();
	struct thread *thread = thread_state();
	struct exec_level level;
	u64 staled;
	u32 foreign;

	if (!act || !thread || !process || number >= MAX_EXEC_LEVELS)
		return 0;
	level = thread->exec.level[number];
	foreign = foreign_from(thread, number) ?: env;
	if (!foreign)
		transform(process, act->image, level.row);
	act->targets = 0;
	act->object_kind = OBJECT_NONE; /* who does it is known by the program's name */
	/* An event never spoils what it arms. */
	staled = move_gates(act, level.name_row, OP_EXEC, 0);
	staled |= move_gates(act, level.row, OP_EXEC, !foreign);
	if (staled | act->targets)
		note_moves(act, staled, 0, 0);
	return row_opens(act->image, level.row) ? foreign : 0;
}

/* opens_something tells whether a program of the exec would open something. */
static __always_inline bool opens_something(struct act *act, struct thread *thread)
{
	for (u32 i = 0; i < MAX_EXEC_LEVELS; i++) {
		if (i >= thread->exec.levels)
			break;
		if (row_opens(act->image, thread->exec.level[i].row))
			return true;
	}
	return false;
}

/* report_foreign tells that a program ran and opened nothing: who waits for what it
 * would have opened has to know why. */
static __always_inline void report_foreign(struct act *act, u32 reason)
{
	act->effect = EFFECT_NOTIFY;
	act->op = OP_EXEC;
	act->reason = reason;
	settle(act);
}

/* name_object makes a path that the kernel has as text the act's object, unless it is a
 * long one. */
__noinline int name_object(struct act *act, u64 name)
{
	struct scratch *scratch;
	u64 at, length;
	long size;

	if (!act)
		return 0;
	scratch = scratch_at(act->scratch);
	if (!scratch)
		return 0;
	size = bpf_probe_read_kernel_str(scratch->name, NAME_SIZE, (void *)name);
	if (size <= 1 || size >= NAME_SIZE)
		return 0;
	length = size - 1;
	BOUND(length, NAME_SIZE - 1);
	at = PATH_SIZE - 1 - length;
	act->object = at;
	BOUND(at, PATH_SIZE - 1);
	bpf_probe_read_kernel(&scratch->path[at], length, scratch->name);
	return 0;
}

/* exec_sources are the labels that the programs of an exec have by their names. */
static __always_inline u64 exec_sources(struct act *act, struct thread *thread)
{
	u64 sources = 0;

	for (u32 i = 0; i < MAX_EXEC_LEVELS; i++) {
		struct exec_level *level = &thread->exec.level[i];

		if (i >= thread->exec.levels)
			break;
		sources |= row_sources(act->image, level->row) |
			   row_exec_sources(act->image, level->row) |
			   row_exec_sources(act->image, level->name_row);
	}
	return sources;
}

/* note_exec tells that labels came with an exec. Of a script and its interpreter the
 * script is named, as in FILENAME. */
__noinline int note_exec(struct act *act, u64 labels, u64 mount, u64 dentry, u64 filename)
{
	struct thread *thread = thread_state();
	u64 sources;

	if (!act || !thread)
		return 0;
	act->object_kind = OBJECT_PATH;
	act->object = render(act->scratch, mount, dentry);
	if (thread->exec.levels > 1)
		name_object(act, filename);
	sources = exec_sources(act, thread);
	note_gain(act, labels & sources, WAY_SOURCE_EXEC, 0, 0);
	note_gain(act, labels & ~sources, WAY_PROGRAM, 0, 0);
	return 0;
}

/* commit_labels comes before all levels' transforms: what one program brings in must
 * not come back after another has cleared it. */
static __always_inline void commit_labels(struct act *act, struct thread *thread,
					  struct process *process, struct linux_binprm *bprm)
{
	struct file *file = BPF_CORE_READ(bprm, file);
	u64 gained = 0;

	process->pending_count = 0;
	process->cleared = 0;
	__builtin_memset(&process->opened, 0, sizeof(process->opened));
	for (u32 i = 0; i < MAX_EXEC_LEVELS; i++)
		if (i < thread->exec.levels)
			gained |= gain(act, thread->exec.level[i].labels);
	gained |= gain(act, thread->exec.loader.labels);
	if (gained)
		note_exec(act, gained, (u64)BPF_CORE_READ(file, f_path.mnt),
			  (u64)BPF_CORE_READ(file, f_path.dentry),
			  (u64)BPF_CORE_READ(bprm, filename));
}

struct fd_walk {
	struct act *act;
	struct file **files;
};

static long fd_step(u64 step, struct fd_walk *walk)
{
	struct file **slot = walk->files + step, *file = NULL;
	struct act *act = walk->act;
	struct vfsmount *mount;
	struct inode *inode;
	u32 at;

	bpf_probe_read_kernel(&file, sizeof(file), slot);
	if (!file || !act)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	mount = BPF_CORE_READ(file, f_path.mnt);
	if (inode_type(inode) != S_IFREG || is_internal(mount))
		return 0;
	at = render(act->scratch, (u64)mount, (u64)BPF_CORE_READ(file, f_path.dentry));
	mark_file(act, (u64)inode,
		  row_sources(act->image, path_row(act->image, act->scratch, at, START_PATH)), 0);
	return 0;
}

#define MAX_INHERITED 1024 /* descriptors that are looked at */

/* inherit_files gives the files that a process brings into the scope the labels that
 * their paths have: it will read them without opening them. */
__noinline int inherit_files(struct act *act)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	u32 count = BPF_CORE_READ(table, max_fds);
	struct fd_walk walk = { .act = act, .files = BPF_CORE_READ(table, fd) };

	bpf_loop(count < MAX_INHERITED ? count : MAX_INHERITED, fd_step, &walk, 0);
	return 0;
}

/* moved_on tells whether another thread, which is gone now, has changed the directory since
 * what the exec runs there was decided on. */
static __always_inline bool moved_on(struct thread *thread)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file_id now = lasting_id(BPF_CORE_READ(task, fs, pwd.dentry, d_inode));
	struct file_id *then = &thread->ask.directory;

	return now.ino != then->ino || now.dev != then->dev || now.generation != then->generation;
}

/* What was granted was for the argv and the environment that were read before. */
__noinline int check_strings(struct act *act)
{
	struct thread *thread = thread_state();
	struct strings_sum granted;

	if (!act || !thread)
		return 0;
	granted = thread->ask.strings;
	if (sum_strings() && !thread->ask.count)
		return 0;
	act->lifted = 1;
	if (!thread->ask.strings_known || moved_on(thread) ||
	    granted.rest[0] != thread->ask.strings.rest[0] ||
	    granted.rest[1] != thread->ask.strings.rest[1] ||
	    granted.first[0] != thread->ask.strings.first[0] ||
	    granted.first[1] != thread->ask.strings.first[1])
		refuse(act, OP_EXEC, REASON_ARGS_CHANGED);
	return 0;
}

/* last_stage: from now on argv and the environment are what the kernel took. */
static __always_inline void last_stage(struct act *act, struct thread *thread,
				       struct linux_binprm *bprm, u64 argv)
{
	act->stage = STAGE_LAST;
	thread->ask.from = argv;
	thread->ask.args = BPF_CORE_READ(bprm, argc);
	thread->ask.env = BPF_CORE_READ(bprm, envc);
	thread->ask.skip = thread->ask.args - thread->exec.level[0].argc + 1;
	thread->ask.strings_known = 0;
	if (asks_of_execs(act))
		check_strings(act);
}

/* same_policy goes on under the policy that the exec was decided on under: its rows are of
 * that. False: it is not there any more. */
static __always_inline bool same_policy(struct act *act, struct thread *thread)
{
	struct scope *scope = scope_at(act->slot);
	u32 image = thread->exec.image;

	if (!thread->exec.levels || image == act->image)
		return true;
	if (!scope || scope->previous != image + 1)
		return false;
	act->image = image;
	return true;
}

static __always_inline void complete(struct act *act, struct thread *thread,
				     struct linux_binprm *bprm, u64 argv)
{
	struct process *process = current_process();
	struct file *file = BPF_CORE_READ(bprm, file);
	u32 argc = BPF_CORE_READ(bprm, argc), env = 0, foreign = 0;
	u32 levels = thread->exec.levels;

	if (!same_policy(act, thread))
		refuse(act, OP_EXEC, REASON_POLICY_CHANGED);
	if (opens_something(act, thread))
		env = foreign_env(argv, argc, BPF_CORE_READ(bprm, envc));
	if (process) {
		exec_sharer(act, process);
		commit_labels(act, thread, process, bprm);
	}
	if (in_setup(act))
		inherit_files(act);
	last_stage(act, thread, bprm, argv);
	for (u32 i = 0; i < MAX_EXEC_LEVELS; i++) {
		if (i >= thread->exec.levels || denied(act))
			break;
		second_look(act, argv, argc, i);
		if (!denied(act))
			foreign = commit_level(act, i, env) ?: foreign;
	}
	if (!denied(act))
		move_gates(act, thread->exec.loader.row, OP_EXEC, 0);
	thread->exec.levels = 0;
	act->object_kind = OBJECT_PATH;
	act->object = render(act->scratch, (u64)BPF_CORE_READ(file, f_path.mnt),
			     (u64)BPF_CORE_READ(file, f_path.dentry));
	if (levels > 1) /* that is the interpreter; who reads the record knows the script */
		name_object(act, (u64)BPF_CORE_READ(bprm, filename));
	if (process && process->opened.endorsed)
		note_gain(act, process->opened.endorsed, WAY_ENDORSED, 0, 0);
	if (settle(act))
		bpf_send_signal(SIGKILL);
	else if (foreign)
		report_foreign(act, foreign);
	if (process)
		process->flags &= ~PROCESS_SETUP;
}

static __always_inline void exec_happened(struct linux_binprm *bprm, u64 argv)
{
	struct act act = {};
	enum membership membership = enter(&act);
	struct thread *thread;

	if (membership == OUTSIDE)
		return;
	thread = thread_state();
	if (membership == REFUSED || !thread || !acquire(&act)) {
		count_starved(&act);
		bpf_send_signal(SIGKILL);
		return;
	}
	if (!in_setup(&act) || leaves_setup(&act))
		complete(&act, thread, bprm, argv);
	release(&act);
}

/* The new memory is in place, with argv at bprm->p, and nothing has run in it. Not a
 * tracepoint where it can be helped: those may skip a program that another task is in
 * the middle of, on kernels that preempt. */
SEC("lsm/bprm_committed_creds")
int BPF_PROG(lsm_bprm_committed_creds, struct linux_binprm *bprm)
{
	exec_happened(bprm, BPF_CORE_READ(bprm, p));
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(tp_sched_process_exec, struct task_struct *task, int old_pid,
	     struct linux_binprm *bprm)
{
	exec_happened(bprm, BPF_CORE_READ(task, mm, arg_start));
	return 0;
}
