// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/* Sockets: connections and datagrams to addresses and to Unix sockets. */

#define AF_UNSPEC 0
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10

/* reach decides on a peer's row and lets its labels in. */
static __always_inline void reach(struct act *act, u32 row, u32 op)
{
	/* A peer without a name here has no source's either. */
	if (row != ROW_UNKNOWN)
		bring(act, row_sources(act->image, row));
	decide(act, row, op, ARGS_NONE);
	if (!denied(act))
		gain(act, act->labels);
}

/* locate_address makes an address the act's object and returns its row. */
static __always_inline u32 locate_address(struct act *act, struct address *address)
{
	struct output *output = output_at(act->scratch);

	if (!output)
		return ROW_UNKNOWN;
	__builtin_memcpy(output->data, address->bytes, ADDRESS_SIZE);
	act->object_kind = OBJECT_ADDRESS;
	act->object = ADDRESS_SIZE;
	return address_row(act->image, address);
}

/* In network order, as a little-endian machine reads it. */
#define LOOPBACK 0x0100007fU
#define bpf_htons(port) __builtin_bswap16(port)
#define MAPPED_PREFIX 0xffff0000ULL /* ::ffff:0:0, its second half */

static __always_inline void map_v4(struct address *to, u32 address, u16 port)
{
	__builtin_memset(to->bytes, 0, 10);
	to->bytes[10] = 0xff;
	to->bytes[11] = 0xff;
	__builtin_memcpy(&to->bytes[12], &address, 4);
	__builtin_memcpy(&to->bytes[16], &port, 2);
}

/*
 * from_sockaddr reads the address that a program gave. An IPv4 socket takes AF_UNSPEC
 * for AF_INET when it sends. An address of zeros is the socket's own address, or else
 * the loopback (ip_route_connect_init, tcp_v6_connect).
 */
static __always_inline bool from_sockaddr(struct address *to, struct sock *sk, void *name,
					  bool sends)
{
	struct {
		u16 family, port;
		u32 v4;
		u64 v6[2];
	} given = {};
	u32 own = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);

	if (bpf_probe_read_kernel(&given, sizeof(given), name))
		return false;
	if (given.family == AF_UNSPEC && sends &&
	    BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET)
		given.family = AF_INET;
	if (given.family == AF_INET) {
		map_v4(to, given.v4 ?: own ?: LOOPBACK, given.port);
		return true;
	}
	if (given.family != AF_INET6)
		return false;
	if (!given.v6[0] && given.v6[1] == MAPPED_PREFIX) { /* ::ffff:0.0.0.0 */
		map_v4(to, own ?: LOOPBACK, given.port);
		return true;
	}
	if (!given.v6[0] && !given.v6[1]) {
		if (own) { /* bound to an IPv4 address */
			map_v4(to, LOOPBACK, given.port);
			return true;
		}
		given.v6[1] = 1ULL << 56; /* ::1 */
	}
	__builtin_memcpy(to->bytes, given.v6, 16);
	__builtin_memcpy(&to->bytes[16], &given.port, 2);
	return true;
}

static __always_inline bool from_peer(struct address *to, struct sock *sk, u16 family)
{
	u16 port = BPF_CORE_READ(sk, __sk_common.skc_dport);

	if (!port)
		return false;
	if (family == AF_INET) {
		map_v4(to, BPF_CORE_READ(sk, __sk_common.skc_daddr), port);
		return true;
	}
	BPF_CORE_READ_INTO(&to->bytes, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr8);
	__builtin_memcpy(&to->bytes[16], &port, 2);
	return true;
}

static __always_inline bool is_inet(u16 family)
{
	return family == AF_INET || family == AF_INET6;
}

static __always_inline bool on_socket_connect(struct socket *sock, struct sockaddr *name)
{
	struct sock *sk = BPF_CORE_READ(sock, sk);
	struct address address = {};
	struct act act = {};
	bool refused;

	/* By the address's family: SMC and others take those of IP. */
	if (!from_sockaddr(&address, sk, name, false))
		return false;
	if (!begin(&act, &refused))
		return refused;
	act.protocol = BPF_CORE_READ(sk, sk_protocol);
	reach(&act, locate_address(&act, &address), OP_CONNECT);
	return end(&act);
}
TWIN(socket_connect, (struct socket * sock, struct sockaddr *name, int length), (sock, name))

/* judge_send decides on one address that something is sent to. The connect of a
 * connected socket has been reported, so that only a refusal is new. */
static __always_inline bool judge_send(struct sock *sk, struct address *address, bool connected)
{
	struct act act = {};
	bool refused;

	if (!begin(&act, &refused))
		return refused;
	act.protocol = BPF_CORE_READ(sk, sk_protocol);
	act.used = connected;
	reach(&act, locate_address(&act, address), OP_SEND);
	if (connected && !denied(&act))
		act.effect = EFFECT_ALLOW;
	return end(&act);
}

#define SOCK_DGRAM 2
#define SOCK_RAW 3

/*
 * A connected socket is asked again each time, since labels and gates may have
 * changed. An address given to a stream that is connected means nothing to the
 * kernel; before, it is where the stream will go.
 */
static __always_inline bool on_socket_sendmsg(struct socket *sock, struct msghdr *message)
{
	struct sock *sk = BPF_CORE_READ(sock, sk);
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	void *name = BPF_CORE_READ(message, msg_name);
	u16 type = BPF_CORE_READ(sk, sk_type);
	struct address address = {};

	if (!is_inet(family) || (!marked() && !strays()))
		return false;
	if (name && from_sockaddr(&address, sk, name, true)) {
		if (judge_send(sk, &address, false))
			return true;
		if (type == SOCK_DGRAM || type == SOCK_RAW)
			return false;
	}
	return from_peer(&address, sk, family) && judge_send(sk, &address, true);
}
TWIN(socket_sendmsg, (struct socket * sock, struct msghdr *message, int size), (sock, message))

/* Until 6.5 sendfile and splice reach a socket without the hook of sending, but ask for
 * the permission to write to its file. */
__noinline int socket_write(u64 written)
{
	struct file *file = (void *)written;
	struct socket *sock = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(sock, sk);
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	struct address address = {};

	return bpf_core_field_exists(struct proto_ops___sendpage, sendpage) && is_inet(family) &&
	       from_peer(&address, sk, family) && judge_send(sk, &address, true);
}

#define UNIX_NAME_SIZE 108 /* sun_path */

/* at_step writes a NUL as "@". */
static long at_step(u64 step, struct scratch **scratch)
{
	u64 at = step;

	if (at >= UNIX_NAME_SIZE)
		return 1;
	BOUND(at, 127);
	if (!(*scratch)->name[at])
		(*scratch)->name[at] = '@';
	return 0;
}

/* abstract_row takes the LENGTH bytes of a Unix socket's abstract name, NUL first, as
 * "@" and the name, with "@" for every further NUL, and makes it the record's object. */
__noinline u32 abstract_row(struct act *act, u64 name, u64 length)
{
	struct scratch *scratch;
	struct output *output;

	if (!act)
		return ROW_UNKNOWN;
	scratch = scratch_at(act->scratch);
	if (!scratch)
		return ROW_UNKNOWN;
	BOUND(length, 127);
	if (length > UNIX_NAME_SIZE)
		length = UNIX_NAME_SIZE;
	__builtin_memset(scratch->name, 0, sizeof(scratch->name));
	bpf_probe_read_kernel(scratch->name, length, (void *)name);
	bpf_loop(length, at_step, &scratch, 0);
	act->object_kind = OBJECT_UNIX;
	act->object = length;
	output = output_at(act->scratch);
	if (!output)
		return ROW_UNKNOWN;
	bpf_probe_read_kernel(output->data, UNIX_NAME_SIZE, scratch->name);
	return name_key_row(act->image, act->scratch, length, START_UNIX);
}

/* judge_unix decides on the peer's name; a socket without one has none to match. */
static __always_inline void judge_unix(struct act *act, struct sock *peer, u32 op)
{
	struct unix_sock *other = (struct unix_sock *)peer;
	struct dentry *dentry = BPF_CORE_READ(other, path.dentry);
	struct unix_address *address = BPF_CORE_READ(other, addr);
	u32 row;

	if (dentry) {
		act->object_kind = OBJECT_PATH;
		act->object =
			render(act->scratch, (u64)BPF_CORE_READ(other, path.mnt), (u64)dentry);
		/* One that was bound elsewhere, and is mounted here. */
		if (act->object == NO_PATH)
			act->object = render(act->scratch, mount_of((u64)dentry, 0), (u64)dentry);
		row = path_row(act->image, act->scratch, act->object, START_UNIX);
	} else if (address) {
		row = abstract_row(act, (u64)address->name + 2, BPF_CORE_READ(address, len) - 2);
	} else {
		return;
	}
	reach(act, row, op);
}

/* The agent can always ask for its reasons. */
static __always_inline bool is_feedback(struct act *act, struct sock *peer)
{
	struct unix_sock *other = (struct unix_sock *)peer;
	struct dentry *dentry = BPF_CORE_READ(other, path.dentry);
	struct scope_files *known = files_of(act);

	return known && dentry && same_file(BPF_CORE_READ(dentry, d_inode), &known->feedback);
}

static __always_inline bool reach_unix(struct sock *peer, u32 op)
{
	struct act act = {};
	bool refused;

	if (!begin(&act, &refused))
		return refused;
	if (!is_feedback(&act, peer))
		judge_unix(&act, peer, op);
	return end(&act);
}

static __always_inline bool on_unix_stream_connect(struct sock *other)
{
	return reach_unix(other, OP_CONNECT);
}
TWIN(unix_stream_connect, (struct sock * sock, struct sock *other, struct sock *newsk), (other))

/* Called when a datagram socket connects, and for each datagram. */
static __always_inline bool on_unix_may_send(struct socket *other)
{
	return reach_unix(BPF_CORE_READ(other, sk), OP_SEND);
}
TWIN(unix_may_send, (struct socket * sock, struct socket *other), (other))

/* bound is the address that a socket has. */
static __always_inline void bound(struct address *to, struct sock *sk, u16 family)
{
	u16 port = bpf_htons(BPF_CORE_READ(sk, __sk_common.skc_num));

	if (family == AF_INET) {
		map_v4(to, BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr), port);
		return;
	}
	BPF_CORE_READ_INTO(&to->bytes, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
	__builtin_memcpy(&to->bytes[16], &port, 2);
}

static __always_inline bool judge_bind(struct sock *sk, struct address *address, bool reported)
{
	struct act act = {};
	bool refused;

	if (!begin(&act, &refused))
		return refused;
	act.protocol = BPF_CORE_READ(sk, sk_protocol);
	decide(&act, locate_address(&act, address), OP_BIND, ARGS_NONE);
	if (reported && !denied(&act))
		act.effect = EFFECT_ALLOW;
	return end(&act);
}

/* A Unix socket that gets a name in the file system is decided on where the name is
 * made, which tells the whole path. Without a name the kernel chooses an abstract one. */
static __always_inline bool bind_unix(struct sockaddr *name, int length)
{
	struct act act = {};
	bool refused;
	u8 first = 1;

	if (length < 2)
		return false;
	bpf_probe_read_kernel(&first, 1, (void *)name + 2);
	if (length > 2 && first)
		return false;
	if (!begin(&act, &refused))
		return refused;
	decide(&act, abstract_row(&act, number_of(name) + 2, length - 2), OP_BIND, ARGS_NONE);
	return end(&act);
}

static __always_inline bool on_socket_bind(struct socket *sock, struct sockaddr *name, int length)
{
	struct sock *sk = BPF_CORE_READ(sock, sk);
	struct address address = {};
	struct {
		u16 family, port;
		u32 v4;
		u64 v6[2];
	} given = {};

	if (bpf_probe_read_kernel(&given, sizeof(given), name))
		return false;
	/* As inet_bind reads it: AF_UNSPEC is AF_INET. */
	if (given.family == AF_UNSPEC && BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET)
		given.family = AF_INET;
	if (given.family == AF_UNIX)
		return bind_unix(name, length);
	if (given.family == AF_INET) {
		map_v4(&address, given.v4, given.port);
	} else if (given.family == AF_INET6) {
		__builtin_memcpy(address.bytes, given.v6, 16);
		__builtin_memcpy(&address.bytes[16], &given.port, 2);
	} else {
		return false;
	}
	return judge_bind(sk, &address, false);
}
TWIN(socket_bind, (struct socket * sock, struct sockaddr *name, int length), (sock, name, length))

/* The bind has been reported, if there was one: listening without takes a free port. */
static __always_inline bool on_socket_listen(struct socket *sock)
{
	struct sock *sk = BPF_CORE_READ(sock, sk);
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	struct address address = {};

	if (!is_inet(family))
		return false;
	bound(&address, sk, family);
	return judge_bind(sk, &address, BPF_CORE_READ(sk, __sk_common.skc_num) != 0);
}
TWIN(socket_listen, (struct socket * sock, int backlog), (sock))
