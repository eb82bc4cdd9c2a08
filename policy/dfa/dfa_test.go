// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// rowOf runs a key through the automaton.
func rowOf(img *Image, start Start, key []byte) *Row {
	s := img.Start[start]
	for _, b := range key {
		s = img.Next[int(s)*256+int(b)]
	}
	return &img.Rows[img.RowOf[s]]
}

// program has one unconditional clause per pattern, each of its own label so
// that none stands in for another.
func program(op ir.Op, patterns ...ir.Pattern) *ir.Program {
	p := &ir.Program{Workspace: "/", Rules: []ir.Rule{{Name: "r"}}, Labels: make([]ir.Label, 64)}
	for i, pat := range patterns {
		p.Clauses = append(p.Clauses, ir.Clause{Effect: ir.Block, Op: op, Pattern: pat, If: []ir.Term{{All: 1 << (i % 64)}}})
	}
	return p
}

func compile(t testing.TB, p *ir.Program) *Image {
	t.Helper()
	img, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	checkImage(t, img)
	return img
}

// checkImage checks what image.go promises of every image.
func checkImage(t testing.TB, img *Image) {
	t.Helper()
	n := len(img.RowOf)
	if len(img.Next) != n*256 {
		t.Fatalf("%d transitions of %d states", len(img.Next), n)
	}
	for b := range 256 {
		if img.Next[b] != Dead {
			t.Fatalf("Dead leads to %d by %d", img.Next[b], b)
		}
	}
	if img.RowOf[Dead] != NoRow {
		t.Fatalf("Dead has row %d", img.RowOf[Dead])
	}
	if len(img.Rows) < 2 || encodeRow(&img.Rows[NoRow]) != encodeRow(&Row{}) {
		t.Fatal("row 0 matches something")
	}
	// All states that the entries other than Address reach stay on byte 0.
	seen := make([]bool, n)
	starts := append([]uint16{img.Start[Path], img.Start[Name], img.Start[Token], img.Start[Unix], img.Host}, img.More...)
	for _, start := range starts {
		work := []uint16{start}
		for len(work) > 0 {
			s := work[len(work)-1]
			work = work[:len(work)-1]
			if seen[s] {
				continue
			}
			seen[s] = true
			if img.Next[int(s)*256] != s {
				t.Fatalf("state %d leaves by byte 0", s)
			}
			for b := range 256 {
				work = append(work, img.Next[int(s)*256+b])
			}
		}
	}
}

func TestMinimal(t *testing.T) {
	img := compile(t, program(ir.Write,
		ir.Pattern{Text: "/w/**/*.go"}, ir.Pattern{Text: "/**/.env"}, ir.Pattern{Text: "/x/[ab]?.{txt,md}"}, ir.Pattern{Text: "/p/**"}))
	n := len(img.RowOf)
	class := make([]int, n)
	for s := range class {
		class[s] = int(img.RowOf[s])
	}
	for count := 0; ; {
		number := map[string]int{}
		next := make([]int, n)
		for s := range n {
			key := fmt.Sprint(class[s])
			for b := range 256 {
				key += fmt.Sprint(" ", class[img.Next[s*256+b]])
			}
			if _, ok := number[key]; !ok {
				number[key] = len(number)
			}
			next[s] = number[key]
		}
		class = next
		if len(number) == count {
			break
		}
		count = len(number)
	}
	if count := slices.Max(class) + 1; count != n {
		t.Errorf("%d states, of which %d differ", n, count)
	}
}

var alphabet = []string{"a", "b", "/", "/", "*", "**", "?", "[ab]", "[!a]", "[^é]", "[é-ü]", "{a,b}", "{a/b,*}", "{,b}", "é", ".", `\*`, "/**", "**/", "/**/"}

func randomGlob(r *rand.Rand, n int) string {
	var b strings.Builder
	for range 1 + r.IntN(n) {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

var keyParts = []string{"a", "b", "c", "/", "/", "é", "ü", ".", "*", "\x80", "\xc3", "\xff", "€", "ab", "/a", "/b"}

func randomKey(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n) {
		b.WriteString(keyParts[r.IntN(len(keyParts))])
	}
	return b.String()
}

// TestAgainstNaive compares the automaton of several patterns with a matcher
// that tries everything.
func TestAgainstNaive(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	matched := 0
	for range 400 {
		for _, mode := range []pattern.Mode{pattern.Path, pattern.Name, pattern.Token} {
			var globs []string
			for range 1 + r.IntN(5) {
				globs = append(globs, canonicalGlob(randomGlob(r, 6), mode))
			}
			globs = slices.DeleteFunc(globs, func(g string) bool { return g == "" })
			if len(globs) == 0 {
				continue
			}
			compare := compareWith(t, mode, globs)
			for range 60 {
				key := randomKey(r, 8)
				if mode == pattern.Path {
					key = "/" + key
				}
				if mode == pattern.Name {
					key = strings.ReplaceAll(key, "/", "")
				}
				matched += compare(key)
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matches: the keys try too little", matched)
	}
}

// canonicalGlob makes a glob valid for a mode, or "".
func canonicalGlob(glob string, mode pattern.Mode) string {
	var err error
	switch mode {
	case pattern.Path:
		glob, _, err = pattern.File(glob, "/")
	case pattern.Name:
		if strings.Contains(glob, "/") {
			return ""
		}
		glob, _, err = pattern.Exec(glob, "/")
	case pattern.Token:
		err = pattern.Arg(glob)
	}
	if err != nil {
		return ""
	}
	return glob
}

// compareWith returns a function that compares for one key, and tells how many
// of the globs match.
func compareWith(t *testing.T, mode pattern.Mode, globs []string) func(key string) int {
	p := program(ir.Write)
	switch mode {
	case pattern.Path:
		for _, g := range globs {
			p.Clauses = append(p.Clauses, program(ir.Write, ir.Pattern{Text: g}).Clauses...)
		}
	case pattern.Name:
		for _, g := range globs {
			p.Clauses = append(p.Clauses, program(ir.Exec, ir.Pattern{Kind: ir.ExecProgram, Text: g}).Clauses...)
		}
	case pattern.Token:
		for _, g := range globs {
			c := program(ir.Exec, ir.Pattern{Kind: ir.ExecProgram, Any: true}).Clauses[0]
			c.Args = []string{g}
			p.Clauses = append(p.Clauses, c)
		}
	}
	img := compile(t, p)
	return func(key string) int {
		count := 0
		for i, g := range globs {
			var got bool
			want := naive(g, key, mode)
			switch mode {
			case pattern.Path:
				got = slices.Contains(rowOf(img, Path, []byte(key)).Clauses[ir.Write], uint16(i))
			case pattern.Name:
				got = slices.Contains(rowOf(img, Name, []byte(key)).Clauses[ir.Exec], uint16(i))
				if slices.Contains(rowOf(img, Path, []byte("/x/y/"+key)).Clauses[ir.Exec], uint16(i)) != got {
					t.Fatalf("exec pattern %q: the name %q and a path that ends in it differ", g, key)
				}
			case pattern.Token:
				at := img.Clauses[i].Arg
				tokens := rowOf(img, Token, []byte(key)).Tokens
				got = tokens != nil && tokens[at/64]>>(at%64)&1 == 1
			}
			if got != want {
				t.Fatalf("mode %d, glob %q, key %q: the automaton says %t, the naive matcher %t", mode, g, key, got, want)
			}
			if got {
				count++
			}
		}
		return count
	}
}

func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"/a/**", "/a"}, {"**/x", "/x"}, {"/a/**/b", "/a/b"}, {"/**/**/x", "/q/x"}, {"/a**b", "/a/b"}, {"*.{c,h}", "/x.h"},
		{"[!a-c]é?", "/zéé"}, {`\*`, "/*"}, {"[é-ü]", "/ö"}, {"[^é]", "/e"}, {"{a,{b,c}d}", "/cd"}, {"[]a]", "/]"}, {"{}", "/{}"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, glob, key string) {
		if len(glob) > 40 || len(key) > 60 || strings.IndexByte(glob, 0) >= 0 || strings.IndexByte(key, 0) >= 0 {
			return
		}
		for _, mode := range []pattern.Mode{pattern.Path, pattern.Name, pattern.Token} {
			k := key
			switch mode {
			case pattern.Path:
				k = "/" + key
			case pattern.Name:
				k = strings.ReplaceAll(key, "/", "")
			}
			if g := canonicalGlob(glob, mode); g != "" {
				compareWith(t, mode, []string{g})(k)
			}
		}
	})
}

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
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
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

// TestNameOpensNothing: from the invoked name, rows deny and label, and neither
// arm gates nor set lineage nor excuse.
func TestNameOpensNothing(t *testing.T) {
	pytest := ir.Pattern{Kind: ir.ExecProgram, Text: "pytest"}
	git := ir.Pattern{Kind: ir.ExecProgram, Text: "git"}
	p := &ir.Program{
		Labels:   []ir.Label{{Name: "A"}},
		Rules:    []ir.Rule{{Name: "r"}},
		Sources:  []ir.Source{{Pattern: pytest}},
		Lineages: []ir.Pattern{pytest},
		Gates:    []ir.Gate{{After: ir.Event{Op: ir.Exec, Pattern: pytest}, Exit: -1, Since: []ir.Event{{Op: ir.Exec, Pattern: git}}}},
		Clauses: []ir.Clause{
			{Effect: ir.Block, Op: ir.Exec, Pattern: git, Unless: ir.Unless{Gates: []int{0}, Lineages: []int{0}}},
			{Effect: ir.Kill, Op: ir.Exec, Pattern: ir.Pattern{Kind: ir.ExecProgram, Any: true}, Unless: ir.Unless{Targets: []ir.Target{{Pattern: pytest}, {Not: true, Pattern: git}}}},
		},
	}
	img := compile(t, p)
	name, path := rowOf(img, Name, []byte("pytest")), rowOf(img, Path, []byte("/usr/bin/pytest"))
	if name.ExecSources != 1 || path.ExecSources != 1 {
		t.Error("a source does not see the program")
	}
	if name.Lineage != 0 || len(name.Gates[ir.Exec]) != 0 || name.Targets != 0 {
		t.Errorf("the name opens something: %+v", name)
	}
	if path.Lineage != 1 || len(path.Gates[ir.Exec]) != 1 || !path.Gates[ir.Exec][0].Arm || path.Targets != 1 {
		t.Errorf("the path opens nothing: %+v", path)
	}
	name, path = rowOf(img, Name, []byte("git")), rowOf(img, Path, []byte("/usr/bin/git"))
	if len(name.Gates[ir.Exec]) != 1 || name.Gates[ir.Exec][0].Arm {
		t.Errorf("a since event does not see the name: %+v", name)
	}
	if path.Targets != 0 {
		t.Error("target not git holds for git")
	}
	if got := path.Clauses[ir.Exec]; !slices.Equal(got, []uint16{1, 0}) {
		t.Errorf("candidates of git: %v", got)
	}
	if other := rowOf(img, Path, []byte("/bin/sh")); other.Targets != 1 {
		t.Error("target not git does not hold for sh")
	}
	unknown := img.Rows[UnknownRow]
	if unknown.Targets != 0 || unknown.Lineage != 0 || len(unknown.Gates[ir.Exec]) != 1 || unknown.Gates[ir.Exec][0].Arm || unknown.ExecSources != 1 {
		t.Errorf("the unknown row: %+v", unknown)
	}
}

// TestDominated: what stands behind a clause that always matches is dropped,
// but a clause on exec that names its program stays behind one on any.
func TestDominated(t *testing.T) {
	for _, op := range []ir.Op{ir.Write, ir.Exec} {
		kind := KindOf(op)
		p := program(op, ir.Pattern{Kind: kind, Any: true}, ir.Pattern{Kind: kind, Text: "/**/x"}, ir.Pattern{Kind: kind, Text: "/a/*"})
		for i := range p.Clauses {
			p.Clauses[i].If = nil
		}
		p.Clauses[2].Effect = ir.Notify
		img := compile(t, p)
		want := []uint16{0}
		if op == ir.Exec {
			want = []uint16{0, 1}
		}
		if got := rowOf(img, Path, []byte("/a/x")).Clauses[op]; !slices.Equal(got, want) {
			t.Errorf("operation %d: candidates %v, want %v", op, got, want)
		}
	}
}

func TestTargetsOfFiles(t *testing.T) {
	p := program(ir.Write, ir.Pattern{Text: "/**"}, ir.Pattern{Text: "/**"})
	p.Clauses[0].Unless.Targets = []ir.Target{{Pattern: ir.Pattern{Text: "/job/**"}}, {Pattern: ir.Pattern{Text: "/tmp/**"}}}
	p.Clauses[1].Unless.Targets = []ir.Target{{Not: true, Pattern: ir.Pattern{Text: "/tmp/**"}}}
	img := compile(t, p)
	for key, want := range map[string][]uint16{"/etc/x": {0}, "/job/x": nil, "/job": nil, "/jobs/x": {0}, "/tmp/x": {1}} {
		if got := rowOf(img, Path, []byte(key)).Clauses[ir.Write]; !slices.Equal(got, want) {
			t.Errorf("%s: candidates %v, want %v", key, got, want)
		}
	}
	if got := img.Rows[UnknownRow].Clauses[ir.Write]; !slices.Equal(got, []uint16{0, 1}) {
		t.Errorf("a path that cannot be read: candidates %v", got)
	}
}

// TestArgs runs the recurrence of the design over argument lists.
func TestArgs(t *testing.T) {
	sequences := [][]string{{"push"}, {"push", "--force*"}, {"push", "origin"}, {"*", "push"}, {"push", "push"}}
	p := program(ir.Exec)
	for i, seq := range sequences {
		p.Clauses = append(p.Clauses, ir.Clause{
			Effect: ir.Block, Op: ir.Exec, Pattern: ir.Pattern{Kind: ir.ExecProgram, Text: "git"}, Args: seq,
			If: []ir.Term{{All: 1 << i}},
		})
	}
	img := compile(t, p)
	if img.Clauses[0].Arg != 0 || len(img.ArgStart) != 1 {
		t.Errorf("a beginning does not share its positions: %+v", img.Clauses)
	}
	r := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		var argv []string
		for range r.IntN(6) {
			argv = append(argv, []string{"push", "origin", "--force", "--force-with-lease", "-u"}[r.IntN(5)])
		}
		reached := uint64(0)
		all := uint64(0)
		for _, a := range argv {
			mask := uint64(0)
			if tokens := rowOf(img, Token, []byte(a)).Tokens; tokens != nil {
				mask = tokens[0]
			}
			reached = reached | ((reached<<1)|img.ArgStart[0])&mask
			all |= reached
		}
		for i, seq := range sequences {
			want := subsequence(seq, argv)
			if got := all>>img.Clauses[i].Arg&1 == 1; got != want {
				t.Fatalf("%v in %v: %t, want %t", seq, argv, got, want)
			}
		}
	}
}

func subsequence(seq, argv []string) bool {
	for _, a := range argv {
		if len(seq) > 0 && naive(seq[0], a, pattern.Token) {
			seq = seq[1:]
		}
	}
	return len(seq) == 0
}

func TestEqualPrograms(t *testing.T) {
	make := func() []byte {
		p := program(ir.Write, ir.Pattern{Text: "/**/*.go"}, ir.Pattern{Text: "/a/{b,c}/**"}, ir.Pattern{Any: true})
		p.Clauses = append(p.Clauses, program(ir.Connect, endpoint("@public"), endpoint("[fd00::/8]:80-90")).Clauses...)
		text, err := json.Marshal(compile(t, p))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if first, second := string(make()), string(make()); first != second {
		t.Error("equal programs give different images")
	}
}
