// SPDX-License-Identifier: Apache-2.0

// Package explain says in plain words what a policy does: each source, transform,
// default and clause in a sentence, and what the agent is told.
//
// It reads the compiled program, so that what it says is what holds: workspaces
// are applied, names are resolved, domains are chosen. What a policy decides about
// an event package model says; Events puts that into words.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

// Policy is a program in words.
type Policy struct {
	Workspace string  `json:"workspace"` // where relative patterns begin
	Domains   []Layer `json:"domains"`   // documents with domains, and which one holds
	// Labels are the statements about labels: sources, declassify and endorse.
	Labels   []Statement `json:"labels"`
	Defaults []Statement `json:"defaults"`
	Rules    []Rule      `json:"rules"`
	Protects []Statement `json:"protect"`
	// Limits are the sentences about the container.
	Limits []string `json:"limits"`
}

// Layer is a document and the domain of it that holds.
type Layer struct {
	Name   string `json:"name"`
	Domain string `json:"domain"`
}

// Statement is one statement of a policy.
type Statement struct {
	Position string `json:"position"` // file:line:col
	Text     string `json:"text"`     // as written
	Meaning  string `json:"meaning"`  // one sentence
	// Unless are the cases in which it does not hold, each a sentence without its
	// capital letter and its full stop.
	Unless []string `json:"unless"`
	// Effect is what a clause or a default says, "" for what has no effect of its own.
	Effect string `json:"effect,omitempty"`
	// Mode is the effect that a clause or a default has where it is enforced, or
	// NotEnforced; "" for what has no effect of its own.
	Mode string `json:"mode,omitempty"`
	// Notes say what of it is otherwise in this version or on this host, and what it
	// leaves open that most would not expect.
	Notes []string `json:"notes"`
}

// NotEnforced is the mode of what this version's engine does not enforce.
const NotEnforced = "not enforced"

// Rule is a rule with its clauses.
type Rule struct {
	Name     string `json:"name"`
	Position string `json:"position"`
	// Told is the rule's reason, word for word; "" if it has none.
	Told    string      `json:"told"`
	Clauses []Statement `json:"clauses"`
}

// Host is what is known of the host that a policy is explained for.
type Host struct {
	// KilledExec: a refused exec may end its process, instead of failing with EPERM.
	KilledExec bool
}

// Explain puts a program into words. unenforced is what this version's engine does
// not enforce of it, as package policy lists it.
func Explain(p *ir.Program, unenforced diag.List, host Host) *Policy {
	x := explainer{program: p, host: host, refused: map[string][]string{}, held: appending(p), unreadable: reading(p)}
	for _, d := range unenforced {
		at := fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Col)
		what := strings.TrimPrefix(d.Message, "not supported by this version: ")
		x.refused[at] = append(x.refused[at], what)
	}
	out := &Policy{Workspace: p.Workspace, Domains: []Layer{}, Labels: x.labels(), Defaults: x.defaults(),
		Rules: []Rule{}, Protects: x.protects(), Limits: x.limits()}
	for _, l := range p.Layers {
		if l.Domain != "" {
			out.Domains = append(out.Domains, Layer{l.Name, l.Domain})
		}
	}
	clauses := make([][]Statement, len(p.Rules))
	for i := range p.Clauses {
		clauses[p.Clauses[i].Rule] = append(clauses[p.Clauses[i].Rule], x.clause(&p.Clauses[i]))
	}
	for i, r := range p.Rules {
		out.Rules = append(out.Rules, Rule{Name: r.Name, Position: r.Pos, Told: r.Because, Clauses: append([]Statement{}, clauses[i]...)})
	}
	return out
}

type explainer struct {
	program *ir.Program
	host    Host
	refused map[string][]string // what is not enforced, by position
	held    *held               // from appending
	// unreadable is where nobody can read.
	unreadable *held
}

// statement makes a statement whose meaning begins with a capital letter and ends
// in a full stop.
func (x *explainer) statement(pos, text, meaning string, effect ...ir.Effect) Statement {
	s := Statement{Position: pos, Text: text, Meaning: Sentence(meaning), Unless: []string{}, Notes: []string{}}
	if len(effect) > 0 {
		s.Effect = effect[0].String()
		s.Mode = s.Effect
	}
	if list := x.refused[pos]; len(list) > 0 {
		s.Mode = NotEnforced
		s.Notes = append(s.Notes, "Not enforced by this version: "+series(list, "and")+".")
	}
	return s
}

// Sentence gives a text its capital letter and its full stop. A name at its
// beginning stays as it is.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if unicode.IsLetter(first) {
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	return text + "."
}

func (x *explainer) labels() []Statement {
	out := []Statement{}
	for _, s := range x.program.Sources {
		label, what := x.program.Labels[s.Label].Name, object(s.Pattern)
		verb := "reads"
		switch s.Pattern.Kind {
		case ir.ExecProgram:
			verb = "runs"
		case ir.Endpoint:
			verb = "talks to"
		}
		statement := x.statement(s.Pos, s.Text, fmt.Sprintf("a process that %s %s carries %s from then on, and so do its children and the files that it writes", verb, what, label))
		if note := x.unread(&s); note != "" {
			statement.Notes = append(statement.Notes, note)
		}
		out = append(out, statement)
	}
	for _, t := range x.program.Transforms {
		label, what := x.program.Labels[t.Label].Name, object(t.Pattern)
		text := fmt.Sprintf("a process that runs %s loses %s, and does not regain it while that program runs", what, label)
		if t.Endorse {
			text = fmt.Sprintf("a process that runs %s carries %s from then on, until it reads or receives what carries another label; its children carry it too, its files don't", what, label)
		}
		out = append(out, x.statement(t.Pos, t.Text, text))
	}
	return out
}

func (x *explainer) defaults() []Statement {
	out := []Statement{}
	for _, d := range x.program.Defaults {
		text := doing(d.Op, object(ir.Pattern{Kind: kindOf(d.Op), Any: true})) + " " + outcome(d.Effect, holdOf(d.Hold))
		if d.Effect != ir.Allow {
			text = "where no allow clause matches, " + text
		}
		s := x.statement(d.Pos, d.Text, text, d.Effect)
		if d.Hold != 0 && s.Mode != NotEnforced {
			s.Notes = append(s.Notes, unheld)
		}
		out = append(out, s)
	}
	return out
}

// unheld is what a hold cannot do, on any host.
const unheld = "What cannot be stopped is refused at once: io_uring, AIO, and system calls of 32 bits."

func holdOf(d time.Duration) string {
	if d == 0 {
		return ""
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func kindOf(op ir.Op) ir.Kind {
	switch op {
	case ir.Exec:
		return ir.ExecProgram
	case ir.Connect, ir.Bind, ir.Send, ir.Recv:
		return ir.Endpoint
	}
	return ir.File
}

func (x *explainer) clause(c *ir.Clause) Statement {
	text := doing(c.Op, object(c.Pattern)+arguments(c.Args)) + " "
	if subject := who(x.program, c.If); subject != "" {
		text = strings.TrimSpace(text) + ", by a process that " + subject + ", "
	}
	s := x.statement(c.Pos, c.Text, text+outcome(c.Effect, holdOf(c.Hold)), c.Effect)
	s.Unless = append(s.Unless, excuses(x.program, c)...)
	for _, note := range []string{x.appends(c), x.spoils(c)} {
		if note != "" {
			s.Notes = append(s.Notes, note)
		}
	}
	if c.Hold != 0 && s.Mode != NotEnforced {
		s.Notes = append(s.Notes, unheld)
	}
	if ir.OrKill(c.Op, c.Effect, x.host.KilledExec) && s.Mode != NotEnforced {
		s.Mode = ir.Mode(c.Op, c.Effect, true)
		s.Notes = append(s.Notes, "On this host (tier fmod_ret) the process may be killed, instead of getting EPERM: when the arguments are not in memory at the time.")
	}
	return s
}

func (x *explainer) protects() []Statement {
	out := []Statement{}
	for _, e := range x.program.Protects {
		who := who(x.program, e.If)
		if who != "" {
			who = ", by a process that " + who + ","
		}
		out = append(out, x.statement(e.Pos, e.Text, "changing, moving or removing "+object(e.Pattern)+who+" is refused (EPERM); reading is not", ir.Block))
	}
	return out
}

func (x *explainer) limits() []string {
	out, l := []string{}, x.program.Limits
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if l.Pids != 0 {
		add("At most %d processes and threads.", l.Pids)
	}
	if l.Memory != 0 {
		add("At most %s of memory.", Bytes(l.Memory))
	}
	if l.CPUs != 0 {
		add("At most %g processors' time.", l.CPUs)
	}
	if c := l.Capabilities; c != nil {
		switch {
		case slices.Contains(c.Drop, "ALL"):
			add("No capabilities but these, as far as the container would have them: %s.", cmp.Or(strings.Join(c.Add, " "), "none"))
		case len(c.Drop) > 0:
			add("Without the capabilities %s.", strings.Join(c.Drop, " "))
		}
	}
	if l.NoNewPrivileges {
		add("Programs gain no privileges: no_new_privileges is set.")
	}
	if len(out) > 0 {
		add("Where the hook alone starts it (podman, CRI-O without the runtime), these are asked of the container and not set, and podman exec is not limited.")
	}
	if x.program.Feedback.Stderr {
		add("The reason of a refusal is also written to the standard error of the process.")
	}
	return out
}

// Bytes spells a size in the largest unit that it is a multiple of.
func Bytes(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n != 0 && n%1024 == 0 && i+1 < len(units) {
		n, i = n/1024, i+1
	}
	return fmt.Sprintf("%d %s", n, units[i])
}

// Tells tells whether the agent is told anything of the rule: an allow is silent.
func (r *Rule) Tells() bool {
	return slices.ContainsFunc(r.Clauses, func(s Statement) bool { return s.Effect != ir.Allow.String() })
}

// ToldText is what the agent is told of a rule's decisions, apart from the facts.
func (r *Rule) ToldText() string {
	return cmp.Or(r.Told, "the clause as it is written; the rule has no reason.")
}

// Unenforced counts the statements that this version's engine does not enforce.
func (p *Policy) Unenforced() int {
	n := 0
	lists := [][]Statement{p.Labels, p.Defaults, p.Protects}
	for _, r := range p.Rules {
		lists = append(lists, r.Clauses)
	}
	for _, s := range slices.Concat(lists...) {
		if s.Mode == NotEnforced {
			n++
		}
	}
	return n
}
