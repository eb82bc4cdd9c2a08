// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/* What arrives, and ways around the hooks of reading and writing: splice and its kin,
 * queues of messages, sockets that go. */

/* judge_receive decides on the peer that a socket is connected to. Who sent a datagram
 * to a socket without one, nobody knows before it is taken: it may be any address. */
static __always_inline void judge_receive(struct act *act, struct sock *sk, u16 family)
{
	struct unix_sock *own = (struct unix_sock *)sk;
	struct address peer = {};
	struct sock *other;

	if (family == AF_UNIX) {
		other = BPF_CORE_READ(own, peer);
		if (other && !is_feedback(act, other))
			judge_unix(act, other, OP_RECV);
		return;
	}
	if (!is_inet(family))
		return;
	act->protocol = BPF_CORE_READ(sk, sk_protocol);
	reach(act, from_peer(&peer, sk, family) ? locate_address(act, &peer) : ROW_UNKNOWN,
	      OP_RECV);
}

/* peer_sources are the labels of the address that a socket is connected to. */
static __always_inline u64 peer_sources(struct act *act, struct sock *sk, u16 family)
{
	struct address peer = {};

	if (!is_inet(family) || !from_peer(&peer, sk, family))
		return 0;
	return row_sources(act->image, address_row(act->image, &peer));
}

/* receive decides on taking data from a socket, and brings its labels in. */
__noinline int receive(struct act *act, u64 socket)
{
	struct sock *sk = (void *)socket;
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	struct image *head;
	u64 labels, sources = 0;

	if (!act)
		return 1;
	head = image_at(act->image);
	if (head && head->labels) {
		labels = socket_labels(act, socket);
		if (head->ops & USES_ENDPOINTS)
			sources = peer_sources(act, sk, family);
		labels = gain(act, labels | sources);
		if (labels)
			note_received(act, labels, socket, sources);
	}
	if (head && !(head->ops & BIT(OP_RECV)))
		return 0;
	if (!acquire(act))
		return 1;
	act->used = USED;
	judge_receive(act, sk, family);
	return end(act);
}

static __always_inline bool on_socket_recvmsg(struct socket *sock)
{
	struct act act = {};
	enum membership membership = enter(&act);

	if (membership != INSIDE || in_setup(&act))
		return membership == REFUSED;
	return receive(&act, (u64)BPF_CORE_READ(sock, sk));
}
TWIN(socket_recvmsg, (struct socket * sock, struct msghdr *message, int size, int flags), (sock))

#define AF_ALG 38

#define IPPROTO_ICMP 1
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_ICMPV6 58
#define IPPROTO_UDPLITE 136
#define IPPROTO_MPTCP 262

/* is_followed tells the sockets whose peers and data the hooks show. The others (packets,
 * SCTP, SMC, VSOCK, …) have ways to send that no hook sees, or addresses of their own. */
static __always_inline bool is_followed(int family, int type, int protocol)
{
	if (family == AF_UNIX || family == AF_NETLINK || family == AF_ALG)
		return true;
	if (!is_inet(family))
		return false;
	return (type & 0xf) == SOCK_RAW || !protocol || protocol == IPPROTO_ICMP ||
	       protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_ICMPV6 ||
	       protocol == IPPROTO_UDPLITE || protocol == IPPROTO_MPTCP;
}

/* Sockets that are not followed are refused where a policy asks for labels, or for what is
 * connected to, sent or received. */
static __always_inline bool on_socket_create(int family, int type, int protocol, int kern)
{
	struct act act = {};
	enum membership membership = OUTSIDE;
	struct image *head;

	if (!kern && !is_followed(family, type, protocol))
		membership = enter(&act);
	if (membership != INSIDE || in_setup(&act))
		return membership == REFUSED;
	head = image_at(act.image);
	if (head && !head->labels && !(head->ops & (BIT(OP_CONNECT) | BIT(OP_SEND) | BIT(OP_RECV))))
		return false;
	return refuse_unfollowed(&act, OP_CONNECT);
}
TWIN(socket_create, (int family, int type, int protocol, int kern), (family, type, protocol, kern))

/* What was kept of a socket must not hold for the next one at its address. */
static __always_inline void socket_goes(struct sock *sk)
{
	drop_id(socket_id(sk));
	drop_id(option_id(sk));
}

SEC("lsm/sk_free_security")
int BPF_PROG(lsm_sk_free_security, struct sock *sk)
{
	socket_goes(sk);
	return 0;
}

SEC("fentry/security_sk_free")
int BPF_PROG(mod_sk_free_security, struct sock *sk)
{
	socket_goes(sk);
	return 0;
}

/*
 * splice, tee and vmsplice ask for no permission at a pipe. They are not refused, since
 * honest programs use them: what comes out of the one end is added to the process, and
 * the process's labels to the other. sendfile is seen where it reads.
 */
/* begin_splice enters the scope for what can't be refused. */
static __always_inline bool begin_splice(struct act *act)
{
	return enter(act) == INSIDE && !in_setup(act) && follows_labels(act);
}

static __always_inline u64 spliced_labels(struct act *act, struct file *in)
{
	struct inode *inode = BPF_CORE_READ(in, f_inode);
	struct socket *sock = BPF_CORE_READ(in, private_data);

	switch (inode_type(inode)) {
	case S_IFREG:
		return file_labels(act, inode);
	case S_IFSOCK:
		return socket_labels(act, (u64)BPF_CORE_READ(sock, sk));
	}
	return 0;
}

static __always_inline void splices(struct file *in, struct file *out)
{
	struct act act = {};

	if (!begin_splice(&act))
		return;
	bring(&act, spliced_labels(&act, in)); /* which come only when it is read */
	use_end(&act, in, MAY_READ);
	fill(&act, number_of(out),
	     inode_type(BPF_CORE_READ(in, f_inode)) == S_IFREG ? FILLS : PASSES);
}

SEC("fentry/do_splice")
int BPF_PROG(fn_do_splice, struct file *in, long *in_offset, struct file *out)
{
	splices(in, out);
	return 0;
}

SEC("fentry/do_tee")
int BPF_PROG(fn_do_tee, struct file *in, struct file *out)
{
	splices(in, out);
	return 0;
}

static __always_inline void passed(void)
{
	struct act act = {};

	if (begin_splice(&act))
		end_pass();
}

SEC("fexit/do_splice")
int BPF_PROG(fx_do_splice)
{
	passed();
	return 0;
}

SEC("fexit/do_tee")
int BPF_PROG(fx_do_tee)
{
	passed();
	return 0;
}

/* Its beginning is seen where it asks whether it may read. */
SEC("fexit/do_sendfile")
int BPF_PROG(fx_do_sendfile)
{
	passed();
	return 0;
}

/* From memory into a pipe, or the reverse, as the descriptor is open for. */
static __always_inline void vmsplices(u64 fd)
{
	struct file *file = open_file(fd);
	struct act act = {};

	if (!file || !begin_splice(&act))
		return;
	if (BPF_CORE_READ(file, f_mode) & FMODE_WRITE)
		fill(&act, number_of(file), LENDS);
	else
		use_end(&act, file, MAY_READ);
}

SEC("fentry/__x64_sys_vmsplice")
int BPF_PROG(fn___x64_sys_vmsplice, const struct pt_regs *regs)
{
	vmsplices(BPF_CORE_READ(regs, di));
	return 0;
}

/* Of 32-bit programs. */
SEC("fentry/__ia32_sys_vmsplice")
int BPF_PROG(fn___ia32_sys_vmsplice, const struct pt_regs *regs)
{
	vmsplices(BPF_CORE_READ(regs, bx));
	return 0;
}

#define S_IRUGO 0444
#define S_IWUGO 0222

/*
 * System V queues of messages, found by the address and number of what the kernel keeps
 * of them. Segments and semaphores come here too: who may write one gives its labels to
 * who reads it. What is in a segment is followed where it is mapped.
 */
static __always_inline bool on_ipc_permission(struct kern_ipc_perm *queue, u32 flag)
{
	struct act act = {};
	enum membership membership = enter(&act);
	u32 mask = 0;

	if (membership != INSIDE || in_setup(&act) || !follows_labels(&act))
		return membership == REFUSED;
	if (flag & S_IRUGO)
		mask |= MAY_READ;
	if (flag & S_IWUGO)
		mask |= MAY_WRITE;
	through_channel(&act, number_of(queue),
			(u64)CHANNEL_QUEUE << 32 | (u32)BPF_CORE_READ(queue, id), mask);
	return false;
}
TWIN(ipc_permission, (struct kern_ipc_perm * queue, u16 flag), (queue, flag))
