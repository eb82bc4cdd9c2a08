// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"math/bits"
	"path"
	"strconv"
	"strings"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// fewAlternatives is how many alternatives of a pattern are named one by one.
const fewAlternatives = 32

// phrase is an object in words: of several that differ in the name alone the names
// can be listed.
type phrase struct{ before, name, after string }

func (p phrase) String() string { return p.before + p.name + p.after }

// object names what a pattern matches, as the object of a sentence.
func object(p ir.Pattern) string { return series(objects(p, "or"), "or") }

// objects are the things that a pattern matches: one for each alternative, but that
// those which differ in the name alone are one, their names joined by a word.
func objects(p ir.Pattern, join string) []string {
	one, all := fileObject, "any file"
	switch p.Kind {
	case ir.ExecProgram:
		one, all = programObject, "any program"
	case ir.Endpoint:
		one, all = func(text string) phrase { return phrase{before: endpointObject(text)} }, "any address or Unix socket"
	}
	if p.Any {
		return []string{all}
	}
	var kinds []phrase
	names := map[phrase][]string{}
	for _, a := range alternatives(p.Text) {
		x := one(a)
		kind := phrase{before: x.before, after: x.after}
		if _, known := names[kind]; !known {
			kinds = append(kinds, kind)
		}
		names[kind] = append(names[kind], x.name)
	}
	var out []string
	for _, kind := range kinds {
		kind.name = series(names[kind], join)
		out = append(out, kind.String())
	}
	return out
}

// alternatives are those of a glob, the glob alone if they are many.
func alternatives(glob string) []string {
	if list, err := pattern.Alternatives(glob); err == nil && len(list) <= fewAlternatives {
		return list
	}
	return []string{glob}
}

// series is a list in a sentence.
func series(list []string, last string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	n := len(list) - 1
	return strings.Join(list[:n], ", ") + " " + last + " " + list[n]
}

// literal returns the text of a glob that has no wildcards.
func literal(glob string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; c {
		case '*', '?', '[', '{':
			return "", false
		case '\\':
			if i++; i < len(glob) {
				b.WriteByte(glob[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

func fileObject(glob string) phrase { return pathObject(glob, "file") }

// pathObject puts the globs into words that people write most, and names the others
// as they are.
func pathObject(glob, noun string) phrase {
	if name, ok := literal(glob); ok {
		return phrase{before: name}
	}
	dir, base := path.Split(glob)
	dir = strings.TrimSuffix(dir, "/")
	if base == "**" {
		switch top, ok := literal(dir); {
		case ok && top != "" && noun == "file":
			return phrase{name: top, after: " and whatever is in it"}
		case ok:
			return phrase{"any " + noun + " in ", or(top, "/"), " or below it"}
		}
	}
	deep := strings.HasSuffix(dir, "/**")
	top, plain := literal(strings.TrimSuffix(dir, "/**"))
	if !plain || strings.Contains(base, "**") {
		return phrase{before: "any " + noun + " whose path matches ", name: glob}
	}
	if name, ok := literal(base); ok {
		base = name
	}
	where := " directly in " + or(top, "/")
	switch {
	case deep && top == "":
		where = " in any directory"
	case deep:
		where = " in " + top + " or below it"
	}
	if base == "*" {
		return phrase{before: "any " + noun + where}
	}
	return phrase{"any " + noun + " named ", base, where}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func programObject(glob string) phrase {
	if strings.Contains(glob, "/") {
		return pathObject(glob, "program")
	}
	if name, ok := literal(glob); ok {
		return phrase{before: name}
	}
	return phrase{before: "any program named ", name: glob}
}

func endpointObject(text string) string {
	if socket, ok := strings.CutPrefix(text, "unix:"); ok {
		return socketObject(socket)
	}
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		host, port = text[:i], text[i+1:]
	}
	var b strings.Builder
	switch {
	case host == "*":
		b.WriteString("any address")
	case host == "@loopback":
		b.WriteString("the container itself (@loopback)")
	case host == "@private":
		b.WriteString("any private address (@private)")
	case host == "@public":
		b.WriteString("any public address (@public)")
	case host == "@linklocal":
		b.WriteString("any link-local address (@linklocal)")
	case host == "@metadata":
		b.WriteString("a cloud's metadata service (@metadata)")
	case strings.Contains(host, "/"):
		b.WriteString("any address in " + strings.Trim(host, "[]"))
	case strings.ContainsAny(host, "*?{") || strings.Contains(host, "[") && host[0] != '[':
		b.WriteString("any host named " + host)
	default:
		b.WriteString(strings.Trim(host, "[]"))
	}
	if port != "" {
		noun := " on port "
		if strings.Contains(port, "-") {
			noun = " on ports "
		}
		b.WriteString(noun + port)
	}
	return b.String()
}

func socketObject(socket string) string {
	if socket == "*" {
		return "any Unix socket"
	}
	if name, ok := strings.CutPrefix(socket, "@"); ok {
		return "the abstract Unix socket " + name
	}
	if name, ok := literal(socket); ok {
		return "the Unix socket " + name
	}
	return "any Unix socket whose path matches " + socket
}

// arguments says which arguments have to be there.
func arguments(args []string) string {
	var words []string
	for _, a := range args {
		list, kind := alternatives(a), "the argument "
		for i, glob := range list {
			text, plain := literal(glob)
			if !plain {
				kind, text = "an argument that matches ", glob
			}
			list[i] = strconv.Quote(text)
		}
		words = append(words, kind+series(list, "or"))
	}
	if len(words) == 0 {
		return ""
	}
	return " with " + strings.Join(words, " and later ")
}

// doing is an operation on an object as the subject of a sentence.
func doing(op ir.Op, object string) string {
	switch op {
	case ir.Exec:
		return "running " + object
	case ir.Open:
		return "opening " + object
	case ir.Read:
		return "reading " + object
	case ir.Write:
		return "creating, changing, moving or removing " + object
	case ir.Append:
		return "appending to " + object
	case ir.Unlink:
		return "removing or moving away " + object
	case ir.Connect:
		return "connecting or sending to " + object
	case ir.Bind:
		return "listening on " + object
	case ir.Send:
		return "sending to " + object
	case ir.Recv:
		return "receiving from " + object
	}
	return op.String() + " of " + object
}

// outcome is what an effect makes of an operation.
func outcome(c ir.Effect, hold string) string {
	switch c {
	case ir.Allow:
		return "is allowed, where a default would refuse it"
	case ir.Notify:
		return "is allowed, and reported"
	case ir.Ask:
		if hold != "" {
			return "stops the process for up to " + hold + ", until a person approves or denies it; without an answer it is refused (EPERM)"
		}
		return "is refused (EPERM) and a person is asked; once they approve, the same operation succeeds"
	case ir.Kill:
		return "is refused before it happens, and the process is killed"
	}
	return "is refused (EPERM) before it happens"
}

// names spells labels.
func names(p *ir.Program, set uint64) []string {
	var out []string
	for ; set != 0; set &= set - 1 {
		if i := bits.TrailingZeros64(set); i < len(p.Labels) {
			out = append(out, p.Labels[i].Name)
		}
	}
	return out
}

// who is the subject that an `if` asks for, "" without one.
func who(p *ir.Program, terms []ir.Term) string {
	var out []string
	for _, t := range terms {
		var parts []string
		if t.All != 0 {
			parts = append(parts, "carries "+series(names(p, t.All), "and"))
		}
		switch not := names(p, t.None); {
		case len(not) == 0:
		case len(not) == 1 && t.All != 0:
			parts = append(parts, "not "+not[0])
		case len(not) == 1:
			parts = append(parts, "does not carry "+not[0])
		case t.All != 0:
			parts = append(parts, "none of "+series(not, "and"))
		default:
			parts = append(parts, "carries none of "+series(not, "and"))
		}
		if len(parts) == 0 {
			return ""
		}
		out = append(out, strings.Join(parts, " and "))
	}
	return strings.Join(out, ", or ")
}

// participle is what has been done to the object of an event.
func participle(op ir.Op) string {
	switch op {
	case ir.Exec:
		return "run"
	case ir.Open:
		return "opened"
	case ir.Read:
		return "read"
	case ir.Write:
		return "changed"
	case ir.Unlink:
		return "removed or moved away"
	}
	return "the object of " + op.String()
}

// happened is an event of a gate, in the perfect tense.
func happened(e ir.Event) string {
	return some(e.Pattern) + arguments(e.Args) + " has been " + participle(e.Op)
}

// some is the object of which one is enough.
func some(p ir.Pattern) string {
	list := objects(p, "or")
	for i, text := range list {
		rest, ok := strings.CutPrefix(text, "any ")
		switch {
		case ok && strings.HasPrefix(rest, "address"):
			list[i] = "an " + rest
		case ok:
			list[i] = "a " + rest
		}
	}
	return series(list, "or")
}

// notHappened denies it.
func notHappened(e ir.Event) string {
	list := objects(e.Pattern, "or")
	what, not := "none of "+series(list, "and"), ""
	switch rest, any := strings.CutPrefix(list[0], "any "); {
	case len(list) == 1 && any:
		what = "no " + rest
	case len(list) == 1:
		what, not = list[0], " not"
	case len(list) == 2:
		what = "neither " + list[0] + " nor " + list[1]
	}
	return what + arguments(e.Args) + " has" + not + " been " + participle(e.Op)
}

// gate says when an `after` condition holds.
func gate(g ir.Gate) string {
	text, since := happened(g.After), "since"
	if g.Exit >= 0 {
		text += fmt.Sprintf(" and has ended with exit status %d", g.Exit)
		since = "since its start"
	}
	if len(g.Since) == 0 {
		return text
	}
	var not []string
	for _, e := range g.Since {
		not = append(not, notHappened(e))
	}
	return text + ", and " + since + " " + series(not, "and")
}

// excuses lists the `unless` conditions of a clause, each as a sentence that begins
// small.
func excuses(p *ir.Program, c *ir.Clause) []string {
	var out []string
	for _, t := range c.Unless.Targets {
		verb := "it is "
		if t.Not {
			verb = "it is not "
		}
		out = append(out, verb+some(t.Pattern))
	}
	for _, l := range c.Unless.Lineages {
		out = append(out, "the process or one that it descends from has run "+some(p.Lineages[l]))
	}
	for _, g := range c.Unless.Gates {
		out = append(out, gate(p.Gates[g]))
	}
	if c.Unless.Modified {
		out = append(out, "its contents were written inside the container")
	}
	if c.Unless.NotModified {
		out = append(out, "its contents were not written inside the container")
	}
	return out
}
