// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/*
 * What nothing but a lock refuses. A locked scope is refused by every hook where it enters
 * the scope; these are the others, and are attached only while some scope is locked.
 */

static __always_inline bool on_task_kill(void)
{
	return is_locked();
}
TWIN(task_kill, (struct task_struct * target), ())

static __always_inline bool on_file_lock(void)
{
	return is_locked();
}
TWIN(file_lock, (struct file * file), ())

static __always_inline bool on_socket_shutdown(void)
{
	return is_locked();
}
TWIN(socket_shutdown, (struct socket * sock), ())

/* All that needs a right: mounts, other users, namespaces, the host's devices. */
static __always_inline bool on_capable(void)
{
	return is_locked();
}
TWIN(capable, (const struct cred *cred), ())

/* Run by the daemon. The number comes last: who sees it sees the lock. */
SEC("syscall")
int lock_scope(struct lock_change *change)
{
	struct scope *scope = scope_at(change->scope);

	if (!scope || scope->generation != change->generation)
		return 1;
	if (change->locked)
		__sync_fetch_and_or(&scope->flags, SCOPE_LOCKED);
	else
		__sync_fetch_and_and(&scope->flags, ~SCOPE_LOCKED);
	__sync_fetch_and_add(&scope->growth, 1);
	return 0;
}

const struct lock_change *type_of_lock_change __attribute__((unused));
