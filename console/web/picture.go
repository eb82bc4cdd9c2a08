// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"time"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/plain"
)

// What the page gets. Every text can be shown as it is, and times are milliseconds since
// 1970. A part of an update that has not changed is left out.
type update struct {
	Now      int64          `json:"now"`
	Status   *statusPart    `json:"status,omitempty"`
	Requests *[]requestPart `json:"requests,omitempty"`
	Grants   *grantsPart    `json:"grants,omitempty"`
	Scopes   *[]scopePart   `json:"scopes,omitempty"`
	Rules    *[]rulePart    `json:"rules,omitempty"`
	Rows     []rowPart      `json:"rows,omitempty"` // new ones, and those of which there are more now
}

type statusPart struct {
	Problem string `json:"problem"`
	Engine  string `json:"engine"`
}

type field struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

type requestPart struct {
	ID        string  `json:"id"`
	Scope     string  `json:"scope"`
	State     string  `json:"state"`
	Open      bool    `json:"open"`
	Holds     bool    `json:"holds"`    // it has an answer in force
	Deciding  bool    `json:"deciding"` // approvers are asked
	Held      bool    `json:"held"`
	Opened    int64   `json:"opened"`
	Until     int64   `json:"until"`
	Operation string  `json:"operation"`
	Seen      string  `json:"seen"`
	Fields    []field `json:"fields"`
}

// grantsPart are the answers that hold, or why they are not known.
type grantsPart struct {
	Problem string      `json:"problem"`
	List    []grantPart `json:"list"`
}

// grantPart is an answer that holds, with the request that it is to.
type grantPart struct {
	requestPart
	Ends int64  `json:"ends"` // 0: with the container
	Uses uint32 `json:"uses"` // that are left of a counted one; 0: it is not counted
}

type scopePart struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	State     string  `json:"state"`
	Good      bool    `json:"good"`
	Locked    bool    `json:"locked"`
	Seen      string  `json:"seen"`
	Started   int64   `json:"started"`
	Processes uint32  `json:"processes"`
	Denied    uint64  `json:"denied"`
	Noticed   uint64  `json:"noticed"`
	Lost      uint64  `json:"lost"`
	Warnings  int     `json:"warnings"`
	Fields    []field `json:"fields"`
}

type rulePart struct {
	Scope   string `json:"scope"`
	Rule    string `json:"rule"`
	Denied  uint64 `json:"denied"`
	Asked   uint64 `json:"asked"`
	Noticed uint64 `json:"noticed"`
	Last    int64  `json:"last"`
}

type rowPart struct {
	ID        uint64  `json:"id"`
	Time      int64   `json:"time"`
	Sequence  uint64  `json:"sequence"`
	First     int64   `json:"first"`
	Count     uint64  `json:"count"`
	Scope     string  `json:"scope"`
	Kind      string  `json:"kind"` // "bad", "ask", "good" or "note"
	Happened  string  `json:"happened"`
	Operation string  `json:"operation"`
	Rule      string  `json:"rule"`
	Fields    []field `json:"fields"`
}

type graphPart struct {
	Nodes []nodePart `json:"nodes"`
	Edges []edgePart `json:"edges"`
}

type nodePart struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Title   string   `json:"title"`
	Lines   []string `json:"lines"`
	Decided bool     `json:"decided"`
	Source  bool     `json:"source"`
}

type edgePart struct {
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
}

func graphOf(g console.Graph) graphPart {
	out := graphPart{Nodes: []nodePart{}, Edges: []edgePart{}}
	for _, n := range g.Nodes {
		out.Nodes = append(out.Nodes, nodePart{n.ID, n.Kind, n.Title, append([]string{}, n.Lines...), n.Decided, n.Source})
	}
	for _, e := range g.Edges {
		out.Edges = append(out.Edges, edgePart(e))
	}
	return out
}

func fieldsOf(fields []console.Field) []field {
	out := make([]field, len(fields))
	for i, f := range fields {
		out[i] = field(f)
	}
	return out
}

// seenOf tells one state of a request from the others that it had.
func seenOf(r *api.Request) string {
	return fmt.Sprintf("%s %d%s", r.State, r.Answered.GetTimeUnixMs(), r.Answered.GetOver())
}

func (s *Server) requestOf(r *api.Request) requestPart {
	return requestPart{
		ID: plain.Text(r.Id), Scope: plain.Word(console.ScopeTitle(r.Scope, r.ScopeName)), State: plain.Text(r.State), Open: r.State == "open",
		Holds: console.InForce(r), Deciding: r.Deciding,
		Held: r.Held, Opened: r.OpenedUnixMs, Until: r.UntilUnixMs, Operation: console.OperationText(r), Seen: seenOf(r),
		Fields: fieldsOf(console.RequestFields(r, s.options.Zone)),
	}
}

func (s *Server) grantsOf(v *console.View) grantsPart {
	out := grantsPart{Problem: plain.Text(v.GrantsProblem), List: []grantPart{}}
	for _, g := range v.Grants {
		out.List = append(out.List, grantPart{requestPart: s.requestOf(g.Request), Ends: g.Request.GetAnswered().GetUntilUnixMs(), Uses: g.Left})
	}
	return out
}

// lockSeen tells one lock of a scope from another, and from none.
func lockSeen(s *api.Scope) string {
	if s.Lock == nil {
		return "unlocked"
	}
	return fmt.Sprintf("locked %d", s.Lock.SinceUnixMs)
}

func scopeOf(s *api.Scope) scopePart {
	return scopePart{
		ID: plain.Text(s.Id), Name: plain.Word(console.ScopeTitle(s.Id, s.Name)), State: plain.Text(s.State),
		Good: s.State == "enforcing" && len(s.Degraded) == 0, Locked: s.Lock != nil, Seen: lockSeen(s),
		Started: s.StartedUnixMs, Processes: s.Processes, Denied: s.Denied, Noticed: s.Notified, Lost: s.Lost,
		Warnings: len(s.Degraded) + len(s.Warnings), Fields: fieldsOf(console.ScopeFields(s, time.Time{})),
	}
}

func ruleOf(c *console.RuleCount) rulePart {
	return rulePart{plain.Word(console.ScopeTitle(c.Scope, c.ScopeName)), console.RuleTitle(c.Rule), c.Denied, c.Asked, c.Noticed, c.Last.UnixMilli()}
}

func (s *Server) rowOf(row *console.Row) rowPart {
	e := row.Event
	return rowPart{
		ID: row.ID, Time: e.TimeUnixMs, Sequence: e.Sequence, First: row.First.UnixMilli(), Count: row.Count,
		Scope: plain.Word(console.ScopeTitle(e.Scope, e.ScopeName)), Kind: console.Kind(e), Happened: console.Happened(e),
		Operation: console.EventOperation(e), Rule: plain.Text(e.Rule), Fields: fieldsOf(console.RowFields(row, s.options.Zone)),
	}
}
