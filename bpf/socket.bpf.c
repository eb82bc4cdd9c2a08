// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/* Sockets: connections and datagrams to addresses and to Unix sockets. */

#define AF_UNSPEC 0
#define AF_INET 2
#define AF_INET6 10

/* judge_address decides on an address, which then is the record's object. */
static __noinline void judge_address(struct act *act, struct address *address, u32 op)
{
	struct image *head = image_head(act);
	struct row *row;
	u32 number;

	__builtin_memcpy(act->scratch->data, address->bytes, ADDRESS_SIZE);
	act->object_kind = OBJECT_ADDRESS;
	act->object = ADDRESS_SIZE;
	number = head ? address_row(act->image, head, address) : ROW_UNKNOWN;
	row = table_entry(rows, act->image, number);
	if (row)
		act->labels |= row->sources;
	decide(act, number, op, NULL, ARGS_ALL);
	if (!denied(act))
		gain(act, act->labels);
}

static __always_inline void map_v4(struct address *to, u32 address, u16 port)
{
	__builtin_memset(to->bytes, 0, 10);
	to->bytes[10] = 0xff;
	to->bytes[11] = 0xff;
	__builtin_memcpy(&to->bytes[12], &address, 4);
	__builtin_memcpy(&to->bytes[16], &port, 2);
}

/* from_sockaddr reads the address that a program gave. An IPv4 socket takes
 * AF_UNSPEC for AF_INET when it sends. */
static __noinline bool from_sockaddr(struct address *to, void *name, u16 socket_family)
{
	struct {
		u16 family, port;
		u32 v4;
		u8 v6[16];
	} given = {};

	if (bpf_probe_read_kernel(&given, sizeof(given), name))
		return false;
	if (given.family == AF_UNSPEC && socket_family == AF_INET)
		given.family = AF_INET;
	if (given.family == AF_INET) {
		map_v4(to, given.v4, given.port);
		return true;
	}
	if (given.family != AF_INET6)
		return false;
	__builtin_memcpy(to->bytes, given.v6, 16);
	__builtin_memcpy(&to->bytes[16], &given.port, 2);
	return true;
}

static __noinline bool from_peer(struct address *to, struct sock *sk, u16 family)
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

	if (!is_inet(BPF_CORE_READ(sk, __sk_common.skc_family)) ||
	    !from_sockaddr(&address, name, AF_UNSPEC))
		return false;
	if (!begin(&act, &refused))
		return refused;
	act.protocol = BPF_CORE_READ(sk, sk_protocol);
	judge_address(&act, &address, OP_CONNECT);
	return end(&act);
}
TWIN(socket_connect, (struct socket *sock, struct sockaddr *name, int length), (sock, name))

/* A connected socket is asked again each time, since labels and gates may have
 * changed; its connect has been reported, so only a refusal is new. */
static __always_inline bool on_socket_sendmsg(struct socket *sock, struct msghdr *message)
{
	struct sock *sk = BPF_CORE_READ(sock, sk);
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	void *name = BPF_CORE_READ(message, msg_name);
	struct address address = {};
	struct act act = {};
	bool refused, addressed;

	if (!is_inet(family))
		return false;
	addressed = name && from_sockaddr(&address, name, family);
	if (!addressed && !from_peer(&address, sk, family))
		return false;
	if (!begin(&act, &refused))
		return refused;
	act.protocol = BPF_CORE_READ(sk, sk_protocol);
	judge_address(&act, &address, OP_SEND);
	if (!addressed && !denied(&act))
		act.effect = EFFECT_ALLOW;
	return end(&act);
}
TWIN(socket_sendmsg, (struct socket *sock, struct msghdr *message, int size), (sock, message))

#define UNIX_NAME_SIZE 107

/* abstract_key writes "@" and the name, NULs as "@", and returns the length. */
static __always_inline u32 abstract_key(struct scratch *scratch, struct unix_address *address)
{
	u64 length = BPF_CORE_READ(address, len) - 2;

	BOUND(length, 127);
	if (length > UNIX_NAME_SIZE + 1)
		length = UNIX_NAME_SIZE + 1;
	__builtin_memset(scratch->name, 0, sizeof(scratch->name));
	bpf_probe_read_kernel(scratch->name, length, (void *)address->name + 2);
	for (u32 i = 0; i < UNIX_NAME_SIZE + 1; i++)
		if (i < length && !scratch->name[i])
			scratch->name[i] = '@';
	return length;
}

/* judge_unix decides on the peer's name; a socket without one has none to match. */
static __noinline void judge_unix(struct act *act, struct sock *peer, u32 op)
{
	struct unix_sock *other = (struct unix_sock *)peer;
	struct dentry *dentry = BPF_CORE_READ(other, path.dentry);
	struct unix_address *address = BPF_CORE_READ(other, addr);
	struct scratch *scratch = act->scratch;
	struct image *head = image_head(act);
	u32 number = ROW_UNKNOWN, length;
	struct row *row;

	if (dentry) {
		u32 at = render(scratch, BPF_CORE_READ(other, path.mnt), dentry);

		act->object_kind = OBJECT_PATH;
		act->object = at;
		if (head && at != NO_PATH)
			number = row_of_state(act->image, walk_path(act->image, head, scratch, at,
								    START_UNIX));
	} else if (address) {
		length = abstract_key(scratch, address);
		act->object_kind = OBJECT_UNIX;
		act->object = length;
		bpf_probe_read_kernel(scratch->data, 128, scratch->name);
		if (head)
			number = row_of_state(act->image, walk_name(act->image, head, scratch->name,
								    length, head->start[START_UNIX]));
	} else {
		return;
	}
	row = table_entry(rows, act->image, number);
	if (row)
		act->labels |= row->sources;
	decide(act, number, op, NULL, ARGS_ALL);
	if (!denied(act))
		gain(act, act->labels);
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
TWIN(unix_stream_connect, (struct sock *sock, struct sock *other, struct sock *newsk), (other))

/* Called when a datagram socket connects, and for each datagram. */
static __always_inline bool on_unix_may_send(struct socket *other)
{
	return reach_unix(BPF_CORE_READ(other, sk), OP_SEND);
}
TWIN(unix_may_send, (struct socket *sock, struct socket *other), (other))
