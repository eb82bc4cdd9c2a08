/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actor: every program of a container in which cases are acted out. It takes one
 * command a message from its driver, which is outside of the scope, makes one
 * system call or a few of it, and answers with errno. In C, since it has to fork.
 *
 * A message is words that end in NUL, behind their size; behind the first can stand "@" and a number, which
 * says which of the system calls that do the same it is to be (see ways.c). Descriptors have the numbers that the driver
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
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"

#define MAX_MESSAGE 65536
#define MAX_WORDS 512
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
	return keep(open_by(w->word[1], number(w, 2)), number(w, 3));
}

static int do_read(struct words *w)
{
	int fd = open_by(w->word[1], O_RDONLY), error;

	if (fd < 0)
		return errno;
	error = read_from(fd);
	close(fd);
	return error;
}

static int do_write(struct words *w)
{
	int fd = open_by(w->word[1], number(w, 2)), error;

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
	int fd = open_by(w->word[1], code ? O_RDONLY : O_RDWR), error;

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
		error = connect_by(fd, &to.any, size);
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

	while (poll(&ready, 1, wait) < 0)
		if (errno != EINTR)
			return errno;
	return receive_by(fd);
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
	return !strcmp(w->word[0], "shm") ? attach_memory(number(w, 1))
					  : share_memory(number(w, 1));
}

static int do_name(struct words *w)
{
	const char *op = w->word[0], *a = w->word[1], *b = w->word[2];

	if (!strcmp(op, "truncate"))
		return result(truncate(a, atoll(b)));
	if (!strcmp(op, "chdir"))
		return result(chdir(a));
	if (!strcmp(op, "setenv"))
		return result(setenv(a, b, 1));
	return change_name(op, a, b);
}

static int do_process(struct words *w)
{
	const char *op = w->word[0];

	if (!strcmp(op, "setuid"))
		return result(setuid(number(w, 1)));
	if (!strcmp(op, "exec"))
		return run(w->word + 1);
	if (!strcmp(op, "exit"))
		_exit(number(w, 1));
	if (!strcmp(op, "kill")) {
		signal(number(w, 1), SIG_DFL);
		return result(kill(getpid(), number(w, 1)));
	}
	return ENOSYS;
}

static int do_nothing(struct words *w)
{
	(void)w;
	return 0;
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
	{ "memwrite", 1, do_memory }, { "shm", 1, do_shm },	    { "share", 1, do_shm },
	{ "unlink", 1, do_name },     { "rmdir", 1, do_name },	    { "mkdir", 1, do_name },
	{ "rename", 2, do_name },     { "exchange", 2, do_name },   { "link", 2, do_name },
	{ "symlink", 2, do_name },    { "chmod", 1, do_name },	    { "chown", 1, do_name },
	{ "truncate", 2, do_name },   { "chdir", 1, do_name },	    { "setenv", 2, do_name },
	{ "setuid", 1, do_process },  { "exec", 1, do_process },    { "exit", 1, do_process },
	{ "kill", 1, do_process },    { "nothing", 0, do_nothing },
};

static int act(struct words *w)
{
	const char *op = w->word[0];

	if (w->count == 2 && !strcmp(op, "fdread"))
		return read_from(number(w, 1));
	if (w->count == 2 && !strcmp(op, "fdwrite"))
		return write_to(number(w, 1));
	if (w->count == 2 && !strcmp(op, "send"))
		return send_by(number(w, 1));
	if (w->count >= 2 && !strcmp(op, "recv"))
		return receive(number(w, 1), w->count > 2 ? number(w, 2) : WAIT_MS);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(op, commands[i].name))
			return w->count > commands[i].words ? commands[i].act(w) : EINVAL;
	return ENOSYS;
}

/* say sends a message of at most 16 characters, behind its size. */
static void say(const char *text)
{
	struct {
		unsigned size;
		char text[16];
	} message = { .size = strlen(text) };

	memcpy(message.text, text, message.size);
	if (send(CHANNEL, &message, sizeof(message.size) + message.size, 0) < 0)
		_exit(111);
}

/* hear takes the next message, and ends with who would send it. */
static unsigned hear(char *message)
{
	unsigned size;

	if (recv(CHANNEL, &size, sizeof(size), MSG_WAITALL) != sizeof(size) || !size ||
	    size > MAX_MESSAGE)
		_exit(113);
	if (recv(CHANNEL, message, size, MSG_WAITALL) != size || message[size - 1])
		_exit(113);
	return size;
}

/* A child says that it is there, on its own channel; its parent, that it made it. */
static void fork_to(int channel)
{
	char answer[16];
	pid_t pid = fork_by();

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

/* go_on lets whom we trace go on, who stops with each signal, also with those that it
 * ignores. */
static void go_on(int signal)
{
	int status, error = errno;
	pid_t pid;

	(void)signal;
	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
		if (WIFSTOPPED(status))
			ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(status));
	errno = error;
}

/* choose_way cuts "@" and a number off a command; "-" behind it is for no rings. */
static void choose_way(char *op)
{
	char *at = strchr(op, '@');

	way = no_rings = 0;
	if (at) {
		*at = 0;
		way = strtoul(at + 1, &at, 10);
		no_rings = *at == '-';
	}
}

int main(int count, char **words)
{
	/* No zombies: nobody but the driver waits, and it does so from outside. */
	struct sigaction children = { .sa_handler = go_on, .sa_flags = SA_RESTART | SA_NOCLDWAIT };
	static char message[MAX_MESSAGE];
	char answer[16];

	if (count == 5 && !strcmp(words[1], "box"))
		box(words + 2);
	sigaction(SIGCHLD, &children, NULL);
	signal(SIGPIPE, SIG_IGN);
	snprintf(answer, sizeof(answer), "ready %d", getpid());
	say(answer);
	for (;;) {
		unsigned size = hear(message);
		struct words w = { 0 };

		for (char *at = message; at < message + size && w.count < MAX_WORDS;
		     at += strlen(at) + 1)
			w.word[w.count++] = at;
		choose_way(w.word[0]);
		if (w.count == 2 && !strcmp(w.word[0], "fork")) {
			fork_to(number(&w, 1));
			continue;
		}
		snprintf(answer, sizeof(answer), "%d", act(&w));
		say(answer);
	}
}
