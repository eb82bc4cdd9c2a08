/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of a decision: it is recorded, a request is opened for what asks, the
 * process is stopped or killed, and grants are used up or given back.
 *
 * Nothing waits in the kernel for an answer. A process that is held has a SIGSTOP
 * pending when the hook returns -ERESTARTNOINTR: it stops on its way out of the
 * system call, and whoever sends it SIGCONT, the call is made again and decided
 * afresh. Without a signal pending that number would reach the program.
 */
#ifndef ACTPLANE_SETTLE_H
#define ACTPLANE_SETTLE_H

#include "emit.bpf.h"

#define SIGSTOP 19

/* Threads that do not return to user space, where a signal would be acted on. */
#define PF_IO_WORKER 0x10
#define PF_USER_WORKER 0x4000
#define PF_KTHREAD 0x200000

/*
 * restartable tells whether a system call can be made again as if it never had been, or
 * returns how much of its work it has done. Not those that are done by others, such as
 * io_uring and AIO; and not what no system call of the program's means, such as writing
 * a core.
 */
static __always_inline bool restartable(u64 number)
{
	switch (number) {
	case 0:	 /* read */
	case 1:	 /* write */
	case 2:	 /* open */
	case 9:	 /* mmap */
	case 17: /* pread64 */
	case 18: /* pwrite64 */
	case 19: /* readv */
	case 20: /* writev */
	case 40: /* sendfile */
	case 42: /* connect */
	case 44: /* sendto */
	case 45: /* recvfrom */
	case 46: /* sendmsg */
	case 47: /* recvmsg */
	case 49: /* bind */
	case 50: /* listen */
	case X86_EXECVE:
	case 72:  /* fcntl */
	case 76:  /* truncate */
	case 77:  /* ftruncate */
	case 82:  /* rename */
	case 83:  /* mkdir */
	case 84:  /* rmdir */
	case 85:  /* creat */
	case 86:  /* link */
	case 87:  /* unlink */
	case 88:  /* symlink */
	case 90:  /* chmod */
	case 91:  /* fchmod */
	case 92:  /* chown */
	case 93:  /* fchown */
	case 94:  /* lchown */
	case 132: /* utime */
	case 133: /* mknod */
	case 188: /* setxattr */
	case 189: /* lsetxattr */
	case 190: /* fsetxattr */
	case 197: /* removexattr */
	case 198: /* lremovexattr */
	case 199: /* fremovexattr */
	case 235: /* utimes */
	case 257: /* openat */
	case 258: /* mkdirat */
	case 259: /* mknodat */
	case 260: /* fchownat */
	case 261: /* futimesat */
	case 263: /* unlinkat */
	case 264: /* renameat */
	case 265: /* linkat */
	case 266: /* symlinkat */
	case 268: /* fchmodat */
	case 280: /* utimensat */
	case 285: /* fallocate */
	case 295: /* preadv */
	case 296: /* pwritev */
	case 307: /* sendmmsg */
	case 316: /* renameat2 */
	case X86_EXECVEAT:
	case 326: /* copy_file_range */
	case 327: /* preadv2 */
	case 328: /* pwritev2 */
	case 437: /* openat2 */
	case 452: /* fchmodat2 */
		return true;
	}
	return false;
}

static __always_inline bool is_worker(struct task_struct *task)
{
	return task->flags & (PF_IO_WORKER | PF_USER_WORKER | PF_KTHREAD);
}

static __always_inline bool can_hold(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	/* Calls of 32 bits have other numbers. */
	return !is_worker(task) && !is_compat(task) && restartable(BPF_CORE_READ(regs, orig_ax));
}

/* new_request opens a request. False: there is no room. */
static __always_inline bool new_request(struct request_key *key, u64 now, u64 hold)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct request request = {
		.since = now,
		.until = hold ? now + hold * 1000000 : 0,
		.started = BPF_CORE_READ(task, group_leader, start_boottime),
		.tgid = BPF_CORE_READ(task, tgid),
	};
	u32 slot = key->ask.scope;
	u32 *count = bpf_map_lookup_elem(&requests_count, &slot);

	if (!count)
		return false;
	if (__sync_fetch_and_add(count, 1) < MAX_SCOPE_REQUESTS &&
	    !bpf_map_update_elem(&requests, key, &request, BPF_NOEXIST))
		return true;
	__sync_fetch_and_add(count, -1);
	return bpf_map_lookup_elem(&requests, key); /* another thread's */
}

/*
 * open_request tells what is to become of an ask that has no answer: enum asked. An
 * operation that is tried again makes no second request, and a process that goes on
 * before it has an answer is held again, until its time is up.
 */
__noinline int open_request(struct act *act)
{
	struct thread *thread = thread_state();
	u64 now = bpf_ktime_get_boot_ns();
	struct request *open;
	struct request_key key;
	u64 hold;

	if (!act || !thread)
		return ASKED_FULL;
	/* What can only be killed now may be tried again. */
	hold = act->stage == STAGE_LAST ? 0 : thread->ask.hold;
	if (hold && !can_hold())
		return ASKED_NO_HOLD;
	key = request_key(act, thread->ask.deciding, hold);
	if (hold && !key.process)
		return ASKED_NO_HOLD;
	open = bpf_map_lookup_elem(&requests, &key);
	if (!open) {
		if (!new_request(&key, now, hold))
			return ASKED_FULL;
		return hold ? ASKED_HELD : ASKED_OPENED;
	}
	if (!hold)
		return ASKED_AGAIN;
	if (now < open->until)
		return ASKED_HELD_AGAIN;
	forget_request(&key);
	return ASKED_TIMED_OUT;
}

static __always_inline bool is_held(struct act *act)
{
	return act->asked == ASKED_HELD || act->asked == ASKED_HELD_AGAIN;
}

/* stop_process holds the current one; TOLD: there is a record of it, without which
 * nobody would ever answer. */
__noinline int stop_process(struct act *act, u32 told)
{
	struct thread *thread = thread_state();
	struct request_key key;

	if (!act || !thread)
		return 0;
	if (told && !bpf_send_signal(SIGSTOP)) {
		thread->ask.restart = 1;
		return 0;
	}
	key = request_key(act, thread->ask.deciding, true);
	forget_request(&key);
	return 0;
}

/* report records the verdict, and counts it. */
static __always_inline void report(struct act *act)
{
	struct scope *scope = scope_at(act->slot);
	u32 told = 1;

	if (act->asked != ASKED_HELD_AGAIN)
		told = emit(act, RECORD_VERDICT);
	if (is_held(act))
		stop_process(act, told);
	if (!scope || act->asked == ASKED_HELD_AGAIN)
		return;
	if (denied(act) && act->asked != ASKED_HELD)
		__sync_fetch_and_add(&scope->denied, 1);
	else
		__sync_fetch_and_add(&scope->notified, 1);
}

/* use_grant records one use of a grant, by an operation that goes on. */
static __always_inline void use_grant(struct act *act, struct thread *thread, u64 at)
{
	struct process *process = current_process();
	struct granted_use use = {};
	struct answer *answer;
	struct lifted *lifted;
	struct ask_key by = { .scope = act->slot, .generation = act->generation };

	BOUND(at, MAX_LIFTED - 1);
	lifted = &thread->ask.lifted[at];
	answer = answer_to(act, lifted->sum);
	if (answer)
		__sync_fetch_and_add(&answer->used, 1);
	if (process && lifted->op != OP_EXEC) {
		use.sum[0] = lifted->use[0];
		use.sum[1] = lifted->use[1];
		use.process = process->id;
		by.sum[0] = lifted->sum[0];
		by.sum[1] = lifted->sum[1];
		bpf_map_update_elem(&granted_uses, &use, &by, BPF_ANY);
	}
	thread->ask.deciding[0] = lifted->sum[0];
	thread->ask.deciding[1] = lifted->sum[1];
	act->clause = lifted->clause;
	act->reason = lifted->reason;
	act->op = lifted->op;
	act->effect = EFFECT_NOTIFY;
	act->asked = ASKED_GRANTED;
	report(act);
}

/* use_grants uses up what was taken. */
__noinline int use_grants(struct act *act)
{
	struct thread *thread = thread_state();
	u32 count;

	if (!act || !thread)
		return 0;
	count = thread->ask.count;
	thread->ask.count = 0;
	for (u64 i = 0; i < MAX_LIFTED; i++)
		if (i < count)
			use_grant(act, thread, i);
	return 0;
}

/* announce tells what was decided, opens a request for what asks, and kills. */
static __always_inline void announce(struct act *act)
{
	if (act->effect == EFFECT_ASK && act->asked == ASKED_OPENED)
		act->asked = open_request(act);
	if (act->effect >= EFFECT_NOTIFY)
		report(act);
	if (act->effect == EFFECT_KILL)
		bpf_send_signal(SIGKILL);
}

/* settle ends an operation, and returns whether it is refused. */
static __always_inline bool settle(struct act *act)
{
	bool refused = denied(act);

	announce(act);
	if (!act->lifted)
		return refused;
	if (refused)
		give_back(act);
	else if (act->stage != STAGE_EXEC) /* else it is not known yet whether it happens */
		use_grants(act);
	return refused;
}

/* restarts tells whether the process was stopped, for its system call to be made
 * again. */
static __always_inline bool restarts(void)
{
	struct thread *thread = thread_state();

	if (!thread || !thread->ask.restart)
		return false;
	thread->ask.restart = 0;
	return true;
}

#define RESTARTS() restarts()

/* Run by the daemon: an answer, so that what is taken from a grant meanwhile is taken.
 * What makes it hold comes last. */
SEC("syscall")
int change_answer(struct answer_change *change)
{
	struct ask_key key = change->key;
	struct answer *known = bpf_map_lookup_elem(&answers, &key);
	struct answer fresh = { .until = change->until,
				.count = change->count,
				.denied = change->denied,
				.timed = change->timed };

	if (!known)
		return bpf_map_update_elem(&answers, &key, &fresh, BPF_NOEXIST) != 0;
	if (change->denied) {
		known->denied = 1;
		known->count = 0;
		known->until = change->until;
		known->timed = 1;
		return 0;
	}
	if (known->denied) {
		known->count = change->count;
		known->until = change->until;
		known->timed = change->timed;
		known->denied = 0;
		return 0;
	}
	if (change->timed) {
		known->until = change->until;
		known->timed = 1;
	} else if (!known->timed || (known->until && bpf_ktime_get_boot_ns() >= known->until)) {
		/* The last word on when the count ends. */
		known->timed = 0;
		known->until = change->until;
	}
	__sync_fetch_and_add(&known->count, change->count);
	return 0;
}

static long end_use(void *map, struct granted_use *use, struct ask_key *by, struct ask_key *ended)
{
	struct granted_use key = *use;

	if (by->sum[0] == ended->sum[0] && by->sum[1] == ended->sum[1] &&
	    by->scope == ended->scope && by->generation == ended->generation)
		bpf_map_delete_elem(&granted_uses, &key);
	return 0;
}

/* Run by the daemon: what an answer has opened is not used any more without another. */
SEC("syscall")
int end_uses(struct ask_key *key)
{
	struct ask_key ended = *key;
	struct host *host = host_state();

	if (host) /* what was remembered of descriptors */
		__sync_fetch_and_add(&host->changes, 1);
	bpf_for_each_map_elem(&granted_uses, end_use, &ended, 0);
	return 0;
}

/* Run by the daemon: a request is closed. */
SEC("syscall")
int close_request(struct request_key *request)
{
	struct request_key key = *request;

	return !forget_request(&key);
}

#endif
