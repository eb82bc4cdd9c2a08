// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"strings"

	"github.com/actplane/actplane/engine/api"
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
		n.Lines = append(n.Lines, "rule "+plain.Text(e.Rule))
	}
	if e.Clause != "" {
		n.Lines = append(n.Lines, plain.Text(e.Clause)+" ("+plain.Text(e.ClausePos)+")")
	}
	if e.Because != "" {
		n.Lines = append(n.Lines, plain.Text(e.Because))
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
