/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which the same can be done. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"

#define RENAME_EXCHANGE_ 2

extern char **environ;

unsigned way;
int no_rings;

/* choose takes one of so many ways. */
unsigned choose(unsigned ways)
{
	unsigned chosen = way % ways;

	way /= ways;
	return chosen;
}

/* An errno, or 0. */
int result(long value)
{
	return value < 0 ? errno : 0;
}

int open_by(const char *path, int flags)
{
	struct open_how how = { .flags = flags, .mode = flags & O_CREAT ? 0755 : 0 };

	switch (choose(3)) {
	case 1:
		return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	case 2:
		if (no_rings)
			break;
		return ring_open(path, flags);
	}
	return open(path, flags, 0755);
}

/* Nothing there to be read is no failure: labels have come anyway. */
static int got(long size)
{
	return size >= 0 || errno == EAGAIN || errno == EISDIR ? 0 : errno;
}

/* can tells whether a pipe has something, or room: a ring would wait for it. */
static int can(int fd, int events)
{
	struct pollfd polled = { .fd = fd, .events = events };

	return poll(&polled, 1, 0) == 1 && polled.revents & events;
}

/* by_pipe reads through a pipe of our own, with sendfile or splice. */
static int by_pipe(int fd, int splices)
{
	char buffer[PAGE];
	int own[2], error;
	long size;

	if (pipe2(own, O_NONBLOCK))
		return errno;
	size = splices ? splice(fd, NULL, own[1], NULL, PAGE, SPLICE_F_NONBLOCK)
		       : sendfile(own[1], fd, NULL, PAGE);
	error = got(size);
	if (!error)
		error = got(read(own[0], buffer, sizeof(buffer)));
	close(own[0]);
	close(own[1]);
	return error;
}

/* Not by a mapping: who has one gets what others write there as long as it runs. */
int read_from(int fd)
{
	char buffer[PAGE];
	struct iovec whole = { buffer, sizeof(buffer) };
	struct stat stat;

	if (fstat(fd, &stat))
		return errno;
	if (S_ISSOCK(stat.st_mode))
		return receive_by(fd);
	if (!S_ISREG(stat.st_mode) && !S_ISFIFO(stat.st_mode))
		return got(read(fd, buffer, sizeof(buffer)));
	switch (choose(S_ISFIFO(stat.st_mode) ? 4 : 6)) {
	case 1:
		return got(readv(fd, &whole, 1));
	case 2:
		return by_pipe(fd, 1);
	case 3:
		if (no_rings || (S_ISFIFO(stat.st_mode) && !can(fd, POLLIN)))
			break;
		return got(ring_io(IORING_OP_READ, fd, buffer, sizeof(buffer), -1));
	case 4:
		return got(pread(fd, buffer, sizeof(buffer), 0));
	case 5:
		return by_pipe(fd, 0);
	}
	return got(read(fd, buffer, sizeof(buffer)));
}

/* from_pipe writes what a pipe of our own has. */
static long from_pipe(int fd, int tees)
{
	int own[2], error;
	long size;

	if (pipe2(own, O_NONBLOCK) || write(own[1], "x", 1) < 0)
		return -1;
	size = tees ? tee(own[0], fd, 1, SPLICE_F_NONBLOCK)
		    : splice(own[0], NULL, fd, NULL, 1, SPLICE_F_NONBLOCK);
	error = errno;
	close(own[0]);
	close(own[1]);
	errno = error;
	return size;
}

/* from_file writes what a file of our own memory has. */
static long from_file(int fd)
{
	int own = memfd_create("own", 0), error;
	off_t start = 0;
	long size;

	if (own < 0 || write(own, "x", 1) < 0)
		return -1;
	size = sendfile(fd, own, &start, 1);
	error = errno;
	close(own);
	errno = error;
	return size;
}

/* lend has a child do it: who puts pages into a pipe can change them as long as it runs,
 * and so gives the pipe what it learns later. */
static long lend(int fd, const struct iovec *page)
{
	pid_t child = fork();

	if (!child)
		_exit(vmsplice(fd, page, 1, SPLICE_F_NONBLOCK) != 1);
	if (child < 0)
		return -1;
	waitpid(child, NULL, 0); /* until it is gone: it leaves no status */
	return 1;
}

static long write_pipe(int fd)
{
	struct iovec one = { "x", 1 };

	switch (choose(7)) {
	case 1:
		return writev(fd, &one, 1);
	case 2:
		return from_pipe(fd, 0);
	case 3:
		if (no_rings || !can(fd, POLLOUT))
			break;
		return ring_io(IORING_OP_WRITE, fd, "x", 1, -1);
	case 4:
		return from_file(fd);
	case 5:
		return from_pipe(fd, 1);
	case 6:
		if (!can(fd, POLLOUT))
			break;
		return lend(fd, &one);
	}
	return write(fd, "x", 1);
}

/* At the end, so that a program that is written to can still be run. */
static long write_file(int fd, int appends)
{
	struct iovec one = { "x", 1 };
	off_t end = lseek(fd, 0, SEEK_END);

	switch (choose(appends ? 2 : 6)) {
	case 1:
		return writev(fd, &one, 1);
	case 2:
		return from_pipe(fd, 0);
	case 3:
		if (no_rings)
			break;
		return ring_io(IORING_OP_WRITE, fd, "x", 1, end);
	case 4:
		return from_file(fd);
	case 5:
		return pwrite(fd, "x", 1, end);
	}
	return write(fd, "x", 1);
}

int write_to(int fd)
{
	struct stat stat;
	int flags = fcntl(fd, F_GETFL);
	long size;

	if (fstat(fd, &stat))
		return errno;
	if (S_ISSOCK(stat.st_mode))
		return send_by(fd);
	size = S_ISFIFO(stat.st_mode) ? write_pipe(fd) : write_file(fd, flags & O_APPEND);
	/* A full pipe: labels have gone there anyway. */
	return size < 0 && errno == EAGAIN && S_ISFIFO(stat.st_mode) ? 0 : result(size);
}

int connect_by(int fd, const struct sockaddr *to, socklen_t size)
{
	return result(choose(2) && !no_rings ? ring_connect(fd, to, size) : connect(fd, to, size));
}

int send_by(int fd)
{
	struct iovec one = { "x", 1 };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1 };

	switch (choose(7)) {
	case 1:
		return result(write(fd, "x", 1));
	case 2:
		return result(sendmsg(fd, &message, 0));
	case 3:
		if (no_rings)
			break;
		return result(ring_io(IORING_OP_SEND, fd, "x", 1, 0));
	case 4:
		return result(from_pipe(fd, 0));
	case 5:
		return result(from_file(fd));
	case 6:
		return result(writev(fd, &one, 1));
	}
	return result(send(fd, "x", 1, 0));
}

/* receive_by takes what is there. */
int receive_by(int fd)
{
	char buffer[PAGE];
	struct iovec whole = { buffer, sizeof(buffer) };
	struct msghdr message = { .msg_iov = &whole, .msg_iovlen = 1 };

	if (choose(2))
		return got(recvmsg(fd, &message, MSG_DONTWAIT));
	return got(recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT));
}

/* share_memory makes memory under a number, a descriptor's or a key, and attach_memory
 * maps it. */
int share_memory(int number)
{
	int fd;

	if (choose(2))
		return result(shmget(number, PAGE, IPC_CREAT | 0600));
	fd = memfd_create("shared", 0);
	if (fd < 0 || ftruncate(fd, PAGE) || dup2(fd, number) < 0)
		return errno;
	close(fd);
	return 0;
}

int attach_memory(int number)
{
	if (choose(2))
		return shmat(shmget(number, PAGE, 0600), NULL, 0) == (void *)-1 ? errno : 0;
	return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0) == MAP_FAILED ? errno
											     : 0;
}

int change_name(const char *op, const char *a, const char *b)
{
	if (!strcmp(op, "chmod") || !strcmp(op, "chown")) {
		if (choose(2))
			return result(utimensat(AT_FDCWD, a, NULL, 0));
		return result(*op == 'c' && op[2] == 'm' ? chmod(a, 0755) : chown(a, 0, 0));
	}
	if (choose(2) && !no_rings)
		return result(ring_name(op, a, b));
	if (!strcmp(op, "unlink"))
		return result(unlink(a));
	if (!strcmp(op, "rmdir"))
		return result(rmdir(a));
	if (!strcmp(op, "mkdir"))
		return result(mkdir(a, 0755));
	if (!strcmp(op, "rename"))
		return result(rename(a, b));
	if (!strcmp(op, "exchange"))
		return result(syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE_));
	if (!strcmp(op, "link"))
		return result(link(a, b));
	if (!strcmp(op, "symlink"))
		return result(symlink(a, b));
	return ENOSYS;
}

/* run is an exec; by a descriptor only under the name that the file has itself. */
int run(char **words)
{
	char real[PAGE];
	int fd;

	switch (choose(3)) {
	case 1:
		syscall(SYS_execveat, AT_FDCWD, words[0], words, environ, 0);
		return errno;
	case 2:
		if (!realpath(words[0], real) || strcmp(real, words[0]))
			break;
		fd = open(words[0], O_PATH | O_CLOEXEC);
		if (fd < 0)
			return errno;
		syscall(SYS_execveat, fd, "", words, environ, AT_EMPTY_PATH);
		return errno;
	}
	execve(words[0], words, environ);
	return errno;
}

pid_t fork_by(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	if (choose(2))
		return syscall(SYS_clone3, &args, sizeof(args));
	return fork();
}
