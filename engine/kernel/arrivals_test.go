// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"net"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/policy/ir"
)

// What programs write on a terminal is for who holds the master, what is typed for who
// reads the slave; neither is for who only writes there too.
func TestTerminals(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		holder, program := b.connected("stream")
		second, colleague := b.connected("stream")
		holder.want("ok", "terminal", "m", "t")
		holder.want("ok", "give", "s", "t")
		program.want("ok", "take", "s", "t")
		second.want("ok", "terminal", "m", "t")
		second.want("ok", "give", "s", "t")
		colleague.want("ok", "take", "s", "t")

		program.want("ok", "read", b.secret)
		program.want("ok", "putfd", "t")
		b.clean(holder, "a terminal, before it has read")
		holder.want("ok", "putfd", "t") // another program that writes there
		b.clean(holder, "a terminal, writing")
		holder.want("ok", "get", "m")
		b.labelled(holder, "a terminal's master")

		second.want("ok", "putfd", "m")
		colleague.want("ok", "get", "t")
		b.clean(colleague, "another terminal")
		second.want("ok", "read", b.secret)
		second.want("ok", "putfd", "m")
		colleague.want("ok", "get", "t")
		b.labelled(colleague, "typed on a terminal")
	})
}

// Who writes on a terminal does not mark who reads what is typed there.
func TestTerminalOutputIsNotInput(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newChannelBench(t, tier)
		holder, program := b.connected("stream")
		holder.want("ok", "terminal", "m", "t")
		holder.want("ok", "give", "s", "t")
		program.want("ok", "take", "s", "t")
		holder.want("ok", "putfd", "m") // typed by a clean process
		writer := b.actor()
		writer.want("ok", "read", b.secret)
		writer.want("ok", "openfd", "t", "/dev/pts/"+holder.do("terminalnumber", "m"), "rw")
		writer.want("ok", "putfd", "t")
		program.want("ok", "get", "t")
		b.clean(program, "what others write on its terminal")
	})
}

// Sockets that the hooks do not show are refused where labels or connections matter, and
// only there.
func TestUnfollowedSockets(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		for _, c := range []struct{ name, policy, answer string }{
			{"labels", channelPolicy, "EPERM"},
			{"connect", "rule r:\n  block connect \"10.0.0.1\"", "EPERM"},
			{"write", "rule r:\n  block write \"$D/x\"", "ok"},
		} {
			t.Run(c.name, func(t *testing.T) {
				b := newBench(t, tier, c.policy)
				a := b.actor()
				a.want(c.answer, "socket", strconv.Itoa(unix.AF_PACKET), strconv.Itoa(unix.SOCK_RAW), "0")
				if c.answer == "EPERM" {
					if r := b.record(); r.Reason == "" || r.Clause != -1 {
						t.Errorf("record %+v", r)
					}
					a.want(c.answer, "socket", strconv.Itoa(unix.AF_INET), strconv.Itoa(unix.SOCK_SEQPACKET), strconv.Itoa(unix.IPPROTO_SCTP))
				}
				for _, followed := range [][3]int{
					{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0}, {unix.AF_INET, unix.SOCK_STREAM, 0}, {unix.AF_INET6, unix.SOCK_DGRAM, 0},
					{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, {unix.AF_NETLINK, unix.SOCK_RAW, 0},
				} {
					a.want("ok", "socket", strconv.Itoa(followed[0]), strconv.Itoa(followed[1]), strconv.Itoa(followed[2]))
				}
			})
		}
	})
}

// Receiving is decided on where the peer is known, and refused where it may be one that
// a rule names.
func TestReceive(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
source FAR = endpoint "127.0.0.3"
rule in:
  block recv "127.0.0.2"
  block recv "unix:$D/closed"
rule far:
  block write file "$D/kept" if FAR
`)
		kept := b.file("kept")
		for _, address := range []string{"127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0"} {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go answer(listener)
			a := b.actor()
			a.want("ok", "reach", "s", "tcp", listener.Addr().String())
			a.want("ok", "putfd", "s")
			if address == "127.0.0.2:0" {
				a.want("EPERM", "receive", "s")
				if r := b.record(); r.Op != ir.Recv || r.Object != listener.Addr().String() {
					t.Errorf("record %+v", r)
				}
				a.want("EPERM", "get", "s")
				a.want("ok", "pipe", "r", "w")
				a.want("EPERM", "splice", "s", "w")
				continue
			}
			a.want("ok", "receive", "s")
			a.want(map[string]string{"127.0.0.1:0": "ok", "127.0.0.3:0": "EPERM"}[address], "write", kept)
		}
		// Who connects is a peer, too.
		server := b.actor()
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		server.want("ok", "serve", "l", "tcp", "127.0.0.1:"+port)
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		conn, err := dialer.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = conn.Write([]byte("x"))
		server.want("ok", "accept", "s", "l")
		server.want("EPERM", "receive", "s")

		for name, want := range map[string]string{"closed": "EPERM", "open": "ok"} {
			service, err := net.Listen("unix", b.dir+"/"+name)
			if err != nil {
				t.Fatal(err)
			}
			defer service.Close()
			go answer(service)
			a := b.actor()
			a.want("ok", "reach", "s", "stream", b.dir+"/"+name)
			a.want("ok", "putfd", "s")
			a.want(want, "receive", "s")
		}
		// Who sent a datagram is not known before it is taken.
		a := b.actor()
		a.want("ok", "serve", "u", "udp", "127.0.0.1:"+port)
		a.want("EPERM", "receive", "u")
	})
}
