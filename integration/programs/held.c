/* SPDX-License-Identifier: Apache-2.0 */
/* As held-go, in C, with threads that are busy or wait. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void *busy(void *unused)
{
	for (;;)
		getppid();
	return unused;
}

static void *waiting(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int reach(char *object, int type)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	char *port = strchr(object, ':');
	int fd = socket(AF_INET, type, 0), result;

	*port = 0;
	inet_pton(AF_INET, object, &to.sin_addr);
	to.sin_port = htons(atoi(port + 1));
	if (type == SOCK_STREAM)
		result = connect(fd, (struct sockaddr *)&to, sizeof(to));
	else
		result = sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1 ? 0 : -1;
	if (result && errno == ECONNREFUSED)
		result = 0;
	return result;
}

static int step(const char *op, char *object)
{
	char *argv[] = { object, NULL };

	if (!strcmp(op, "open"))
		return open(object, O_RDONLY) < 0 ? -1 : 0;
	if (!strcmp(op, "unlink"))
		return unlink(object);
	if (!strcmp(op, "connect"))
		return reach(object, SOCK_STREAM);
	if (!strcmp(op, "send"))
		return reach(object, SOCK_DGRAM);
	return execv(object, argv);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		if (pthread_create(&thread, NULL, i % 2 ? busy : waiting, NULL))
			return 1;
	for (int i = 1; i + 1 < argc; i += 2) {
		int result = step(argv[i], argv[i + 1]);

		printf("%s %s\n", argv[i],
		       !result		? "ok"
		       : errno == EPERM ? "EPERM"
					: strerror(errno));
		fflush(stdout);
	}
	return 0;
}
