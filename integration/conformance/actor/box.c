/* SPDX-License-Identifier: Apache-2.0 */
/* A container that makes itself. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"

extern char **environ;

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

/*
 * leave_host makes the working directory the root. What a kernel began with cannot be left
 * by pivot_root: then the root is moved over it, and of what lies below at least the file
 * system goes where the layers of the new root are, or they would have two names.
 */
static void leave_host(void)
{
	struct stat layers, above;
	int fd = open("..", O_PATH | O_DIRECTORY | O_CLOEXEC), up;

	must(fd, "open ..");
	must(fstat(fd, &layers), "stat");
	if (syscall(SYS_pivot_root, ".", ".") == 0) {
		must(umount2(".", MNT_DETACH), "unmount the old root");
		return;
	}
	while ((up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC)) >= 0 &&
	       fstat(up, &above) == 0 && above.st_dev == layers.st_dev &&
	       above.st_ino != layers.st_ino) {
		layers = above;
		close(fd);
		fd = up;
	}
	must(mount(".", "/", NULL, MS_MOVE, NULL), "move the root");
	must(chroot("."), "chroot");
	must(fchdir(fd), "chdir");
	umount2(".", MNT_DETACH); /* if it is no part of the first root */
}

/* box becomes the first program of a container: "box ROOT NETNS PROGRAM". */
void box(char **words)
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
		/* An end has to be seen. */
		must(syscall(SYS_close_range, CHANNEL, ~0U, 0), "close_range");
		must(waitpid(pid, &status, 0), "wait");
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "make mounts private");
	must(chdir(words[0]), "chdir");
	must(mount("proc", "proc", "proc", 0, NULL), "mount proc");
	must(mount("tmpfs", "dev", "tmpfs", 0, "mode=755"), "mount dev");
	device("dev/null", 1, 3);
	device("dev/zero", 1, 5);
	device("dev/random", 1, 8);
	device("dev/urandom", 1, 9);
	leave_host();
	must(chdir("/"), "chdir");
	execve(program[0], program, environ);
	must(-1, program[0]);
}
