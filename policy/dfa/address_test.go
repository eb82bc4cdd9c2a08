// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

func addressKey(a netip.AddrPort) []byte {
	b := a.Addr().As16()
	return append(b[:], byte(a.Port()>>8), byte(a.Port()))
}

func endpoint(text string) ir.Pattern { return ir.Pattern{Kind: ir.Endpoint, Text: text} }

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no string
	}{
		{"10.0.0.0/8", "10.0.0.0:1 10.255.255.255:65535 [::ffff:10.1.2.3]:80", "9.255.255.255:1 11.0.0.0:1 [fd00::1]:1"},
		{"10.0.", "10.0.0.1:5", "10.1.0.1:5"},
		{"10.1.2.3", "10.1.2.3:1", "10.1.2.4:1"},
		{"10.1.2.3:80", "10.1.2.3:80", "10.1.2.3:81 10.1.2.3:8080"},
		{"0.0.0.0/0", "1.2.3.4:5", "[::1]:5"},
		{"::/0", "[::1]:5 [2606:4700::1]:443", "1.2.3.4:5"},
		{"[fd00::/8]:443", "[fd00::1]:443 [fdff::1]:443", "[fe00::1]:443 [fd00::1]:80"},
		{"[fd00::1]", "[fd00::1]:9", "[fd00::2]:9"},
		{"*:250-520", "1.1.1.1:250 1.1.1.1:255 1.1.1.1:256 [::1]:511 1.1.1.1:512 1.1.1.1:520", "1.1.1.1:249 1.1.1.1:521 [::1]:64000"},
		{"@loopback", "127.0.0.1:1 127.255.0.1:1 [::1]:1 0.0.0.0:1 [::]:1", "128.0.0.1:1 [::2]:1"},
		{"@private", "10.2.0.1:443 192.168.1.1:1 172.31.0.1:1 [fd00::1]:443", "172.32.0.1:1 100.64.0.1:1 8.8.8.8:1 [fe80::1]:1"},
		{"@linklocal", "169.254.1.1:1 [fe80::1]:1", "169.255.0.1:1 [fec0::1]:1"},
		{"@metadata", "169.254.169.254:80 [fd00:ec2::254]:80 100.100.100.200:80", "169.254.169.253:80"},
		{"@public", "8.8.8.8:53 [2606:4700::1]:443 224.0.0.1:1 100.64.0.1:1", "10.0.0.1:1 127.0.0.1:1 [::1]:1 [fe80::1]:1 169.254.169.254:80 0.0.0.0:1"},
		{"@public:443", "8.8.8.8:443", "8.8.8.8:80"},
	} {
		e, err := pattern.ParseEndpoint(c.pattern, "/")
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		img := compile(t, program(ir.Connect, endpoint(e.Text)))
		for want, list := range map[bool]string{true: c.yes, false: c.no} {
			for _, a := range strings.Fields(list) {
				row := rowOf(img, Address, addressKey(netip.MustParseAddrPort(a)))
				if got := len(row.Clauses[ir.Connect]) > 0; got != want {
					t.Errorf("%s (%s) matches %s: %t, want %t", c.pattern, e.Text, a, got, want)
				}
				if len(row.Clauses[ir.Send]) != len(row.Clauses[ir.Connect]) {
					t.Errorf("%s: a connect clause does not cover send", c.pattern)
				}
			}
		}
	}
}

func TestRandomPrefixes(t *testing.T) {
	r := rand.New(rand.NewPCG(testenv.Seed(t), 1))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	for range 60 {
		size := []int{4, 16}[r.IntN(2)]
		addr, _ := netip.AddrFromSlice(random(size))
		prefix := netip.PrefixFrom(addr, r.IntN(8*size+1)).Masked()
		lo := 1 + r.IntN(65535)
		hi := lo + r.IntN(65536-lo)
		text := fmt.Sprintf("%s:%d-%d", prefix, lo, hi)
		if size == 16 {
			text = fmt.Sprintf("[%s]:%d-%d", prefix, lo, hi)
		}
		img := compile(t, program(ir.Connect, endpoint(text)))
		for range 40 {
			b := random(size)
			copy(b, addr.AsSlice()[:r.IntN(size+1)])
			a, _ := netip.AddrFromSlice(b)
			port := lo + r.IntN(hi-lo+1)
			if r.IntN(2) == 0 {
				port = r.IntN(65536)
			}
			want := prefix.Contains(a) && port >= lo && port <= hi
			row := rowOf(img, Address, addressKey(netip.AddrPortFrom(a, uint16(port))))
			if got := len(row.Clauses[ir.Connect]) > 0; got != want {
				t.Fatalf("%s matches %s port %d: %t, want %t", text, a, port, got, want)
			}
		}
	}
}

func TestUnixSockets(t *testing.T) {
	for _, c := range []struct {
		pattern, yes, no string
	}{
		{"unix:/run/*.sock", "/run/a.sock", "/run/a/b.sock @a /run/a"},
		{"unix:@/tmp/*", "@/tmp/.X11-unix/X0", "/tmp/x"},
		{"unix:*", "/a @b", ""},
		{"*", "/a @b", ""},
		{"@loopback", "", "/a @b"},
	} {
		p := endpoint(c.pattern)
		if c.pattern == "*" {
			p = ir.Pattern{Kind: ir.Endpoint, Any: true}
		}
		img := compile(t, program(ir.Connect, p))
		for want, list := range map[bool]string{true: c.yes, false: c.no} {
			for _, key := range strings.Fields(list) {
				if got := len(rowOf(img, Unix, []byte(key)).Clauses[ir.Connect]) > 0; got != want {
					t.Errorf("%s matches %s: %t, want %t", c.pattern, key, got, want)
				}
			}
		}
	}
}
