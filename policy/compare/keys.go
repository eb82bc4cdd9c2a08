// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/binary"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/model"
)

// A grammar is the automaton of the keys of one kind that there can be: an automaton
// of patterns also accepts what no path and no address is.
type grammar interface {
	start() uint16
	// step is where a byte leads; ok is false where no key goes on.
	step(state uint16, b byte) (next uint16, ok bool)
	// end tells whether a key can end here, and which kind of path it is.
	end(state uint16) (kind model.SpecialKind, ok bool)
	// order lists bytes, those first that make a good example: all that it treats in a
	// way of their own, and by itself all others.
	order(state uint16) []byte
}

// readable orders bytes for names: letters first, what a terminal does not show last.
func readable() []byte {
	const first = "abcdefghijklmnopqrstuvwxyz0123456789-_./ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	out := []byte(first)
	for b := ' '; b < 0x7F; b++ {
		if !strings.ContainsRune(first, b) {
			out = append(out, byte(b))
		}
	}
	for b := 0x80; b <= 0xFF; b++ {
		out = append(out, byte(b))
	}
	for b := range ' ' {
		out = append(out, byte(b))
	}
	return append(out, 0x7F)
}

// paths is the grammar of absolute paths whose links are resolved. A state is the place
// in the trie of special paths, what the last segment is so far, and the kind of the
// special folder that the path is in.
type paths struct {
	trie  []trieNode // 0 is where no special path goes on, 1 its root
	bytes []byte
}

// trieNode is a beginning of special paths.
type trieNode struct {
	next  map[byte]uint16
	here  model.SpecialKind // of the path that ends here
	below model.SpecialKind // of what is in it
}

// What the last segment is so far.
const (
	segNothing = iota // no slash has been read
	segRoot           // only the first slash
	segBegin          // a slash, and nothing after it
	segDot
	segDots
	segName
	segments
)

const kinds = uint16(model.Kept) + 1

func pathState(node, seg uint16, in model.SpecialKind) uint16 {
	return (node*segments+seg)*kinds + uint16(in)
}

func newPaths() *paths {
	p := &paths{trie: []trieNode{{}, {next: map[byte]uint16{}}}, bytes: readable()}
	for _, s := range model.Specials() {
		at := uint16(1)
		for _, b := range []byte(s.Path) {
			to, ok := p.trie[at].next[b]
			if !ok {
				to = uint16(len(p.trie))
				p.trie = append(p.trie, trieNode{next: map[byte]uint16{}})
				p.trie[at].next[b] = to
			}
			at = to
		}
		if s.Below {
			p.trie[at].below = s.Kind
		} else {
			p.trie[at].here = s.Kind
		}
	}
	return p
}

func (p *paths) start() uint16 { return pathState(1, segNothing, model.Ordinary) }

func (p *paths) step(state uint16, b byte) (uint16, bool) {
	in, seg, node := model.SpecialKind(state%kinds), state/kinds%segments, &p.trie[state/kinds/segments]
	if b == '/' && node.below != model.Ordinary {
		in = node.below
	}
	switch {
	case b == 0, seg == segNothing && b != '/', b == '/' && (seg == segRoot || seg == segBegin || seg == segDot || seg == segDots):
		return 0, false
	case seg == segNothing:
		seg = segRoot
	case b == '/':
		seg = segBegin
	case b == '.' && (seg == segRoot || seg == segBegin):
		seg = segDot
	case b == '.' && seg == segDot:
		seg = segDots
	default:
		seg = segName
	}
	return pathState(node.next[b], seg, in), true
}

func (p *paths) end(state uint16) (model.SpecialKind, bool) {
	seg := state / kinds % segments
	kind := p.trie[state/kinds/segments].here
	if kind == model.Ordinary {
		kind = model.SpecialKind(state % kinds)
	}
	return kind, seg == segName || seg == segRoot
}

func (p *paths) order(uint16) []byte { return p.bytes }

// sockets is the grammar of Unix sockets: a path, or @ and an abstract name.
type sockets struct{ *paths }

const abstract = 0xFFFF

func (s sockets) step(state uint16, b byte) (uint16, bool) {
	if state == abstract || state == s.start() && b == '@' {
		return abstract, b != 0
	}
	return s.paths.step(state, b)
}

func (s sockets) end(state uint16) (model.SpecialKind, bool) {
	if state == abstract {
		return model.Ordinary, true
	}
	return s.paths.end(state)
}

// names is the grammar of the base names of programs: neither empty, nor . or ..
type names struct{ bytes []byte }

func (names) start() uint16 { return 0 }

func (names) step(state uint16, b byte) (uint16, bool) {
	if b == '.' && state < 2 {
		return state + 1, true
	}
	return 3, b != 0 && b != '/'
}

func (names) end(state uint16) (model.SpecialKind, bool) { return model.Ordinary, state == 3 }

func (n names) order(uint16) []byte { return n.bytes }

// tokens is the grammar of argv's elements: anything.
type tokens struct{ bytes []byte }

func (tokens) start() uint16 { return 0 }

func (tokens) step(_ uint16, b byte) (uint16, bool) { return 0, b != 0 }

func (tokens) end(uint16) (model.SpecialKind, bool) { return model.Ordinary, true }

func (t tokens) order(uint16) []byte { return t.bytes }

// addresses is the grammar of the 18 bytes of an address and a port. A state is the
// number of bytes, and whether they are those of the example.
type addresses struct{ orders [addressSize][]byte }

const addressSize = 18

// exampleAddress is an address of the world, in the form of IPv4.
func exampleAddress() [addressSize]byte {
	return addressKey(netip.MustParseAddrPort("93.184.216.34:443"))
}

func addressKey(a netip.AddrPort) (key [addressSize]byte) {
	ip := a.Addr().As16()
	copy(key[:], ip[:])
	binary.BigEndian.PutUint16(key[16:], a.Port())
	return key
}

func newAddresses() *addresses {
	a := &addresses{}
	for i, first := range exampleAddress() {
		a.orders[i] = append(a.orders[i], first)
		for b := range 256 {
			if byte(b) != first {
				a.orders[i] = append(a.orders[i], byte(b))
			}
		}
	}
	return a
}

func (*addresses) start() uint16 { return 0 }

func (*addresses) step(state uint16, _ byte) (uint16, bool) { return state + 1, state < addressSize }

func (*addresses) end(state uint16) (model.SpecialKind, bool) {
	return model.Ordinary, state == addressSize
}

func (a *addresses) order(state uint16) []byte {
	if state < addressSize {
		return a.orders[state]
	}
	return nil
}

// hosts is the grammar of NAME:PORT, in lower case. A state is 0 and 1 in the name,
// then 2 and what hostPort says of the port.
type hosts struct{ bytes []byte }

const (
	maxPort   = "65535"
	portBegin = 2 // after the colon
)

func (hosts) start() uint16 { return 0 }

func (hosts) step(state uint16, b byte) (uint16, bool) {
	letter := b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-' || b == '_' || b == '.'
	switch {
	case state == 0:
		return 1, letter && b != '.' && b != '-'
	case state == 1 && b == ':':
		return portBegin, true
	case state == 1:
		return 1, letter
	}
	return portStep(state-portBegin, b)
}

// portStep reads a port from 1 to 65535 without zeros at its beginning. Its state is
// three times the number of digits, and how they compare with the largest port's.
func portStep(state uint16, b byte) (uint16, bool) {
	digits, compared := state/3, state%3 // 0 the same, 1 smaller, 2 larger
	if b < '0' || b > '9' || digits == 0 && b == '0' || int(digits) == len(maxPort) {
		return 0, false
	}
	if most := maxPort[digits]; compared == 0 && b != most {
		compared = 1
		if b > most {
			compared = 2
		}
	}
	digits++
	if int(digits) == len(maxPort) && compared == 2 {
		return 0, false
	}
	return portBegin + 3*digits + compared, true
}

func (hosts) end(state uint16) (model.SpecialKind, bool) {
	return model.Ordinary, state > portBegin
}

func (h hosts) order(uint16) []byte { return h.bytes }

// object writes a key as the object of a step.
func object(kind dfa.Start, key []byte) string {
	switch kind {
	case dfa.Address:
		ip := netip.AddrFrom16([16]byte(key[:16])).Unmap()
		return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(key[16:])).String()
	case dfa.Unix:
		return "unix:" + string(key)
	}
	return string(key)
}

// What follows lists keys that may make better examples than a short one.

func knownAddresses() (out [][]byte) {
	for _, a := range []string{
		"93.184.216.34:443", "93.184.216.34:80", "10.0.0.1:443", "10.0.0.1:80", "10.0.0.1:8080", "192.168.0.1:443", "127.0.0.1:8080", "169.254.169.254:80",
		"8.8.8.8:53", "[2606:4700::1111]:443", "[fd00::1]:443", "[::1]:8080", "93.184.216.34:22", "10.0.0.1:5432",
	} {
		k := addressKey(netip.MustParseAddrPort(a))
		out = append(out, k[:])
	}
	return out
}

func knownHosts(short string) [][]byte {
	name, _, _ := strings.Cut(short, ":")
	return keys("example.com:443", "www."+strings.TrimLeft(name, ".")+":443", name+":443")
}

func programs(short, workspace string) [][]byte {
	if short == "/" {
		return keys("/usr/bin/program", path.Join(workspace, "program"), "/tmp/program")
	}
	return keys(path.Join(short, "program"), "/usr/bin/"+path.Base(short), short)
}

func files(short, workspace string) [][]byte {
	if short == "/" {
		return keys(path.Join(workspace, "file"), "/home/user/file")
	}
	list := []string{path.Join(short, "file"), short}
	if base := path.Base(short); strings.HasPrefix(base, ".") { // of **/*.py
		list = slices.Insert(list, 0, path.Join(path.Dir(short), "main"+base))
	}
	if !strings.HasPrefix(short, workspace+"/") {
		var there []string
		for _, name := range list {
			there = append(there, path.Join(workspace, name))
		}
		list = append(there, list...)
	}
	return keys(list...)
}

func keys(list ...string) (out [][]byte) {
	for _, text := range list {
		out = append(out, []byte(text))
	}
	return out
}
