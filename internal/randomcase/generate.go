// SPDX-License-Identifier: Apache-2.0

// Package randomcase makes random policies with traces, for the tests that compare what
// the model, the compiled image and the kernel make of them.
package randomcase

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Generator makes policies and traces in a world so small that they meet: a few
// processes, files, programs and addresses. All its choices come from one source.
type Generator struct {
	*rand.Rand
	// Acted leaves out what nobody can act out in a container: names of hosts, the clock,
	// setup, who is held.
	Acted bool

	labels   []string // declared, of sources
	integral string   // declared by an endorse, or ""
	trees    bool     // directories move
	asks     bool     // a rule or default does
}

// Case is a policy and a trace in parts that can be left out one by one.
type Case struct {
	Protects     []string
	Declarations []string // each a source, transform, default, or a rule with one clause
	Steps        [][]string
}

// Document is the policy as a file.
func (s *Case) Document() []byte {
	var b strings.Builder
	b.WriteString("version: 1\nworkspace: /w\n")
	if len(s.Protects) > 0 {
		fmt.Fprintf(&b, "protect: [%s]\n", strings.Join(s.Protects, ", "))
	}
	b.WriteString("policy: |\n")
	for i, d := range s.Declarations {
		fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(d, "RULE", fmt.Sprintf("r%d", i)))
	}
	return []byte(b.String())
}

// Widen adds rules about so many directories, names of files and names of programs that
// the last names of paths have an entry of their own in the policy's automaton. No step
// has to do with them.
func (s *Case) Widen() {
	for i := range 30 {
		s.Declarations = append(s.Declarations,
			fmt.Sprintf(`rule RULE: block write "/wide%d/lib%d/**" block read "**/.wide%d" block exec "wide%d"`, i, i, i, i))
	}
}

func (g *Generator) of(choices ...string) string { return choices[g.IntN(len(choices))] }

// one tells in one of n times that it is so.
func (g *Generator) one(n int) bool { return g.IntN(n) == 0 }

func (g *Generator) filePattern() string {
	return g.of(`"/w/**"`, `"/w/*"`, `"/w/a"`, `"/w/d/**"`, `"/w/d/?"`, `"/s/*"`, `"/s/b"`, `"/s/**"`, `"**/b"`, `"/**/d/*"`, `"/w/[ab]"`,
		`"/{w,s}/a"`, `"/{w/d,s}/**"`, `"d/*"`, `"e"`, `any`, `"/**"`, `"/w/d"`, `"/*/d/**"`, `"/w/[!a-c]"`, `"/s/d/{a,b*}"`, `"/w/**/b"`)
}

func (g *Generator) execPattern() string {
	return g.of(`"t1"`, `"t2"`, `"t*"`, `"/bin/t1"`, `"/bin/*"`, `"/w/**"`, `any`, `"{t1,t3}"`, `"**/t[12]"`, `"l"`, `"/bin/**"`)
}

func (g *Generator) peerPattern() string {
	p := g.of(`"@private"`, `"@public"`, `"@loopback"`, `"10.0.0.0/8"`, `"10.0.0.1"`, `"10.0.0.1:80"`, `"10."`, `any`, `"*"`, `"unix:/run/s"`,
		`"unix:@x"`, `"unix:/run/*"`, `"[fd00::/8]"`, `"*.ex.org"`, `"*:443"`, `"a.ex.org:443"`, `"10.0.0.1:80-90"`)
	if g.Acted && strings.Contains(p, "ex.org") {
		return `"10.0.0.1"`
	}
	return p
}

func (g *Generator) tokens() string {
	out := ""
	for g.one(3) && len(out) < 20 {
		out += " " + g.of(`"push"`, `"p*"`, `"-f"`, `"-*"`, `"[a-p]*"`, `"?"`, `"x y"`)
	}
	return out
}

// names are the labels that an expression may have.
func (g *Generator) names() []string {
	if g.integral == "" {
		return g.labels
	}
	return append(slices.Clone(g.labels), g.integral)
}

func (g *Generator) expression() string {
	names := append(g.names(), "true")
	atom := func() string {
		if a := g.of(names...); !g.one(3) {
			return a
		} else {
			return "not " + a
		}
	}
	switch g.IntN(4) {
	case 0:
		return atom() + " and " + atom()
	case 1:
		return atom() + " or " + atom()
	case 2:
		return "(" + atom() + " or " + atom() + ") and " + atom()
	}
	return atom()
}

func (g *Generator) event() string {
	switch op := g.of("exec", "exec", "write", "write", "read", "open", "unlink"); op {
	case "exec":
		return "exec " + g.execPattern() + g.tokens()
	default:
		return op + " " + g.filePattern()
	}
}

// everything is what every object of an operation matches, where "any" cannot stand.
var everything = map[string]string{
	"exec": `"**"`, "open": `"**"`, "read": `"**"`, "write": `"**"`, "append": `"**"`, "unlink": `"**"`,
	"connect": `"*"`, "send": `"*"`, "recv": `"*"`, "bind": `"*"`,
}

func (g *Generator) condition(pattern func() string, op string) string {
	switch g.IntN(5) {
	case 0, 1:
		p := pattern()
		if p == "any" {
			p = everything[op]
		}
		return "target " + g.of("", "", "not ") + p
	case 2:
		if op == "connect" || op == "send" || op == "recv" || op == "bind" {
			return `lineage-includes exec "t2"`
		}
		return "target " + g.of("", "not ") + "modified"
	case 3:
		return "lineage-includes exec " + g.of(`"t1"`, `"/bin/t2"`, `"/w/*"`)
	}
	out := "after " + g.event()
	if strings.HasPrefix(out, "after exec") && g.one(2) {
		out += " exits " + g.of("0", "0", "1")
	}
	if g.one(2) {
		out += " since " + g.event()
		if g.one(3) {
			out += " or " + g.event()
		}
	}
	return out
}

func (g *Generator) clause() string {
	effect := g.of("block", "block", "block", "notify", "kill", "ask", "allow", "ask hold 5m")
	if g.Acted && effect == "ask hold 5m" {
		effect = "ask"
	}
	g.asks = g.asks || strings.HasPrefix(effect, "ask")
	op := g.of("exec", "exec", "open", "read", "write", "write", "append", "unlink", "connect", "connect", "send", "recv", "bind")
	pattern, tokens := g.filePattern, ""
	switch op {
	case "exec":
		pattern, tokens = g.execPattern, g.tokens()
	case "connect", "send", "recv", "bind":
		pattern = g.peerPattern
	}
	object := pattern()
	if object == "any" {
		tokens = ""
	}
	out := fmt.Sprintf("rule RULE: %s %s %s%s", effect, op, object, tokens)
	if g.one(2) {
		out += " if " + g.expression()
	}
	if g.one(2) {
		out += " unless " + g.condition(pattern, op)
		if g.one(3) {
			out += " or " + g.condition(pattern, op)
		}
	}
	return out
}

func (g *Generator) policy(s *Case) {
	g.trees, g.asks = g.one(3), false
	g.labels = []string{"A", "B"}[:1+g.IntN(2)]
	if g.one(3) {
		g.integral = "R"
	}
	for _, l := range g.labels {
		for range 1 + g.IntN(2) {
			kind, pattern := "file", g.filePattern
			switch g.IntN(4) {
			case 0:
				kind, pattern = "exec", g.execPattern
			case 1:
				kind, pattern = "endpoint", g.peerPattern
			}
			s.Declarations = append(s.Declarations, fmt.Sprintf("source %s = %s %s", l, kind, pattern()))
		}
		if g.one(3) {
			s.Declarations = append(s.Declarations, fmt.Sprintf("declassify %s by exec %s", l, g.of(`"t2"`, `"/bin/t3"`)))
		}
	}
	if g.integral != "" {
		s.Declarations = append(s.Declarations, "endorse R by exec "+g.of(`"t2"`, `"/bin/t3"`, `"t*"`))
	}
	for _, op := range []string{"exec", "write", "read", "connect", "unlink", "send"} {
		if g.one(8) {
			effect := g.of("block", "ask", "kill", "notify")
			g.asks = g.asks || effect == "ask"
			s.Declarations = append(s.Declarations, fmt.Sprintf("default %s %s", effect, op))
		}
	}
	for range 1 + g.IntN(7) {
		s.Declarations = append(s.Declarations, g.clause())
	}
	for g.one(4) {
		entry := g.of(`"/w/a"`, `"d/**"`, `"**/b"`, `"/s/*"`)
		if g.one(2) {
			entry = fmt.Sprintf(`{path: %s, if: "%s"}`, entry, g.of(g.names()...))
		}
		s.Protects = append(s.Protects, entry)
	}
}

func (g *Generator) process() string { return g.of("a", "a", "b", "b", "c", "d") }

func (g *Generator) path() string {
	return g.of("/w/a", "/w/b", "/w/c", "/w/d/a", "/w/d/b", "/s/a", "/s/b", "/s/d/a", "/w/e", "/w/l", "/w/l/a", "/w/d", "/s/d", "/bin/t1")
}

func (g *Generator) program() string {
	return g.of("/bin/t1", "/bin/t1", "/bin/t2", "/bin/t2", "/bin/t3", "/w/t1", "/w/t1", "/w/a", "/w/l", "/bin/x", "/w/d/t2")
}

func (g *Generator) peer() string {
	return g.of("a.ex.org:443", "b.ex.org:80", "ex.org:443", "10.0.0.1:80", "10.0.0.1:443", "10.9.0.1:80", "8.8.8.8:53/udp", "[fd00::1]:443", "127.0.0.1:5000", "unix:/run/s", "unix:@x",
		"[::1]:5000", "[2606:4700::1]:443")
}

func (g *Generator) args() (out []string) {
	for range g.IntN(4) {
		out = append(out, g.of("push", "pull", "-f", "x y", "origin", "-v", "p"))
	}
	return out
}

// step is one that may make no sense.
func (g *Generator) step() []string {
	for {
		if step := g.anyStep(); !g.Acted || canBeActed(step) {
			return step
		}
	}
}

func canBeActed(step []string) bool {
	switch step[0] {
	case "time":
		return false
	case "human", "scope":
		return true
	}
	if step[1] == "bind" && step[2] == "unix:/run/s" { // which makes a file as well
		return false
	}
	return step[1] != "enter" && step[1] != "setuid" && !strings.Contains(strings.Join(step[2:], " "), "ex.org:")
}

func (g *Generator) anyStep() []string {
	p := g.process()
	switch g.IntN(24) {
	case 0, 1, 2:
		return append([]string{p, g.of("exec", "exec", "exec", "exec", "execfails"), g.program()}, g.args()...)
	case 3:
		if g.one(2) {
			return []string{p, "mapexec", g.program()}
		}
		return append([]string{p, "execscript", g.program(), g.program()}, g.args()...)
	case 4, 5, 6, 7, 8:
		return []string{p, g.of("read", "read", "write", "write", "open", "append", "mmapshared", "chmod", "chown"), g.path()}
	case 9:
		return []string{p, "truncate", g.path(), "0"}
	case 10, 11:
		if g.trees {
			return []string{p, g.of("rename", "rename", "exchange"), g.path(), g.path()}
		}
		return []string{p, "link", g.path(), g.path()}
	case 12:
		return []string{p, g.of("unlink", "unlink", "mkdir", "rmdir"), g.path()}
	case 13:
		return []string{p, "symlink", g.of("/s", "/s/a", "d", "../s/b", "/bin/t1", "/bin/t2"), g.of("/w/l", "/w/l", "/w/t1", "/w/e")}
	case 14, 15, 16:
		return []string{p, g.of("connect", "connect", "send", "recv", "bind"), g.peer()}
	case 17:
		return []string{p, "fork", g.of("b", "c", "d", "e")}
	case 18:
		if g.one(3) {
			return []string{p, "killed", "9"}
		}
		return []string{p, "exit", g.of("0", "0", "1")}
	case 19:
		return []string{p, g.of("pipe", "pipewrite", "piperead", "shm"), "p"}
	case 20:
		if g.one(3) {
			return []string{p, "fdopen", "f", g.of("r", "w", "a", "rw"), g.path()}
		}
		return g.through(p)
	case 21:
		return []string{p, g.of("ptrace", "memread", "memwrite"), g.process()}
	case 22:
		switch g.IntN(6) {
		case 0:
			return []string{g.of("b", "c", "d", "e"), "enter"}
		case 1:
			return []string{p, "setenv", g.of("LD_PRELOAD", "HOME"), "x"}
		case 2:
			return []string{p, g.of("chdir", "setuid"), "/w/d"}
		case 3:
			return []string{"scope", g.of("restart", "restart", "lost")}
		}
		return []string{"time", g.of("1m", "4m", "5m", "11m")}
	}
	switch g.IntN(6) {
	case 0:
		return []string{"human", "approve", "once"}
	case 1:
		return []string{"human", "approve"}
	case 2:
		return []string{"human", "approve", g.of("scope", "1h")}
	case 3:
		return []string{"human", "deny", g.of("scope", "10m")}
	}
	return []string{"human", "approve", "once"}
}

// through is what a process does with a descriptor.
func (g *Generator) through(p string) []string {
	if g.one(4) {
		return []string{p, "fdpass", "f", g.process()}
	}
	return []string{p, g.of("fdread", "fdwrite"), "f"}
}

// Case makes the next one. Not all policies are valid, and not all steps make sense.
func (g *Generator) Case() *Case {
	s := &Case{}
	g.policy(s)
	for g.one(2) { // links that many paths and programs go through
		s.Steps = append(s.Steps, []string{"z", "symlink", g.of("/bin/t1", "/bin/t2", "/bin/t3", "/s", "/w/l"), g.of("/w/t1", "/w/l", "/w/d/t2")})
	}
	for range 5 + g.IntN(40) {
		step := g.step()
		s.Steps = append(s.Steps, step)
		for step[1] == "fdopen" && !g.one(3) { // and used, by whoever has it then
			follows := g.through(step[0])
			s.Steps = append(s.Steps, follows)
			if follows[1] == "fdpass" && g.one(2) {
				s.Steps = append(s.Steps, g.through(follows[3]))
			}
		}
		if step[1] == "connect" && g.one(2) {
			s.Steps = append(s.Steps, []string{step[0], g.of("send", "recv"), step[2]})
		}
		if step[1] == "bind" && g.one(2) {
			other := g.process()
			s.Steps = append(s.Steps, []string{other, "connect", step[2]}, []string{other, "send", step[2]}, []string{step[0], "recv", step[2]})
		}
		if g.one(10) || g.asks && g.one(4) { // what asked is granted, and done again
			s.Steps = append(s.Steps, []string{"human", g.of("approve", "approve", "deny"), "scope"}, step)
		} else if g.asks && g.one(4) {
			s.Steps = append(s.Steps, []string{"human", "approve", "once"}, step)
		}
	}
	return s
}
