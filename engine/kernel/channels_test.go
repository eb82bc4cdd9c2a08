// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"io"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// channelBench is a scope whose processes carry SECRET when they have read $D/secret, and
// may then not write $D/kept.
type channelBench struct {
	*bench
	secret, kept string
}

const channelPolicy = `
source SECRET = file "$D/secret"
rule stay:
  block write file "$D/kept" if SECRET
`

func newChannelBench(t *testing.T, tier Tier) *channelBench {
	t.Helper()
	b := &channelBench{bench: newBench(t, tier, channelPolicy)}
	b.secret, b.kept = b.file("secret"), b.file("kept")
	return b
}

// labelled checks that an actor carries the label, clean that it does not.
func (b *channelBench) labelled(a *actor, how string) {
	b.t.Helper()
	if got := a.do("write", b.kept); got != "EPERM" {
		b.t.Errorf("%s: the label did not come (%s)", how, got)
	}
}

func (b *channelBench) clean(a *actor, how string) {
	b.t.Helper()
	if got := a.do("write", b.kept); got != "ok" {
		b.t.Errorf("%s: %s, and no label should have come", how, got)
	}
}

// connected returns two actors with a socket pair between them, which are both called s.
func (b *channelBench) connected(kind string) (from, to *actor) {
	b.t.Helper()
	from, to = b.actor(), b.actor()
	path := b.dir + "/meet-" + kind
	_ = os.Remove(path)
	from.want("ok", "serve", "l", "stream", path)
	to.want("ok", "reach", "c", "stream", path)
	from.want("ok", "accept", "a", "l")
	from.want("ok", "pair", kind, "s", "other")
	from.want("ok", "give", "a", "other")
	to.want("ok", "take", "c", "s")
	from.want("ok", "closefd", "other")
	return from, to
}

// A socket pair, and Unix sockets by path and abstract name, of every type: who reads
// gets the writer's labels, and who has another connection does not.
func TestUnixSockets(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		for _, kind := range []string{"stream", "dgram", "seqpacket"} {
			from, to := b.connected(kind)
			other, third := b.connected(kind)
			from.want("ok", "read", b.secret)
			from.want("ok", "putfd", "s")
			b.clean(to, kind+", before it has read")
			to.want("ok", "get", "s")
			b.labelled(to, kind+" pair")
			other.want("ok", "putfd", "s")
			third.want("ok", "receive", "s")
			b.clean(third, kind+", another pair")
			b.clean(other, kind+", another pair's writer")
			third.want("ok", "sendmany", "s")
			other.want("ok", "receive", "s")
			b.clean(other, kind+", another pair's answer")
		}
		for _, name := range []string{b.dir + "/named", "@abstract"} {
			server, client, clean, third := b.actor(), b.actor(), b.actor(), b.actor()
			server.want("ok", "serve", "l", "stream", name)
			client.want("ok", "reach", "s", "stream", name)
			server.want("ok", "accept", "s", "l")
			clean.want("ok", "reach", "s", "stream", name)
			server.want("ok", "accept", "t", "l")
			clean.want("ok", "putfd", "s")
			server.want("ok", "receive", "t")
			b.clean(server, name+", from a clean client")
			client.want("ok", "read", b.secret)
			client.want("ok", "sendmany", "s")
			server.want("ok", "receive", "s")
			b.labelled(server, name)
			b.clean(clean, name+", another client")
			server.want("ok", "putfd", "t")
			clean.want("ok", "get", "s")
			b.labelled(clean, name+", the server's answer")
			third.want("ok", "reach", "s", "stream", name)
			b.labelled(third, name+", connecting to what has labels")
		}
		for _, name := range []string{b.dir + "/box", "@box"} {
			server, client, clean := b.actor(), b.actor(), b.actor()
			server.want("ok", "serve", "s", "dgram", name)
			clean.want("ok", "sendat", "s", "dgram", name)
			server.want("ok", "receive", "s")
			b.clean(server, name+", a clean datagram")
			client.want("ok", "read", b.secret)
			client.want("ok", "sendat", "s", "dgram", name)
			server.want("ok", "receive", "s")
			b.labelled(server, name)
		}
	})
}

// TCP and UDP between processes of the scope, over IPv4, IPv6 and mapped addresses, at one
// address and at all: labels go with the data, and with connecting to who has them.
func TestInternetSockets(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		for _, c := range []struct{ kind, at, to string }{
			{"tcp", "127.0.0.1", "127.0.0.1"}, {"tcp", "0.0.0.0", "127.0.0.2"}, {"tcp", "[::]", "127.0.0.1"},
			{"tcp", "[::1]", "[::1]"}, {"tcp", "127.0.0.1", "[::ffff:127.0.0.1]"}, {"mptcp", "127.0.0.1", "127.0.0.1"},
		} {
			how := c.kind + " " + c.to + " at " + c.at
			server, client, clean, third := b.actor(), b.actor(), b.actor(), b.actor()
			port, err := freePort()
			if err != nil {
				t.Fatal(err)
			}
			to := c.to + ":" + port
			server.want("ok", "serve", "l", c.kind, c.at+":"+port)
			client.want("ok", "reach", "s", "tcp", to)
			server.want("ok", "accept", "s", "l")
			clean.want("ok", "reach", "s", c.kind, to)
			server.want("ok", "accept", "t", "l")
			clean.want("ok", "putfd", "s")
			server.want("ok", "get", "t")
			b.clean(server, how+", from a clean client")
			client.want("ok", "read", b.secret)
			client.want("ok", "sendmany", "s")
			server.want("ok", "receive", "s")
			b.labelled(server, how)
			b.clean(clean, how+", another client")
			server.want("ok", "putfd", "t")
			clean.want("ok", "get", "s")
			b.labelled(clean, how+", the server's answer")
			third.want("ok", "reach", "s", c.kind, to)
			b.labelled(third, how+", connecting to who has labels")
		}
		for _, c := range []struct{ at, to string }{
			{"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.0.0.2"}, {"[::]", "127.0.0.1"}, {"[::1]", "[::1]"},
		} {
			how := "udp " + c.to + " at " + c.at
			server, client, clean := b.actor(), b.actor(), b.actor()
			port, err := freePort()
			if err != nil {
				t.Fatal(err)
			}
			server.want("ok", "serve", "s", "udp", c.at+":"+port)
			clean.want("ok", "sendat", "s", "udp", c.to+":"+port)
			server.want("ok", "get", "s")
			b.clean(server, how+", from a clean sender")
			client.want("ok", "read", b.secret)
			client.want("ok", "reach", "s", "udp", c.to+":"+port)
			client.want("ok", "unreach", "s")
			client.want("ok", "sendat", "s", "udp", c.to+":"+port)
			server.want("ok", "receive", "s")
			b.labelled(server, how)
			b.clean(clean, how+", another sender")
		}
	})
}

// Data in the first packet of a connection.
func TestFastOpen(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		server, client := b.actor(), b.actor()
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		server.want("ok", "serve", "l", "tcp", "127.0.0.1:"+port)
		client.want("ok", "read", b.secret)
		client.want("ok", "fastopen", "s", "tcp", "127.0.0.1:"+port)
		server.want("ok", "accept", "s", "l")
		server.want("ok", "get", "s")
		b.labelled(server, "fast open")
	})
}

// A raw socket can send to every other one, and sees what is sent to anybody.
func TestRawSockets(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		from, to, other, named := b.actor(), b.actor(), b.actor(), b.actor()
		to.want("ok", "serve", "s", "raw", "127.0.0.1:0")
		named.want("ok", "serve", "s", "udp", "127.0.0.1:"+port)
		from.want("ok", "sendat", "s", "raw", "127.0.0.1:0")
		to.want("ok", "get", "s")
		b.clean(to, "from a clean sender")
		from.want("ok", "read", b.secret)
		from.want("ok", "sendat", "u", "udp", "127.0.0.1:"+port)
		from.want("ok", "sendat", "s", "raw", "127.0.0.1:0")
		b.clean(to, "before it has read")
		to.want("ok", "get", "s")
		b.labelled(to, "raw")
		named.want("ok", "get", "s")
		b.labelled(named, "what a raw socket may have sent")
		b.clean(other, "who has no socket")
	})
}

// Programs that talk over netlink are not followed: who carries a label may not.
func TestNetlink(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		const number = "4242"
		from, to := b.actor(), b.actor()
		to.want("ok", "serve", "s", "netlink", number)
		from.want("ok", "sendat", "s", "netlink", number)
		to.want("ok", "get", "s")
		b.clean(to, "from a clean sender")
		from.want("ok", "read", b.secret)
		from.want("EPERM", "sendat", "s", "netlink", number)
		from.want("ECONNREFUSED", "sendat", "s", "netlink", "0") // the kernel, that does not listen there
	})
}

// What is outside of the scope is not marked: a secret that goes to a resolver does not
// come back with its next answer to somebody else.
func TestOutsideEndpoints(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		resolver, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer resolver.Close()
		go echo(resolver)
		service, err := net.Listen("unix", b.dir+"/service")
		if err != nil {
			t.Fatal(err)
		}
		defer service.Close()
		go answer(service)
		web, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer web.Close()
		go answer(web)
		labelled, other := b.actor(), b.actor()
		labelled.want("ok", "read", b.secret)
		for _, a := range []*actor{labelled, other} {
			a.want("ok", "sendat", "u", "udp", resolver.LocalAddr().String())
			a.want("ok", "get", "u")
			a.want("ok", "reach", "c", "udp", resolver.LocalAddr().String())
			a.want("ok", "putfd", "c")
			a.want("ok", "receive", "c")
			a.want("ok", "reach", "s", "stream", b.dir+"/service")
			a.want("ok", "putfd", "s")
			a.want("ok", "receive", "s")
			a.want("ok", "reach", "t", "tcp", web.Addr().String())
			a.want("ok", "putfd", "t")
			a.want("ok", "get", "t")
		}
		b.clean(other, "services outside")
	})
}

func echo(conn net.PacketConn) {
	data := make([]byte, 64)
	for {
		n, from, err := conn.ReadFrom(data)
		if err != nil {
			return
		}
		_, _ = conn.WriteTo(data[:n], from)
	}
}

// answer sends back what it gets on each connection.
func answer(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}

// A pipe carries labels whatever fills and empties it, also to a reader that waits
// already; and so does a FIFO.
func TestPipes(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		fill := map[string]func(a *actor){
			"write":    func(a *actor) { a.want("ok", "putfd", "w") },
			"vmsplice": func(a *actor) { a.want("ok", "vmsplice", "w") },
			"splice": func(a *actor) {
				a.want("ok", "openfd", "f", b.secret, "r")
				a.want("ok", "splice", "f", "w")
			},
			"sendfile": func(a *actor) {
				a.want("ok", "openfd", "f", b.secret, "r")
				a.want("ok", "sendfile", "w", "f")
			},
			"tee": func(a *actor) {
				a.want("ok", "pipe", "r2", "w2")
				a.want("ok", "putfd", "w2")
				a.want("ok", "tee", "r2", "w")
			},
		}
		empty := map[string]func(a *actor){
			"read":     func(a *actor) { a.want("ok", "get", "r") },
			"vmsplice": func(a *actor) { a.want("ok", "vmsplice", "r") },
			"splice": func(a *actor) {
				a.want("ok", "openfd", "out", "/dev/null", "w")
				a.want("ok", "splice", "r", "out")
			},
			"tee": func(a *actor) {
				a.want("ok", "pipe", "r2", "w2")
				a.want("ok", "tee", "r", "w2")
			},
		}
		for name, step := range fill {
			from, to, other := b.actor(), b.actor(), b.actor()
			b.fifo(from, to)
			b.fifo(from, other)
			from.want("ok", "putfd", "w")
			other.want("ok", "get", "r")
			b.fifo(from, to)
			from.want("ok", "read", b.secret)
			step(from)
			b.clean(to, name+", before it has read")
			to.want("ok", "get", "r")
			b.labelled(to, name)
			b.clean(other, name+", another pipe")
		}
		for name, step := range empty {
			from, to, other := b.actor(), b.actor(), b.actor()
			b.fifo(from, to)
			from.want("ok", "putfd", "w")
			step(to)
			b.clean(to, name+" of clean data")
			from.want("ok", "read", b.secret)
			from.want("ok", "putfd", "w")
			step(to)
			b.labelled(to, name)
			b.clean(other, name)
		}
	})
}

// fifo gives one actor the writing end w and another the reading end r of a new FIFO.
func (b *channelBench) fifo(from, to *actor) {
	b.t.Helper()
	path := b.dir + "/fifo"
	_ = os.Remove(path)
	if err := unix.Mkfifo(path, 0o644); err != nil {
		b.t.Fatal(err)
	}
	from.want("ok", "openfd", "both", path, "rw")
	to.want("ok", "openfd", "r", path, "r")
	from.want("ok", "openfd", "w", path, "w")
	from.want("ok", "closefd", "both")
}

// A reader that waits in the kernel when the label comes has it with the data, before
// it does anything else, and in every thread.
func TestWaitingReaders(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		for _, kind := range []string{"pipe", "stream", "dgram", "tcp"} {
			var from, to *actor
			put, get := "s", "s"
			switch kind {
			case "pipe":
				from, to, put, get = b.actor(), b.actor(), "w", "r"
				b.fifo(from, to)
			case "tcp":
				port, err := freePort()
				if err != nil {
					t.Fatal(err)
				}
				from, to = b.actor(), b.actor()
				from.want("ok", "serve", "l", "tcp", "127.0.0.1:"+port)
				to.want("ok", "reach", "s", "tcp", "127.0.0.1:"+port)
				from.want("ok", "accept", "s", "l")
			default:
				from, to = b.connected(kind)
			}
			other := b.actor()
			to.want("ok", "begin", "get", get)
			to.want("ok", "waits")
			from.want("ok", "read", b.secret)
			b.clean(to, kind+", while it waits")
			from.want("ok", "putfd", put)
			to.want("ok", "finish")
			b.labelled(to, kind)
			b.clean(other, kind)
		}
	})
}
