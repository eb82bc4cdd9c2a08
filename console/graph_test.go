// SPDX-License-Identifier: Apache-2.0

package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
)

// shape is a graph in short.
func shape(g Graph) string {
	var b strings.Builder
	for _, n := range g.Nodes {
		b.WriteString(n.Kind + " " + n.Title)
		for _, l := range n.Lines {
			b.WriteString(" | " + l)
		}
		b.WriteString("\n")
	}
	for _, e := range g.Edges {
		b.WriteString(e.From + " -> " + e.To + ": " + e.Text + "\n")
	}
	return b.String()
}

func denial() *api.Event {
	return &api.Event{Effect: "block", Operation: "connect", Object: "203.0.113.9:443", Rule: "stay", Because: "It stays.", Clause: "block connect any if SECRET", ClausePos: "p.yaml:3:5",
		Pid: 9, Comm: "py\x1b", Labels: []string{"SECRET"}, Also: []string{"other"}, AlsoCut: true}
}

func TestEventGraph(t *testing.T) {
	want := `label SECRET
process "py\x1b"[9]
blocked connect 203.0.113.9:443 | rule stay | block connect any if SECRET (p.yaml:3:5) | It stays. | also other and others
label SECRET -> process: is carried by
process -> operation: connect
`
	if got := shape(EventGraph(denial())); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	unknown := EventGraph(&api.Event{Effect: "kill", Operation: "write", Unrecorded: 7, Labels: []string{"X"}})
	if got := shape(unknown); got != "killed write 7 times\n" {
		t.Error(got)
	}
	answered := EventGraph(&api.Event{Outcome: "denied", Operation: "exec", Object: "/x", Comm: "sh", Request: "k3m9p", By: "ada (uid 1)"})
	if got := shape(answered); !strings.Contains(got, "answered by ada (uid 1)\n") || !strings.Contains(got, "operation -> person: request k3m9p") {
		t.Error(got)
	}
}

func TestProvenanceGraph(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 1, 0, time.UTC).UnixMilli()
	p := &api.ProvenanceResponse{
		Event: denial(),
		Nodes: []*api.Node{{Id: "event", Kind: "event"}, {Id: "b", Kind: "process", Name: "py", Pid: 9}, {Id: "f", Kind: "file", Name: "/w/\u202e.env", Source: true}, {Id: "c", Kind: "channel"}},
		Edges: []*api.Edge{
			{From: "f", To: "c", Label: "SECRET", Way: "wrote"}, {From: "c", To: "b", Label: "SECRET", Way: "pipe", TimeUnixMs: at}, {From: "c", To: "b", Label: "TOKEN", Way: "pipe"},
			{From: "b", To: "event", Label: "SECRET"}, {From: "b", To: "nowhere", Label: "SECRET"}, {From: "f", To: "b", Label: "SECRET", Way: "n\x1bew"},
		},
	}
	want := `file, a source of the policy "/w/\u202e.env"
channel (its name is not known)
process py[9]
blocked connect 203.0.113.9:443 | rule stay | block connect any if SECRET (p.yaml:3:5) | It stays. | also other and others
f -> c: SECRET · written to
c -> b: SECRET · through a pipe to · 12:00:01, TOKEN · through a pipe to
b -> event: SECRET · carried into connect
f -> b: SECRET · n\x1bew
`
	if got := shape(ProvenanceGraph(p, time.UTC)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// Whoever acts is there, though no label came to it by itself.
	p.Nodes[1].Pid = 8
	if g := ProvenanceGraph(p, time.UTC); !slices.ContainsFunc(g.Nodes, func(n Node) bool { return n.Title == `"py\x1b"[9]` }) {
		t.Error(shape(g))
	}
	// A circle ends.
	p.Edges = append(p.Edges, &api.Edge{From: "b", To: "f", Label: "SECRET", Way: "wrote"}, &api.Edge{From: "event", To: "f"})
	if g := ProvenanceGraph(p, time.UTC); len(g.Nodes) != 5 {
		t.Error(shape(g))
	}
	if g := ProvenanceGraph(&api.ProvenanceResponse{Event: denial()}, time.UTC); len(g.Nodes) != 3 {
		t.Error(shape(g))
	}
}

// All that an event has is in its fields, and nothing of it can be obeyed.
func TestRowFields(t *testing.T) {
	e := denial()
	e.Args, e.ArgsCut, e.Request, e.By, e.Reason, e.Warnings, e.Lost = []string{"a b", "\x1b[2J"}, true, "k3m9p", "ada", "no\nway", []string{"look\x07"}, 3
	e.Chain = []*api.Origin{{Label: "SECRET", Unrecorded: true}}
	got := ""
	for _, f := range RowFields(&Row{Event: e, Count: 2, First: time.UnixMilli(0)}, time.UTC) {
		got += f.Key + ": " + f.Text + "\n"
	}
	want := `when: 2 times, first at 1970-01-01 00:00:00, last at 1970-01-01 00:00:00
what: blocked connect 203.0.113.9:443
argv: "a b" "\x1b[2J" … and more that is not shown here
who: "py\x1b"[9]
carries: SECRET
by way of: SECRET: how the process came by it was not recorded
clause: block connect any if SECRET (p.yaml:3:5)
rule: stay
also: other and others
because: It stays.
request: k3m9p, answered by ada: no\x0away
warning: look\x07
lost: 3 earlier events
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
