// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/plain"
)

// Graph is how something came to be decided, as boxes with arrows between them. All its
// texts can be shown as they are.
type Graph struct {
	Nodes []Node // each behind those from which arrows lead to it
	Edges []Edge
}

// Node is a box: what kind of thing it is, which one, and what else there is to say of it.
type Node struct {
	ID, Kind, Title string
	Lines           []string
	Decided         bool // it is the operation that was decided on
	Source          bool // the policy names it as a source of a label
}

// Edge is an arrow.
type Edge struct{ From, To, Text string }

// EventGraph is what an event itself tells: who did what to what, carrying what, and which
// rule had something to say.
func EventGraph(e *api.Event) Graph {
	var g Graph
	operation := "operation"
	if e.Unrecorded == 0 {
		who := Node{ID: "process", Kind: "process", Title: fmt.Sprintf("%s[%d]", plain.Word(e.Comm), e.Pid)}
		for _, l := range e.Labels {
			id := "label " + plain.Text(l)
			g.Nodes = append(g.Nodes, Node{ID: id, Kind: "label", Title: plain.Text(l)})
			g.Edges = append(g.Edges, Edge{id, who.ID, "is carried by"})
		}
		g.Nodes = append(g.Nodes, who)
		g.Edges = append(g.Edges, Edge{who.ID, operation, plain.Text(e.Operation)})
	}
	g.Nodes = append(g.Nodes, eventNode(e, operation))
	if e.By != "" {
		g.Nodes = append(g.Nodes, Node{ID: "person", Kind: "answered by", Title: plain.Text(e.By)})
		g.Edges = append(g.Edges, Edge{operation, "person", "request " + plain.Text(e.Request)})
	}
	return g
}

// eventNode is what was decided on, and how.
func eventNode(e *api.Event, id string) Node {
	n := Node{ID: id, Kind: strings.TrimSuffix(Happened(e), ":"), Title: EventOperation(e), Decided: true}
	if e.Rule != "" {
		n.Lines = append(n.Lines, "rule "+strings.TrimSuffix(RuleText(e.Rule, e.RuleAdded), ","))
	}
	if e.Clause != "" {
		n.Lines = append(n.Lines, plain.Text(e.Clause)+" ("+plain.Text(e.ClausePos)+")")
	}
	if e.Because != "" {
		n.Lines = append(n.Lines, BecauseText(e.Because, e.RuleAdded))
	}
	if len(e.Also) > 0 {
		more := ""
		if e.AlsoCut {
			more = " and others"
		}
		n.Lines = append(n.Lines, "also "+plain.Text(strings.Join(e.Also, ", "))+more)
	}
	return n
}

// wayText says how a label goes from one thing to the next, in words that stand between
// the two.
func wayText(way string) string {
	texts := map[feedback.Way]string{
		feedback.WayRead: "read by", feedback.WayRan: "run by", feedback.WayReached: "reached by", feedback.WayWrote: "written to",
		feedback.WaySocket: "through a socket to", feedback.WayPipe: "through a pipe to", feedback.WayTerminal: "through a terminal to",
		feedback.WayQueue: "through a queue to", feedback.WayMapped: "mapped by", feedback.WayChannel: "as it was reading, to",
		feedback.WayMemory: "through shared memory to", feedback.WayLooked: "looked into by", feedback.WayEntered: "written into",
		feedback.WayEndorsed: "endorsed", feedback.WayNamed: "also named", feedback.WayBrought: "would be brought in by", feedback.WayInherit: "inherited by",
		feedback.WayOpened: "made hold", feedback.WayStaled: "ended", feedback.WayLate: "came too late for", feedback.WayMissed: "ended otherwise than", feedback.WayClosed: "was changed or traced, which ends",
	}
	if text := texts[feedback.Way(way)]; text != "" {
		return text
	}
	return plain.Text(way)
}

// ProvenanceGraph is how an event came about, with the way of each label that decided.
func ProvenanceGraph(p *api.ProvenanceResponse, zone *time.Location) Graph {
	e := p.GetEvent()
	if len(p.GetEdges()) == 0 {
		return EventGraph(e)
	}
	var g Graph
	known := map[string]bool{}
	event, acts := "", false
	for _, n := range p.Nodes {
		known[n.Id] = true
		if n.Kind == "event" {
			event = n.Id
			continue
		}
		g.Nodes = append(g.Nodes, provenanceNode(n))
		acts = acts || n.Kind == "process" && n.Pid == e.Pid
	}
	if !acts && e.Unrecorded == 0 {
		g.Nodes = append(g.Nodes, Node{ID: "actor", Kind: "process", Title: fmt.Sprintf("%s[%d]", plain.Word(e.Comm), e.Pid)})
		g.Edges = append(g.Edges, Edge{"actor", event, plain.Text(e.Operation)})
	}
	for _, line := range p.Edges {
		if known[line.From] && known[line.To] {
			g.addLabel(line, event, e, zone)
		}
	}
	g.Nodes = append(g.Nodes, eventNode(e, event))
	g.sort()
	return g
}

func provenanceNode(n *api.Node) Node {
	out := Node{ID: n.Id, Kind: plain.Text(n.Kind), Title: plain.Word(n.Name), Source: n.Source}
	if n.Name == "" {
		out.Title = "(its name is not known)"
	}
	if n.Kind == "process" && n.Pid != 0 {
		out.Title += fmt.Sprintf("[%d]", n.Pid)
	}
	if n.Source {
		out.Kind += ", a source of the policy"
	}
	return out
}

// addLabel puts a label's passage to the arrow between the two, which others may share.
func (g *Graph) addLabel(line *api.Edge, event string, e *api.Event, zone *time.Location) {
	var words []string
	if line.Label != "" {
		words = append(words, plain.Text(line.Label))
	}
	switch {
	case line.Way != "":
		words = append(words, wayText(line.Way))
	case line.To == event && line.Label == "": // of a condition
		words = append(words, "does not excuse")
	case line.To == event:
		words = append(words, "carried into "+plain.Text(e.Operation))
	}
	if line.TimeUnixMs != 0 {
		words = append(words, time.UnixMilli(line.TimeUnixMs).In(zone).Format(time.TimeOnly))
	}
	text := strings.Join(words, " · ")
	if i := slices.IndexFunc(g.Edges, func(old Edge) bool { return old.From == line.From && old.To == line.To }); i >= 0 {
		g.Edges[i].Text += ", " + text
		return
	}
	g.Edges = append(g.Edges, Edge{line.From, line.To, text})
}

// sort puts each node behind those from which arrows lead to it, as far as there is no way
// around, and otherwise leaves them as they are.
func (g *Graph) sort() {
	var sorted []Node
	left := slices.Clone(g.Nodes)
	for len(left) > 0 {
		waits := func(n Node) bool {
			return slices.ContainsFunc(g.Edges, func(e Edge) bool {
				return e.To == n.ID && e.From != n.ID && slices.ContainsFunc(left, func(other Node) bool { return other.ID == e.From })
			})
		}
		next := slices.IndexFunc(left, func(n Node) bool { return !waits(n) })
		if next < 0 {
			next = slices.IndexFunc(left, func(n Node) bool { return !n.Decided })
		}
		next = max(next, 0)
		sorted = append(sorted, left[next])
		left = slices.Delete(left, next, next+1)
	}
	g.Nodes = sorted
}
