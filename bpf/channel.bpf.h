/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Labels through what is no file: sockets, pipes, terminals. What is sent is noted where
 * the receiver will look: at the socket that gets it, or by the address and port to
 * which it goes. So what goes out of the scope is noted and never read again, and what
 * comes from outside brings nothing.
 */
#ifndef ACTPLANE_CHANNEL_H
#define ACTPLANE_CHANNEL_H

#include "event.bpf.h"
#include "share.bpf.h"
#include "sharer.bpf.h"

#define AF_UNSPEC 0
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define AF_NETLINK 16

#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_RAW 3
#define SOCK_SEQPACKET 5

#define SOCK_BINDADDR_LOCK 4 /* of sk_userlocks: bound to an address, by name */

/* follows_labels tells whether the scope's policy asks for any label. */
static __always_inline bool follows_labels(struct act *act)
{
	struct image *head = image_at(act->image);

	return head && head->labels;
}

/* carried are the labels that the process gives to a channel. */
static __always_inline u64 carried(struct act *act)
{
	struct image *head = image_at(act->image);

	return head ? act->labels & head->labels & ~uncarried(head) : act->labels;
}

static __always_inline bool is_inet(u16 family)
{
	return family == AF_INET || family == AF_INET6;
}

static __always_inline struct file_id socket_id(struct sock *sk)
{
	struct file_id id = { .ino = number_of(sk), .dev = CHANNEL_SOCKET };

	return id;
}

/* option_id names what the options of a socket hold. */
static __always_inline struct file_id option_id(struct sock *sk)
{
	struct file_id id = { .ino = number_of(sk), .dev = CHANNEL_OPTIONS };

	return id;
}

#define ANY_ADDRESS (1U << 31)

/* port_id names what is known of a port at every address. A protocol of 8 bits: MPTCP,
 * 262, is TCP to the other end. */
static __always_inline struct file_id port_id(u32 channel, u16 port, u8 protocol)
{
	struct file_id id = {
		.ino = 1,
		.dev = channel,
		.generation = ANY_ADDRESS | (u32)protocol << 16 | port,
	};

	return id;
}

/* address_id names an address and port. Two IPv6 addresses may have the same name: then
 * a label goes too far. */
static __always_inline struct file_id address_id(u32 channel, struct address *address, u8 protocol)
{
	struct file_id id = { .dev = channel };
	u64 halves[2];
	u16 port;

	__builtin_memcpy(halves, address->bytes, 16);
	__builtin_memcpy(&port, &address->bytes[16], 2);
	id.ino = (halves[0] * 0x9e3779b97f4a7c15ULL ^ halves[1]) ?: 1;
	id.generation = (u32)protocol << 16 | port;
	return id;
}

static __always_inline u16 address_port(struct address *address)
{
	u16 port;

	__builtin_memcpy(&port, &address->bytes[16], 2);
	return port;
}

static __always_inline void mark(struct act *act, struct file_id *id, u64 labels, u64 flags)
{
	mark_channel(act, id->ino, id_where(id), labels, flags);
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

/* from_peer is the address that a socket is connected to. */
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

static __always_inline bool is_loopback(struct address *address)
{
	u64 halves[2];

	__builtin_memcpy(halves, address->bytes, 16);
	if (halves[0])
		return false;
	return (halves[1] & 0xffffffffffULL) == (MAPPED_PREFIX | 127ULL << 32) ||
	       halves[1] == 1ULL << 56;
}

/* is_any tells an address of zeros, which stands for all of the machine's. */
static __always_inline bool is_any(struct address *address)
{
	u64 halves[2];

	__builtin_memcpy(halves, address->bytes, 16);
	return !halves[0] && (!halves[1] || halves[1] == MAPPED_PREFIX);
}

/* here returns the flags of an address if a process of the scope listens there. */
static __always_inline u64 here(struct act *act, struct address *address, u8 protocol)
{
	struct file_id id = address_id(CHANNEL_INBOX, address, protocol);
	u64 flags = channel_flags(act, &id);

	if (flags & FILE_HERE || !is_loopback(address))
		return flags;
	id = port_id(CHANNEL_INBOX, address_port(address), protocol);
	return channel_flags(act, &id);
}

/* owner_labels are those of the process that listens: it will answer. */
static __always_inline u64 owner_labels(u64 flags)
{
	u64 id = flags >> KEPT_SHIFT;
	struct sharer *owner = bpf_map_lookup_elem(&sharers, &id);

	return owner ? owner->labels : 0;
}

/* endpoint_labels are those of an endpoint in the scope. */
__noinline u64 endpoint_labels(struct act *act, struct address *address)
{
	struct file_id id;
	u64 labels, flags;

	if (!act || !address || !follows_labels(act))
		return 0;
	flags = here(act, address, act->protocol);
	if (!(flags & FILE_HERE))
		return 0;
	id = address_id(CHANNEL_OUTBOX, address, act->protocol);
	labels = channel_labels(act, &id);
	id.dev = CHANNEL_INBOX;
	labels |= channel_labels(act, &id);
	return (labels | owner_labels(flags)) & everything(act);
}

/* owned are the flags of an endpoint at which the current process listens. */
static __always_inline u64 owned(struct act *act)
{
	struct process *process = current_process();
	struct sharer *sharer = own_sharer(act); /* where its labels can be looked up */

	return process && sharer ? FILE_HERE | process->id << KEPT_SHIFT : FILE_HERE;
}

/* settle_here notes that a process of the scope listens at an address; when that is every
 * address, by its port. */
__noinline int settle_here(struct act *act, struct address *address)
{
	struct file_id id;

	if (!act || !address || !address_port(address))
		return 0;
	id = address_id(CHANNEL_INBOX, address, act->protocol);
	if (is_any(address))
		id = port_id(CHANNEL_INBOX, address_port(address), act->protocol);
	mark(act, &id, 0, owned(act));
	return 0;
}

/* raw_number stands for what raw sockets send: any socket may get it. */
#define RAW_NUMBER share_number(1, 0, SHARE_CHANNEL)
#define SENT_NUMBER share_number(2, 0, SHARE_CHANNEL)

/* note_sent keeps what was sent to any address, which raw sockets see all of. */
static __always_inline void note_sent(struct act *act, u64 labels, bool raw)
{
	struct scope *scope = scope_at(act->slot);
	u64 gained;

	if (!scope)
		return;
	gained = labels & ~scope->sent;
	if (gained) {
		__sync_fetch_and_or(&scope->sent, labels);
		grow(act, SENT_NUMBER, gained);
	}
	gained = raw ? labels & ~scope->raw : 0;
	if (gained) {
		__sync_fetch_and_or(&scope->raw, labels);
		grow(act, RAW_NUMBER, gained);
	}
}

/* listened tells whether a connection's own end is one that is listened on: then what
 * it sends is noted there, and not at each of the ports that its clients have. */
static __always_inline bool listened(struct act *act, struct address *own)
{
	struct file_id id = port_id(CHANNEL_INBOX, address_port(own), act->protocol);

	if (channel_flags(act, &id) & FILE_HERE)
		return true;
	id = address_id(CHANNEL_INBOX, own, act->protocol);
	return channel_flags(act, &id) & FILE_HERE;
}

/* send_to notes what goes from a socket to an address. */
__noinline int send_to(struct act *act, u64 socket, struct address *address)
{
	struct sock *sk = (void *)socket;
	struct address own = {};
	struct file_id id;
	u64 labels;
	u16 type;

	if (!act || !address)
		return 0;
	labels = carried(act);
	if (!labels)
		return 0;
	type = BPF_CORE_READ(sk, sk_type);
	note_sent(act, labels, type == SOCK_RAW);
	if (type == SOCK_STREAM) {
		bound(&own, sk, BPF_CORE_READ(sk, __sk_common.skc_family));
		if (listened(act, &own)) {
			id = address_id(CHANNEL_OUTBOX, &own, act->protocol);
			mark(act, &id, labels, 0);
			return 0;
		}
	}
	id = address_id(CHANNEL_INBOX, address, act->protocol);
	mark(act, &id, labels, 0);
	if (type != SOCK_STREAM) {
		/* A receiver may be bound to all addresses. */
		id = port_id(CHANNEL_INBOX, address_port(address), act->protocol);
		mark(act, &id, labels, 0);
	}
	return 0;
}

/* inbox is where others note what they send to a socket. One without a connection that
 * was not bound to an address gets what goes to any. */
static __always_inline struct file_id inbox(struct sock *sk, u16 family, u16 type, u8 protocol)
{
	struct address own = {};

	bound(&own, sk, family);
	if (type == SOCK_STREAM ||
	    BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & SOCK_BINDADDR_LOCK)
		return address_id(CHANNEL_INBOX, &own, protocol);
	return port_id(CHANNEL_INBOX, address_port(&own), protocol);
}

/* receive_inet returns the labels of what a socket may get. */
static __always_inline u64 receive_inet(struct act *act, struct sock *sk, u16 family)
{
	u16 type = BPF_CORE_READ(sk, sk_type);
	struct scope *scope = scope_at(act->slot);
	u8 protocol = BPF_CORE_READ(sk, sk_protocol);
	struct file_id in = inbox(sk, family, type, protocol), out = {};
	struct address peer = {};
	u64 labels;

	if (!scope)
		return everything(act);
	if (type == SOCK_RAW)
		return await(act, SENT_NUMBER, RAW_NUMBER) ? scope->sent : everything(act);
	if (type == SOCK_STREAM && from_peer(&peer, sk, family))
		out = address_id(CHANNEL_OUTBOX, &peer, protocol);
	if (!await(act, id_number(&in, SHARE_CHANNEL),
		   out.dev ? id_number(&out, SHARE_CHANNEL) : RAW_NUMBER))
		return everything(act);
	labels = channel_labels(act, &in) | scope->raw;
	return out.dev ? labels | channel_labels(act, &out) : labels;
}

/* waiting_labels returns the labels of a channel that the thread reads. */
static __always_inline u64 waiting_labels(struct act *act, struct file_id *id)
{
	bool listed = await(act, id_number(id, SHARE_CHANNEL), 0);

	return listed ? channel_labels(act, id) : everything(act);
}

/* note_received tells that labels came with what was taken from a socket: from the peer's
 * address, or by what others have sent. */
__noinline int note_received(struct act *act, u64 labels, u64 socket, u64 sources)
{
	struct sock *sk = (void *)socket;
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	u8 protocol = BPF_CORE_READ(sk, sk_protocol);
	struct address peer = {};
	struct file_id id;
	struct origin *origin;

	if (!act)
		return 0;
	origin = begin_gain(act, RECORD_GAIN, labels & sources ? WAY_SOURCE_ENDPOINT : WAY_SOCKET,
			    labels);
	if (!origin)
		return 0;
	origin->protocol = protocol;
	origin->objects[0] = socket_id(sk);
	if (is_inet(family)) {
		id = inbox(sk, family, BPF_CORE_READ(sk, sk_type), protocol);
		origin->objects[0] = id;
		if (from_peer(&peer, sk, family)) {
			origin->objects[1] = address_id(CHANNEL_OUTBOX, &peer, protocol);
			origin->object_kind = OBJECT_ADDRESS;
			origin->object_size = ADDRESS_SIZE;
			__builtin_memcpy(origin->object, peer.bytes, ADDRESS_SIZE);
		}
	}
	bpf_ringbuf_submit(origin, 0);
	return 0;
}

/* socket_labels returns those of what waits for the process in a socket, or will. */
__noinline u64 socket_labels(struct act *act, u64 socket)
{
	struct sock *sk = (void *)socket;
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	struct file_id id;

	if (!act)
		return 0;
	if (is_inet(family))
		return receive_inet(act, sk, family);
	id = socket_id(sk);
	return waiting_labels(act, &id);
}

/* send_unix notes what goes to a socket that is at hand. */
static __always_inline void send_unix(struct act *act, struct sock *peer)
{
	struct file_id id = socket_id(peer);
	u64 labels = carried(act);

	if (peer && labels)
		mark(act, &id, labels, 0);
}

/* through_channel moves labels between the process and what is one thing for all who
 * have it open. */
__noinline int through_channel(struct act *act, u64 ino, u64 where, u32 mask)
{
	struct file_id id = { .ino = ino, .dev = where >> 32, .generation = where };
	u64 labels;

	if (!act)
		return 0;
	if (mask & MAY_READ) {
		labels = gain(act, waiting_labels(act, &id));
		if (labels)
			note_gain(act, labels, way_of(id.dev), ino, where);
	}
	labels = carried(act);
	if (mask & MAY_WRITE && labels)
		mark(act, &id, labels, 0);
	return 0;
}

#define PTMX (TTYAUX_MAJOR << 20 | 2)

/*
 * use_terminal moves labels between the two ends of a pseudoterminal. What its programs
 * write is for who holds the master, and not for who reads what is typed: each way has an
 * entry of its own. What the master is given, it may also get back as an echo.
 */
static __always_inline int use_terminal(struct act *act, u64 opened, u32 mask)
{
	struct file *file = (void *)opened;
	struct tty_file_private *private = BPF_CORE_READ(file, private_data);
	struct tty_struct *tty = BPF_CORE_READ(private, tty);
	struct tty_struct *link = BPF_CORE_READ(tty, link);
	bool master = BPF_CORE_READ(file, f_inode, i_rdev) == PTMX;
	struct dentry *dentry = BPF_CORE_READ(master ? link : tty, driver_data);
	struct inode *inode = BPF_CORE_READ(dentry, d_inode);
	struct file_id typed, written;

	if (!act || !link || !inode)
		return 0; /* a line to the outside */
	typed = file_id(inode);
	written = terminal_id(&typed);
	if (mask & MAY_READ) {
		if (master)
			through_channel(act, written.ino, id_where(&written), MAY_READ);
		else
			through_channel(act, typed.ino, id_where(&typed), MAY_READ);
	}
	if (!(mask & MAY_WRITE))
		return 0;
	through_channel(act, written.ino, id_where(&written), MAY_WRITE);
	if (master)
		through_channel(act, typed.ino, id_where(&typed), MAY_WRITE);
	return 0;
}

/* use_end is through_channel for a file that may be the end of a pipe. */
static __always_inline void use_end(struct act *act, struct file *file, u32 mask)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct file_id id;

	if (inode_type(inode) != S_IFIFO)
		return;
	id = file_id(inode);
	through_channel(act, id.ino, id_where(&id), mask);
}

/* How what a process puts into a pipe comes there. */
enum filling {
	FILLS,	/* at once */
	PASSES, /* as it comes from where the thread waits for it */
	LENDS,	/* without a copy: the process can still change it */
};

/*
 * fill notes what a process puts into a pipe without writing to it. When the process gains
 * labels while it waits for that, or can change it, the pipe has them at once. Nothing can
 * be refused here: where there is no room to note it, the scope is saturated.
 */
__noinline int fill(struct act *act, u64 opened, u32 filling)
{
	struct file *file = (void *)opened;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct sharer *sharer;
	struct file_id id;

	if (!act || inode_type(inode) != S_IFIFO)
		return 0;
	id = file_id(inode);
	if (filling != FILLS) {
		sharer = own_sharer(act);
		if (!sharer) {
			saturate_scope(act);
			return 0;
		}
		if (filling == LENDS || !pass_on(sharer, &id))
			map_write(sharer, &id);
		full_barrier(&sharer->passes);
		bring(act, *(volatile u64 *)&sharer->labels); /* which came before it was noted */
	}
	if (carried(act))
		mark(act, &id, carried(act), 0);
	return 0;
}

#define X86_SENDFILE 40
#define X86_SPLICE 275
#define X86_COMPAT_SENDFILE 187
#define X86_COMPAT_SENDFILE64 239
#define X86_COMPAT_SPLICE 313

/* fill_pipe notes what sendfile and splice put into a pipe, at whose end nobody is asked. */
static __always_inline int fill_pipe(struct act *act, u32 filling)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 number = BPF_CORE_READ(regs, orig_ax), fd;
	bool compat = is_compat(task);
	struct file *file;

	if (number == (compat ? X86_COMPAT_SPLICE : X86_SPLICE))
		fd = BPF_CORE_READ(regs, dx);
	else if (!compat && number == X86_SENDFILE)
		fd = BPF_CORE_READ(regs, di);
	else if (compat && (number == X86_COMPAT_SENDFILE || number == X86_COMPAT_SENDFILE64))
		fd = BPF_CORE_READ(regs, bx);
	else
		return 0;
	file = open_file(fd);
	if (file && act)
		fill(act, number_of(file), filling);
	return 0;
}

#endif
