/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ACTOR_H
#define ACTOR_H

#include <sys/socket.h>
#include <sys/types.h>

#define PAGE 4096
#define CHANNEL 3 /* to the driver */

/*
 * Which of the system calls that do the same is to be taken, for each choice another
 * digit of the number. 0 is always the plain one.
 */
extern unsigned way;
extern int no_rings; /* what a ring has in memory, children share */

unsigned choose(unsigned ways);
int result(long value);

int open_by(const char *path, int flags);
int read_from(int fd);
int write_to(int fd);
int connect_by(int fd, const struct sockaddr *to, socklen_t size);
int send_by(int fd);
int receive_by(int fd);
int share_memory(int number);
int attach_memory(int number);
int change_name(const char *op, const char *a, const char *b);
int run(char **words);
pid_t fork_by(void);

/* box.c */
void box(char **words);

/* ring.c: operations of an io_uring, each in a ring of its own. */
struct io_uring_sqe;
int ring_do(struct io_uring_sqe *entry);
int ring_open(const char *path, int flags);
int ring_io(int op, int fd, void *data, unsigned size, long long at);
int ring_connect(int fd, const struct sockaddr *to, socklen_t size);
int ring_name(const char *op, const char *a, const char *b);

#endif
