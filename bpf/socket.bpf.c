// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

//go:build ignore

/* Sockets: connections and datagrams to addresses and to Unix sockets. */

/* note_reached tells that labels came with a connection or a message. */
__noinline int note_reached(struct act *act, u64 gained, u64 sources)
{
	note_gain(act, gained & sources, WAY_SOURCE_ENDPOINT, 0, 0);
	note_gain(act, gained & ~sources, WAY_ENDPOINT, 0, 0);
	return 0;
}

/* reach decides on a peer's row and lets its labels in. */
static __always_inline void reach(struct act *act, u32 row, u32 op)
{
	u64 gained;

	/* A peer without a name here has no source's either. */
	if (row != ROW_UNKNOWN)
		bring(act, row_sources(act->image, row));
	decide(act, row, op, ARGS_NONE);
	if (denied(act))
		return;
	gained = gain(act, act->labels);
	if (gained)
		note_reached(act, gained, row == ROW_UNKNOWN ? 0 : row_sources(act->image, row));
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

/* connect_to decides on a connection. An endpoint of the scope has labels, and gets the
 * process's. */
static __always_inline void connect_to(struct act *act, struct sock *sk, struct address *address)
{
	bring(act, endpoint_labels(act, address));
	reach(act, locate_address(act, address), OP_CONNECT);
	if (!denied(act) && follows_labels(act) && here(act, address, act->protocol) & FILE_HERE)
		send_to(act, number_of(sk), address);
}

/* to_program tells an address of netlink that is not the kernel's: programs can talk to
 * each other there, which is not followed. */
static __always_inline bool to_program(struct sock *sk, void *name)
{
	struct {
		u16 family, pad;
		u32 port, groups;
	} given = {};

	if (BPF_CORE_READ(sk, __sk_common.skc_family) != AF_NETLINK || !name ||
	    bpf_probe_read_kernel(&given, sizeof(given), name))
		return false;
	return given.family == AF_NETLINK && (given.port || given.groups);
}

static __always_inline bool refuse_unfollowed(struct act *act, enum op op)
{
	if (!acquire(act))
		return true;
	refuse(act, op, REASON_UNFOLLOWED);
	return end(act);
}

static __always_inline bool on_socket_connect(struct socket *sock, struct sockaddr *name)
{
	struct sock *sk = BPF_CORE_READ(sock, sk);
	bool refused, program = to_program(sk, name);
	struct address address = {};
	struct act act = {};

	/* By the address's family: SMC and others take those of IP. */
	if (!program && !from_sockaddr(&address, sk, name, false))
		return BPF_CORE_READ(sk, __sk_common.skc_family) != AF_UNIX && is_locked();
	if (!begin(&act, &refused))
		return refused;
	act.protocol = BPF_CORE_READ(sk, sk_protocol);
	if (!program)
		connect_to(&act, sk, &address);
	else if (follows_labels(&act))
		refuse(&act, OP_CONNECT, REASON_UNFOLLOWED);
	return end(&act);
}
TWIN(socket_connect, (struct socket * sock, struct sockaddr *name, int length), (sock, name))

/*
 * transmit decides on one address that something is sent to. The connect of a connected
 * socket has been reported, so that only a refusal is new; when no clause is about
 * sending, its peer's labels are known as well.
 */
static __always_inline bool transmit(struct act *act, struct sock *sk, struct address *address,
				     bool connected)
{
	struct image *head = image_at(act->image);
	bool decides = !connected || !head || head->ops & BIT(OP_SEND);

	if (!decides && !carried(act))
		return false;
	if (!acquire(act))
		return true;
	act->effect = EFFECT_ALLOW;
	act->used = connected ? USED : NOT_USED;
	act->protocol = BPF_CORE_READ(sk, sk_protocol);
	if (decides) {
		if (!connected)
			bring(act, endpoint_labels(act, address));
		reach(act, locate_address(act, address), OP_SEND);
	}
	if (connected && !denied(act))
		act->effect = EFFECT_ALLOW;
	if (!denied(act))
		send_to(act, number_of(sk), address);
	return end(act);
}

/* send_inet: a connected socket is asked again each time, since labels and gates may
 * have changed. An address given to a stream that is connected means nothing to the
 * kernel; before, it is where the stream will go. */
static __always_inline bool send_inet(struct act *act, struct sock *sk, struct msghdr *message,
				      u16 family)
{
	void *name = BPF_CORE_READ(message, msg_name);
	u16 type = BPF_CORE_READ(sk, sk_type);
	struct address address = {};

	if (name && from_sockaddr(&address, sk, name, true)) {
		if (transmit(act, sk, &address, false))
			return true;
		if (type == SOCK_DGRAM || type == SOCK_RAW)
			return false;
	}
	return from_peer(&address, sk, family) && transmit(act, sk, &address, true);
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

/* pass_unix decides on what goes to the peer of a Unix socket, as transmit does: to
 * connect has been reported, and only a refusal is new. */
static __always_inline bool pass_unix(struct act *act, struct sock *peer)
{
	struct image *head = image_at(act->image);

	if (!peer || (head && !(head->ops & BIT(OP_SEND))) || is_feedback(act, peer)) {
		send_unix(act, peer);
		return false;
	}
	if (!acquire(act))
		return true;
	act->effect = EFFECT_ALLOW;
	act->used = USED;
	judge_unix(act, peer, OP_SEND);
	if (!denied(act)) {
		act->effect = EFFECT_ALLOW;
		send_unix(act, peer);
	}
	return end(act);
}

/* pass decides on what goes through a socket that is none of IP; a datagram's receiver
 * has a hook of its own. */
static __always_inline bool pass(struct act *act, struct sock *sk, u16 family)
{
	struct unix_sock *own = (struct unix_sock *)sk;

	if (family != AF_UNIX)
		send_unix(act, sk); /* what another process reads from the same socket */
	else if (BPF_CORE_READ(sk, sk_type) != SOCK_DGRAM)
		return pass_unix(act, BPF_CORE_READ(own, peer));
	return false;
}

#define MSG_ZEROCOPY 0x4000000

/* What is sent without a copy can still be changed when the process has other labels. */
static __always_inline bool on_socket_sendmsg(struct socket *sock, struct msghdr *message)
{
	struct sock *sk = BPF_CORE_READ(sock, sk);
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	struct act act = {};
	enum membership membership = enter(&act);

	if (membership != INSIDE || in_setup(&act))
		return membership == REFUSED;
	if (is_inet(family) && BPF_CORE_READ(message, msg_flags) & MSG_ZEROCOPY &&
	    follows_labels(&act))
		return refuse_unfollowed(&act, OP_SEND);
	if (is_inet(family))
		return send_inet(&act, sk, message, family);
	if (carried(&act) && to_program(sk, BPF_CORE_READ(message, msg_name)))
		return refuse_unfollowed(&act, OP_SEND);
	return pass(&act, sk, family);
}
TWIN(socket_sendmsg, (struct socket * sock, struct msghdr *message, int size), (sock, message))

/* Until 6.5 sendfile and splice reach a socket without the hook of sending, but ask for
 * the permission to write to its file. */
static __always_inline int write_socket(struct act *act, u64 socket)
{
	struct sock *sk = (void *)socket;
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	struct address address = {};

	if (!act || !bpf_core_field_exists(struct proto_ops___sendpage, sendpage))
		return 0;
	if (is_inet(family))
		return from_peer(&address, sk, family) && transmit(act, sk, &address, true);
	return pass(act, sk, family);
}

/* reach_unix decides on a Unix socket, and gives labels to the one that gets what is
 * sent. If a process of the scope listens there, it has labels of its own. */
static __always_inline bool reach_unix(struct sock *peer, struct sock *receiver, u32 op)
{
	struct file_id id = socket_id(peer);
	struct act act = {};
	u64 local = 0, gained;
	bool refused;

	if (!begin(&act, &refused))
		return refused;
	if (is_feedback(&act, peer))
		return end(&act);
	if (follows_labels(&act))
		local = channel_flags(&act, &id);
	if (local & FILE_HERE)
		bring(&act, (channel_labels(&act, &id) | owner_labels(local)) & everything(&act));
	judge_unix(&act, peer, op);
	if (!denied(&act)) {
		gained = gain(&act, act.labels);
		if (gained)
			note_gain(&act, gained, WAY_ENDPOINT, id.ino, id_where(&id));
		send_unix(&act, receiver);
		if (local & FILE_HERE)
			send_unix(&act, peer);
	}
	return end(&act);
}

static __always_inline bool on_unix_stream_connect(struct sock *other, struct sock *accepted)
{
	return reach_unix(other, accepted, OP_CONNECT);
}
TWIN(unix_stream_connect, (struct sock * sock, struct sock *other, struct sock *newsk),
     (other, newsk))

/* Called when a datagram socket connects, and for each datagram. */
static __always_inline bool on_unix_may_send(struct socket *other)
{
	struct sock *sk = BPF_CORE_READ(other, sk);

	return reach_unix(sk, sk, OP_SEND);
}
TWIN(unix_may_send, (struct socket * sock, struct socket *other), (other))

/* settle_unix notes that a process of the scope listens at a Unix socket. */
static __always_inline bool settle_unix(struct sock *sk)
{
	struct file_id id = socket_id(sk);
	struct act act = {};
	enum membership membership = enter(&act);

	if (membership == INSIDE && !in_setup(&act) && follows_labels(&act))
		mark(&act, &id, 0, owned(&act));
	return membership == REFUSED;
}

static __always_inline bool judge_bind(struct sock *sk, struct address *address, bool reported)
{
	struct act act = {};
	bool refused;

	if (!begin(&act, &refused))
		return refused;
	act.protocol = BPF_CORE_READ(sk, sk_protocol);
	act.used = reported ? USED : NOT_USED;
	decide(&act, locate_address(&act, address), OP_BIND, ARGS_NONE);
	if (reported && !denied(&act))
		act.effect = EFFECT_ALLOW;
	if (!denied(&act) && follows_labels(&act))
		settle_here(&act, address);
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
		return settle_unix(sk) || bind_unix(name, length);
	if (given.family == AF_INET) {
		map_v4(&address, given.v4, given.port);
	} else if (given.family == AF_INET6) {
		__builtin_memcpy(address.bytes, given.v6, 16);
		__builtin_memcpy(&address.bytes[16], &given.port, 2);
	} else {
		return is_locked();
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

	if (family == AF_UNIX)
		return settle_unix(sk);
	if (!is_inet(family))
		return false;
	bound(&address, sk, family);
	return judge_bind(sk, &address, BPF_CORE_READ(sk, __sk_common.skc_num) != 0);
}
TWIN(socket_listen, (struct socket * sock, int backlog), (sock))
