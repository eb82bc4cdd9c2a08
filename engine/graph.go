// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/feedback"
)

// provenance gives the chain of an event of a scope as a graph.
func (e *Engine) provenance(word string, sequence uint64) (*api.ProvenanceResponse, error) {
	if word == "" {
		return nil, status.Error(codes.InvalidArgument, "name a scope")
	}
	scopes, _, err := e.find(word)
	if err != nil {
		return nil, err
	}
	for _, s := range scopes {
		if items := s.events.Items(max(sequence, 1) - 1); len(items) > 0 && items[0].Sequence == sequence {
			g := newGraph()
			g.draw(items[0])
			return &api.ProvenanceResponse{Event: s.event(items[0]), Nodes: g.listed, Edges: g.lines}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "no event of %q that is kept has the number %d", word, sequence)
}

// graph is what Provenance answers, as it grows.
type graph struct {
	nodes  map[string]*api.Node
	edges  map[edgeKey]bool
	listed []*api.Node
	lines  []*api.Edge
}

func newGraph() *graph { return &graph{edges: map[edgeKey]bool{}, nodes: map[string]*api.Node{}} }

type edgeKey struct{ from, to, label string }

// draw adds the event and the way of each label to it.
func (g *graph) draw(item feedback.Item) {
	event := g.node("event", "event", item.Object)
	for _, origin := range item.Origins {
		if origin.Gate != "" {
			g.gate(origin, event)
			continue
		}
		last := ""
		for _, step := range origin.Steps {
			last = g.step(origin.Label, step, last)
		}
		g.edge(last, event, origin.Label, "", 0)
	}
}

// gate adds a condition that did not hold, and who made it so.
func (g *graph) gate(origin feedback.Origin, event string) {
	gate := g.node("gate:"+origin.Gate, "gate", origin.Gate)
	for _, step := range origin.Steps {
		process := g.node("process:"+step.Process, "process", step.Program)
		g.nodes[process].Pid = max(g.nodes[process].Pid, int64(step.HostPID))
		object := g.object(step)
		g.edge(process, object, "", "", 0)
		if object == "" {
			object = process
		}
		g.edge(object, gate, "", string(step.Way), step.Time.UnixMilli())
	}
	g.edge(gate, event, "", "", 0)
}

// step adds one step of a label, which was at a node before, and returns where it is
// then.
func (g *graph) step(label string, step feedback.Step, last string) string {
	var at int64
	if !step.Time.IsZero() {
		at = step.Time.UnixMilli()
	}
	object := g.object(step)
	process := ""
	if step.Process != "" {
		process = g.node("process:"+step.Process, "process", step.Program)
		g.nodes[process].Pid = max(g.nodes[process].Pid, int64(step.HostPID))
	}
	switch {
	case step.Way == feedback.WayWrote:
		g.edge(last, process, label, string(feedback.WayInherit), 0)
		g.edge(process, object, label, string(step.Way), at)
		return object
	case process == "": // a name, or what the operation brings
		g.edge(last, object, label, string(step.Way), at)
		return object
	case object == "":
		g.edge(last, process, label, string(step.Way), at)
		return process
	}
	g.edge(last, object, label, "", 0)
	g.edge(object, process, label, string(step.Way), at)
	return process
}

// object adds what a step is about, and returns it, or "".
func (g *graph) object(step feedback.Step) string {
	kind := "file"
	switch step.Way {
	case feedback.WayRan, feedback.WayEndorsed:
		kind = "program"
	case feedback.WayReached:
		kind = "endpoint"
	case feedback.WaySocket, feedback.WayPipe, feedback.WayTerminal, feedback.WayQueue:
		kind = "channel"
	}
	id := kind + ":" + step.Thing
	if step.Thing == "" {
		if step.Object == "" {
			return ""
		}
		id = kind + ":" + step.Object
	}
	id = g.node(id, kind, step.Object)
	g.nodes[id].Source = g.nodes[id].Source || step.Source
	return id
}

func (g *graph) node(id, kind, name string) string {
	id, name = text(id), text(name)
	if g.nodes[id] == nil {
		g.nodes[id] = &api.Node{Id: id, Kind: kind}
		g.listed = append(g.listed, g.nodes[id])
	}
	if name != "" {
		g.nodes[id].Name = name
	}
	return id
}

// edge adds a line between two nodes, once for each label.
func (g *graph) edge(from, to, label, way string, at int64) {
	key := edgeKey{from, to, label}
	if from == "" || to == "" || from == to || g.edges[key] {
		return
	}
	g.edges[key] = true
	g.lines = append(g.lines, &api.Edge{From: from, To: to, Label: label, Way: way, TimeUnixMs: at})
}
