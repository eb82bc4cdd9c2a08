/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "actor.h"

#define RENAME_EXCHANGE_ 2

static unsigned *at(char *rings, unsigned offset)
{
	return (unsigned *)(rings + offset);
}

/* done waits for the one operation of a ring. */
static int done(int ring, char *rings, const struct io_uring_params *p)
{
	const struct io_uring_cqe *completion = (void *)(rings + p->cq_off.cqes);
	unsigned submit = 1;

	while (!__atomic_load_n(at(rings, p->cq_off.tail), __ATOMIC_ACQUIRE)) {
		if (syscall(SYS_io_uring_enter, ring, submit, 1, IORING_ENTER_GETEVENTS, NULL, 0) <
			    0 &&
		    errno != EINTR)
			return -1;
		submit = 0;
	}
	if (completion->res < 0) {
		errno = -completion->res;
		return -1;
	}
	return completion->res;
}

/* ring_do is what the operation returns; -1 and errno where it fails. */
int ring_do(struct io_uring_sqe *entry)
{
	struct io_uring_params p = { 0 };
	int ring = syscall(SYS_io_uring_setup, 1, &p), value = -1, error;
	char *rings;
	struct io_uring_sqe *entries;

	if (ring < 0)
		return -1;
	if (choose(2))
		entry->flags |= IOSQE_ASYNC; /* by a worker */
	rings = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	entries = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	if (rings != MAP_FAILED && entries != MAP_FAILED) {
		*entries = *entry;
		*at(rings, p.sq_off.array) = 0;
		__atomic_store_n(at(rings, p.sq_off.tail), 1, __ATOMIC_RELEASE);
		value = done(ring, rings, &p);
	}
	error = errno;
	munmap(rings, PAGE);
	munmap(entries, PAGE);
	close(ring);
	errno = error;
	return value;
}

static uint64_t address(const void *p)
{
	return (uintptr_t)p;
}

int ring_open(const char *path, int flags)
{
	struct io_uring_sqe entry = { .opcode = IORING_OP_OPENAT,
				      .fd = AT_FDCWD,
				      .addr = address(path),
				      .open_flags = flags,
				      .len = 0755 };

	return ring_do(&entry);
}

int ring_io(int op, int fd, void *data, unsigned size, long long where)
{
	struct io_uring_sqe entry = {
		.opcode = op, .fd = fd, .addr = address(data), .len = size, .off = where
	};

	return ring_do(&entry);
}

int ring_connect(int fd, const struct sockaddr *to, socklen_t size)
{
	struct io_uring_sqe entry = {
		.opcode = IORING_OP_CONNECT, .fd = fd, .addr = address(to), .off = size
	};

	return ring_do(&entry);
}

/* ring_name does what change_name does; ENOSYS for what a ring has no operation for. */
int ring_name(const char *op, const char *a, const char *b)
{
	struct io_uring_sqe entry = { .fd = AT_FDCWD, .addr = address(a) };

	if (!strcmp(op, "unlink") || !strcmp(op, "rmdir")) {
		entry.opcode = IORING_OP_UNLINKAT;
		entry.unlink_flags = !strcmp(op, "rmdir") ? AT_REMOVEDIR : 0;
	} else if (!strcmp(op, "mkdir")) {
		entry.opcode = IORING_OP_MKDIRAT;
		entry.len = 0755;
	} else if (!strcmp(op, "symlink")) {
		entry.opcode = IORING_OP_SYMLINKAT;
		entry.addr2 = address(b);
	} else if (!strcmp(op, "link") || !strcmp(op, "rename") || !strcmp(op, "exchange")) {
		entry.opcode = !strcmp(op, "link") ? IORING_OP_LINKAT : IORING_OP_RENAMEAT;
		entry.len = AT_FDCWD;
		entry.addr2 = address(b);
		entry.rename_flags = !strcmp(op, "exchange") ? RENAME_EXCHANGE_ : 0;
	} else {
		errno = ENOSYS;
		return -1;
	}
	return ring_do(&entry);
}
