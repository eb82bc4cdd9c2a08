// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/* Processes that begin, end, move, and reach into each other. */

#define SIGNAL_GROUP_EXIT 4
#define CLONE_VM 0x100
#define CLONE_THREAD 0x10000
#define CLONE_INTO_CGROUP 0x200000000UL

/* share_completions: no hook sees that the ring of completions of AIO is mapped, and it is
 * shared with children. False: there is no room to note it, deny. */
static __always_inline bool share_completions(struct act *act, struct process *parent)
{
	struct mm_struct *mm = bpf_get_current_task_btf()->mm;
	struct sharer *sharer;

	if (!bpf_core_field_exists(mm->ioctx_table) || !BPF_CORE_READ(mm, ioctx_table))
		return true;
	sharer = own_sharer(act);
	if (sharer)
		join(sharer, share_number(parent->id, 0, SHARE_GROUP), false);
	return sharer;
}

/*
 * A new process gets its parent's state before it can run, wherever it was cloned
 * into. Threads share their leader's.
 */
static __always_inline bool on_task_alloc(struct task_struct *task, unsigned long flags)
{
	struct act act = {};
	enum membership membership = enter(&act);
	struct process *process, *child;
	struct host *host = host_state();

	if (membership != INSIDE || flags & CLONE_THREAD)
		return membership == REFUSED;
	process = current_process();
	child = new_storage(&processes, task);
	if (!process || !child || !host) {
		count_starved(&act);
		return true;
	}
	child->id = __sync_fetch_and_add(&host->next_process, 1) + 1;
	child->labels = process->labels;
	child->lineage = process->lineage;
	child->cleared = process->cleared;
	child->opened.lineage = process->opened.lineage;
	child->opened.endorsed = process->opened.endorsed;
	child->opened.stripped = process->opened.stripped;
	child->scope = process->scope;
	child->flags = process->flags;
	if (process->ancestors[MAX_ANCESTORS - 1])
		child->flags |= PROCESS_DEEP;
	child->ancestors[0] = process->id;
	for (u32 i = 1; i < MAX_ANCESTORS; i++)
		child->ancestors[i] = process->ancestors[i - 1];
	child->growth = process->growth;
	child->generation = process->generation;
	if ((follows_labels(&act) && !share_completions(&act, process)) ||
	    !inherit(&act, process, child, follows_labels(&act) && flags & CLONE_VM)) {
		count_starved(&act);
		return true;
	}
	/* Where to, nobody knows yet. */
	if (flags & CLONE_INTO_CGROUP)
		__sync_fetch_and_add(&host->strays, 1);
	return false;
}
TWIN(task_alloc, (struct task_struct * task, unsigned long flags), (task, flags))

/* The memory has been copied now, and another thread of the parent may have gained
 * a label and filled it since task_alloc. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(tp_sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	struct process *from, *to;
	struct sharer *sharer;
	struct scope *scope;
	struct image *head;

	if (!marked() && !strays())
		return 0;
	from = process_of(parent);
	to = process_of(child);
	if (!from || !to || from == to)
		return 0;
	__sync_fetch_and_or(&to->labels, from->labels);
	sharer = sharer_of(to);
	if (sharer)
		__sync_fetch_and_or(&sharer->labels, from->labels);
	scope = scope_at(to->scope);
	head = scope ? image_at(scope->image) : NULL;
	if (head && head->integrity)
		__sync_fetch_and_and(&to->labels, from->labels | ~head->integrity);
	return 0;
}

static __always_inline void end_confined(struct process *process)
{
	u64 id = process->id;

	bpf_map_delete_elem(&confined_by_id, &id);
}

/* Gates that wait for an exit status: only a normal end counts, of the program that
 * matched, with the epoch of its exec. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(tp_sched_process_exit, struct task_struct *task)
{
	u64 opened = 0, late = 0, missed = 0;
	struct process *process;
	struct scope *scope;
	struct act act = {};
	u32 code;

	if (enter(&act) != INSIDE)
		return 0;
	process = current_process();
	scope = scope_at(act.slot);
	if (!process || !scope)
		return 0;
	end_wait(process);
	if (BPF_CORE_READ(task, signal, live.counter))
		return 0;
	end_sharer(process);
	end_confined(process);
	if (!process->pending_count)
		return 0;
	code = BPF_CORE_READ(task, signal, group_exit_code);
	if (!(BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT))
		code = BPF_CORE_READ(task, exit_code);
	for (u32 i = 0; i < MAX_PENDING; i++) {
		struct pending *pending = &process->pending[i];

		if (i >= process->pending_count)
			break;
		if (code & 0x7f || (code >> 8 & 0xff) != pending->exit) {
			missed |= gate_bit(pending->gate);
			continue;
		}
		opened |= arm_gate(scope, pending->gate, pending->epoch);
		if (!gate_fresh(scope, pending->gate))
			late |= gate_bit(pending->gate);
	}
	process->pending_count = 0;
	note_gates(&act, opened, GATE_OPENED, code);
	note_gates(&act, late, GATE_LATE, code);
	note_gates(&act, missed, GATE_MISSED, code);
	return 0;
}

/* A tracepoint may be skipped; nothing that a process shared may outlive it for long. */
static __always_inline void task_goes(struct task_struct *task)
{
	struct process *process = bpf_task_storage_get(&processes, task, NULL, 0);

	/* Not the old leader of a process whose other thread has made itself the leader. */
	if (process && !BPF_CORE_READ(task, signal, live.counter))
		end_sharer(process);
}

SEC("lsm/task_free")
int BPF_PROG(lsm_task_free, struct task_struct *task)
{
	task_goes(task);
	return 0;
}

SEC("fentry/security_task_free")
int BPF_PROG(mod_task_free, struct task_struct *task)
{
	task_goes(task);
	return 0;
}

/* Membership does not end when a task is moved out of its scope's cgroup, but the
 * marker no longer finds it there: from now on every task is looked up. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(tp_cgroup_attach_task, struct cgroup *to, const char *path, struct task_struct *task)
{
	u32 slot = bpf_core_enum_value(enum cgroup_bpf_attach_type, CGROUP_SYSCTL);
	struct host *host = host_state();

	if (host && process_of(task) && !to->bpf.effective[slot]->items[0].prog)
		__sync_fetch_and_add(&host->strays, 1);
	return 0;
}

/* The marker of a scope's cgroup; see marked. */
SEC("cgroup/sysctl")
int mark_cgroup(struct bpf_sysctl *unused)
{
	return 1; /* let the access to /proc/sys go on */
}

/* bpf2go exports the types that a program's BTF holds. */
const enum limits *type_of_limits __attribute__((unused));
const struct answer_change *type_of_answer_change __attribute__((unused));
const struct origin *type_of_origin __attribute__((unused));

/* Run by the daemon, once: what the host's root directory is. */
SEC("syscall")
int note_host_root(void *unused)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct host *host = host_state();

	if (!host)
		return 1;
	host->root = (u64)BPF_CORE_READ(task, fs, root.dentry, d_inode);
	return 0;
}

const struct confinement *type_of_confinement __attribute__((unused));
const struct image_change *type_of_image_change __attribute__((unused));

/* Run by the daemon: another policy, whose tables are complete, is in force from now on. */
SEC("syscall")
int change_image(struct image_change *change)
{
	struct scope *scope = scope_at(change->scope);

	if (!scope || !scope->generation || scope->generation != change->generation)
		return 1;
	if (change->kept_all)
		__sync_fetch_and_or(&scope->flags, SCOPE_KEPT_ALL);
	scope->previous = scope->image + 1;
	*(volatile u32 *)&scope->image = change->image;
	return 0;
}

/* Run by the daemon, before it frees the tables of an image: nothing goes on under it. */
SEC("syscall")
int forget_image(struct image_change *change)
{
	struct scope *scope = scope_at(change->scope);

	if (!scope || scope->generation != change->generation)
		return 1;
	if (scope->previous == change->image + 1)
		scope->previous = 0;
	return 0;
}

/* Run by the daemon: a process gets labels before whatever it does next. */
SEC("syscall")
int confine_process(struct confinement *given)
{
	u64 id = given->process, labels = given->confined.labels;
	u32 slot = given->confined.scope;
	struct scope *scope = scope_at(slot);
	struct confined *known, fresh = given->confined;

	if (!scope || !scope->generation || scope->generation != given->confined.generation)
		return 1;
	bpf_map_update_elem(&confined_by_id, &id, &fresh, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&confined_by_id, &id);
	if (!known)
		return 2;
	__sync_fetch_and_or(&known->labels, labels);
	__sync_fetch_and_add(&scope->growth, 1);
	return 0;
}

/* Run by the daemon, when an operator takes back what a scope, whose slot is given,
 * knows of its past: no gate is open, nothing is assumed of files. */
SEC("syscall")
int forget_scope(u32 *slot)
{
	struct scope *scope = scope_at(*slot);

	if (!scope || !scope->generation)
		return 1;
	for (u64 gate = 0; gate < MAX_GATES; gate++)
		spoil_gate(scope, gate);
	__sync_fetch_and_and(&scope->flags, ~SCOPE_SATURATED);
	scope->assumed_labels = 0;
	scope->assumed_flags = 0;
	return 0;
}
