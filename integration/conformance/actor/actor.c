/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actor: every program of a container in which cases are acted out. It takes one
 * command a message from its driver, which is outside of the scope, makes one
 * system call or a few of it, and answers with errno. In C, since it has to fork.
 *
 * A message is words that end in NUL. Descriptors have the numbers that the driver
 * chose: the channel is always 3. A fork moves over to the channel of its own, which
 * it has inherited like all others; an exec keeps it, and the new program says
 * "ready" on it. So the driver never has to hand anything in.
 *
 * Linked without position independence, so that an address in one actor is the
 * same in all.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHANNEL 3
#define MAX_MESSAGE 65536
#define MAX_WORDS 512
#define PAGE 4096
#define RENAME_EXCHANGE_ 2
#define WAIT_MS 5000

extern char **environ;

/* What others read and write in ptrace's and process_vm's ways. */
static char others[PAGE];

struct words {
	int count;
	char *word[MAX_WORDS + 1];
};

static int number(struct words *w, int i)
{
	return atoi(w->word[i]);
}

/* An errno, or 0. */
static int result(long value)
{
	return value < 0 ? errno : 0;
}

/* keep gives a descriptor its number; a negative one is to be closed. */
static int keep(int fd, int as)
{
	int error = 0;

	if (fd < 0)
		return errno;
	if (as >= 0 && fd != as)
		error = result(dup2(fd, as));
	if (fd != as)
		close(fd);
	return error;
}

static int do_open(struct words *w)
{
	return keep(open(w->word[1], number(w, 2), 0755), number(w, 3));
}

/* An empty pipe is read as well as one that is not, and a directory by opening it. */
static int read_from(int fd)
{
	char buffer[PAGE];

	if (read(fd, buffer, sizeof(buffer)) < 0)
		return errno == EAGAIN || errno == EISDIR ? 0 : errno;
	return 0;
}

static int do_read(struct words *w)
{
	int fd = open(w->word[1], O_RDONLY), error;

	if (fd < 0)
		return errno;
	error = read_from(fd);
	close(fd);
	return error;
}

/* At the end, so that a program that is written to can still be run. */
static int write_to(int fd)
{
	lseek(fd, 0, SEEK_END);
	return result(write(fd, "x", 1));
}

static int do_write(struct words *w)
{
	int fd = open(w->word[1], number(w, 2), 0755), error;

	if (fd < 0)
		return errno;
	error = write_to(fd);
	close(fd);
	return error;
}

static int map(int fd, int protection, int flags)
{
	return mmap(NULL, PAGE, protection, flags, fd, 0) == MAP_FAILED ? errno : 0;
}

/* A mapping stays when the descriptor goes. */
static int do_map(struct words *w)
{
	int code = !strcmp(w->word[0], "mapexec");
	int fd = open(w->word[1], code ? O_RDONLY : O_RDWR), error;

	if (fd < 0)
		return errno;
	error = code ? map(fd, PROT_READ | PROT_EXEC, MAP_PRIVATE)
		     : map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	close(fd);
	return error;
}

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

/* address reads "inet ADDRESS PORT" or "unix NAME", where @ begins an abstract name. */
static socklen_t address(union address *to, struct words *w, int i)
{
	memset(to, 0, sizeof(*to));
	if (!strcmp(w->word[i], "unix")) {
		socklen_t length = strlen(w->word[i + 1]);

		if (length >= sizeof(to->un.sun_path))
			return 0;
		to->un.sun_family = AF_UNIX;
		memcpy(to->un.sun_path, w->word[i + 1], length);
		if (to->un.sun_path[0] != '@')
			return sizeof(to->un);
		to->un.sun_path[0] = 0;
		return offsetof(struct sockaddr_un, sun_path) + length;
	}
	if (inet_pton(AF_INET, w->word[i + 1], &to->v4.sin_addr) == 1) {
		to->v4.sin_family = AF_INET;
		to->v4.sin_port = htons(number(w, i + 2));
		return sizeof(to->v4);
	}
	if (inet_pton(AF_INET6, w->word[i + 1], &to->v6.sin6_addr) != 1)
		return 0;
	to->v6.sin6_family = AF_INET6;
	to->v6.sin6_port = htons(number(w, i + 2));
	return sizeof(to->v6);
}

/* connect, bind and sendto: TYPE FD, and an address. */
static int do_address(struct words *w)
{
	int type = !strcmp(w->word[1], "udp") ? SOCK_DGRAM : SOCK_STREAM;
	union address to;
	socklen_t size = address(&to, w, 3);
	int fd = size ? socket(to.any.sa_family, type, 0) : -1, error, one = 1;

	if (!size)
		return EINVAL;
	if (fd < 0)
		return errno;
	if (!strcmp(w->word[0], "connect")) {
		error = result(connect(fd, &to.any, size));
	} else if (!strcmp(w->word[0], "sendto")) {
		error = result(sendto(fd, "x", 1, 0, &to.any, size));
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		error = result(bind(fd, &to.any, size));
		if (!error && type == SOCK_STREAM)
			error = result(listen(fd, 8));
	}
	if (error) {
		close(fd);
		return error;
	}
	return keep(fd, number(w, 2));
}

/* Data is waited for, but that there is none is no error: labels have come anyway. */
static int receive(int fd, int wait)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	char buffer[PAGE];

	if (poll(&ready, 1, wait) < 0)
		return errno;
	if (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) < 0)
		return errno == EAGAIN ? 0 : errno;
	return 0;
}

/* From whoever connected to a socket that listens. */
static int do_accept(struct words *w)
{
	int fd = accept(number(w, 1), NULL, NULL), error;

	if (fd < 0)
		return errno;
	error = receive(fd, 100);
	return error ? error : keep(fd, number(w, 2));
}

static int do_pair(struct words *w)
{
	int fds[2], error;

	if (!strcmp(w->word[0], "pipe") ? pipe2(fds, O_NONBLOCK)
					: socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return errno;
	error = keep(fds[0], number(w, 1));
	return error ? error : keep(fds[1], number(w, 2));
}

/* SCM_RIGHTS: give and take a descriptor over a socket. */
static int do_pass(struct words *w)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {};
	char byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fd = number(w, 2);

	if (!strcmp(w->word[0], "give")) {
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
		return result(sendmsg(number(w, 1), &message, 0));
	}
	if (recvmsg(number(w, 1), &message, 0) < 0)
		return errno;
	header = CMSG_FIRSTHDR(&message);
	if (!header || message.msg_flags & MSG_CTRUNC)
		return EPERM; /* which is how a refused descriptor shows */
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return keep(fd, number(w, 2));
}

static int do_memory(struct words *w)
{
	char own[16] = "x";
	struct iovec here = { own, sizeof(own) }, there = { others, sizeof(own) };
	pid_t pid = number(w, 1);

	if (!strcmp(w->word[0], "ptrace"))
		return result(ptrace(PTRACE_SEIZE, pid, 0, 0));
	if (!strcmp(w->word[0], "memread"))
		return result(process_vm_readv(pid, &here, 1, &there, 1, 0));
	return result(process_vm_writev(pid, &here, 1, &there, 1, 0));
}

static int do_shm(struct words *w)
{
	return map(number(w, 1), PROT_READ | PROT_WRITE, MAP_SHARED);
}

static int do_memfd(struct words *w)
{
	int fd = memfd_create("shared", 0);

	if (fd >= 0 && ftruncate(fd, PAGE))
		return errno;
	return keep(fd, number(w, 1));
}

static int do_name(struct words *w)
{
	const char *op = w->word[0], *a = w->word[1], *b = w->word[2];

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
	if (!strcmp(op, "chmod"))
		return result(chmod(a, 0755));
	if (!strcmp(op, "chown"))
		return result(chown(a, 0, 0));
	if (!strcmp(op, "truncate"))
		return result(truncate(a, atoll(b)));
	if (!strcmp(op, "chdir"))
		return result(chdir(a));
	if (!strcmp(op, "setenv"))
		return result(setenv(a, b, 1));
	return ENOSYS;
}

static int do_process(struct words *w)
{
	const char *op = w->word[0];

	if (!strcmp(op, "setuid"))
		return result(setuid(number(w, 1)));
	if (!strcmp(op, "exec")) {
		execve(w->word[1], w->word + 1, environ);
		return errno;
	}
	if (!strcmp(op, "exit"))
		_exit(number(w, 1));
	if (!strcmp(op, "kill")) {
		signal(number(w, 1), SIG_DFL);
		return result(kill(getpid(), number(w, 1)));
	}
	return ENOSYS;
}

static const struct command {
	const char *name;
	int words; /* behind it */
	int (*act)(struct words *w);
} commands[] = {
	{ "open", 3, do_open },	      { "read", 1, do_read },	    { "write", 2, do_write },
	{ "mmapshared", 1, do_map },  { "mapexec", 1, do_map },	    { "connect", 4, do_address },
	{ "bind", 4, do_address },    { "sendto", 4, do_address },  { "accept", 2, do_accept },
	{ "pipe", 2, do_pair },	      { "socketpair", 2, do_pair }, { "give", 2, do_pass },
	{ "take", 2, do_pass },	      { "ptrace", 1, do_memory },   { "memread", 1, do_memory },
	{ "memwrite", 1, do_memory }, { "shm", 1, do_shm },	    { "memfd", 1, do_memfd },
	{ "unlink", 1, do_name },     { "rmdir", 1, do_name },	    { "mkdir", 1, do_name },
	{ "rename", 2, do_name },     { "exchange", 2, do_name },   { "link", 2, do_name },
	{ "symlink", 2, do_name },    { "chmod", 1, do_name },	    { "chown", 1, do_name },
	{ "truncate", 2, do_name },   { "chdir", 1, do_name },	    { "setenv", 2, do_name },
	{ "setuid", 1, do_process },  { "exec", 1, do_process },    { "exit", 1, do_process },
	{ "kill", 1, do_process },
};

static int act(struct words *w)
{
	const char *op = w->word[0];

	if (w->count == 2 && !strcmp(op, "fdread"))
		return read_from(number(w, 1));
	if (w->count == 2 && !strcmp(op, "fdwrite"))
		return write_to(number(w, 1));
	if (w->count == 2 && !strcmp(op, "send"))
		return result(send(number(w, 1), "x", 1, 0));
	if (w->count == 2 && !strcmp(op, "recv"))
		return receive(number(w, 1), WAIT_MS);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(op, commands[i].name))
			return w->count > commands[i].words ? commands[i].act(w) : EINVAL;
	return ENOSYS;
}

static void say(const char *text)
{
	if (send(CHANNEL, text, strlen(text), 0) < 0)
		_exit(111);
}

/* A child says that it is there, on its own channel; its parent, that it made it. */
static void fork_to(int channel)
{
	char answer[16];
	pid_t pid = fork();

	if (!pid) {
		if (dup2(channel, CHANNEL) < 0)
			_exit(112);
		snprintf(answer, sizeof(answer), "ready %d", getpid());
		say(answer);
		return;
	}
	snprintf(answer, sizeof(answer), "%d", result(pid));
	say(answer);
}

static void must(long value, const char *what)
{
	if (value >= 0)
		return;
	perror(what);
	_exit(114);
}

static void device(const char *path, int major, int minor)
{
	must(mknod(path, S_IFCHR | 0666, makedev(major, minor)), path);
	must(chmod(path, 0666), path);
}

/* box becomes the first program of a container: "box ROOT NETNS PROGRAM". */
static void box(char **words)
{
	char *program[] = { words[2], NULL };
	int status = 0, netns = open(words[1], O_RDONLY | O_CLOEXEC);
	pid_t pid;

	must(netns, words[1]);
	must(setns(netns, CLONE_NEWNET), "setns");
	must(unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID), "unshare");
	pid = fork();
	must(pid, "fork");
	if (pid) {
		for (int fd = CHANNEL; fd < 1024; fd++) /* an end has to be seen */
			close(fd);
		must(waitpid(pid, &status, 0), "wait");
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "make mounts private");
	must(mount(words[0], words[0], NULL, MS_BIND | MS_REC, NULL), "bind");
	must(chdir(words[0]), "chdir");
	must(mount("proc", "proc", "proc", 0, NULL), "mount proc");
	must(mount("tmpfs", "dev", "tmpfs", 0, "mode=755"), "mount dev");
	device("dev/null", 1, 3);
	device("dev/zero", 1, 5);
	device("dev/random", 1, 8);
	device("dev/urandom", 1, 9);
	/* What a kernel began with cannot be left by pivot_root. */
	if (syscall(SYS_pivot_root, ".", ".") == 0) {
		must(umount2(".", MNT_DETACH), "unmount the old root");
	} else {
		must(mount(".", "/", NULL, MS_MOVE, NULL), "move the root");
		must(chroot("."), "chroot");
	}
	must(chdir("/"), "chdir");
	execve(program[0], program, environ);
	must(-1, program[0]);
}

int main(int count, char **words)
{
	static char message[MAX_MESSAGE];
	char answer[16];

	if (count == 5 && !strcmp(words[1], "box"))
		box(words + 2);
	/* No zombies: nobody but the driver waits, and it does so from outside. */
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	snprintf(answer, sizeof(answer), "ready %d", getpid());
	say(answer);
	for (;;) {
		ssize_t size = recv(CHANNEL, message, sizeof(message), 0);
		struct words w = { 0 };

		if (size <= 0 || message[size - 1])
			_exit(113);
		for (char *at = message; at < message + size && w.count < MAX_WORDS;
		     at += strlen(at) + 1)
			w.word[w.count++] = at;
		if (w.count == 2 && !strcmp(w.word[0], "fork")) {
			fork_to(number(&w, 1));
			continue;
		}
		snprintf(answer, sizeof(answer), "%d", act(&w));
		say(answer);
	}
}
