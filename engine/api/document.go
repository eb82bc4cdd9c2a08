// SPDX-License-Identifier: Apache-2.0

package api

import (
	"time"
	"unicode/utf8"
)

// DocumentVersion is that of RequestDocument. Fields may be added under one version.
const DocumentVersion = 1

// RequestDocument is a request as JSON: what "actplane requests --format json" prints and
// what approvers and notifications get. What programs in the container chose (object,
// args, comm, cwd) is raw text, but for bytes that are no UTF-8, which are U+FFFD;
// Inexact then tells that.
type RequestDocument struct {
	Version   int        `json:"version"`
	ID        string     `json:"id"`
	Scope     string     `json:"scope"` // the container's id
	Name      string     `json:"name"`  // and its name
	Image     string     `json:"image"`
	State     string     `json:"state"`
	Opened    time.Time  `json:"opened"`
	Held      bool       `json:"held"`
	Until     *time.Time `json:"until"` // when a held one is refused
	Operation string     `json:"operation"`
	Object    string     `json:"object"`
	Args      []string   `json:"args"`
	ArgsCut   bool       `json:"args_cut"`
	Inexact   bool       `json:"inexact"`
	Mapped    bool       `json:"mapped"`
	Rule      string     `json:"rule"`
	Because   string     `json:"because"`
	Clause    string     `json:"clause"`
	Position  string     `json:"position"`
	Layer     string     `json:"layer"` // the policy document
	// RuleAdded: a program in the container added that, at run time; Rule, Because and
	// Clause are its words.
	RuleAdded bool              `json:"rule_added"`
	UID       uint32            `json:"uid"`
	PID       int64             `json:"pid"`
	Comm      string            `json:"comm"`
	CWD       string            `json:"cwd"`
	Ancestors []AncestorLine    `json:"ancestors"`
	Labels    []string          `json:"labels"`
	Deciding  bool              `json:"deciding"`
	Warnings  []WarningDocument `json:"warnings"`
	Answer    *AnswerDocument   `json:"answer"`
}

// AncestorLine is a process above the one that asks.
type AncestorLine struct {
	PID  int64  `json:"pid"`
	Comm string `json:"comm"`
}

// WarningDocument is what an approver warned of.
type WarningDocument struct {
	Approver string `json:"approver"`
	Text     string `json:"text"`
}

// AnswerDocument is what was said to a request.
type AnswerDocument struct {
	Denied        bool       `json:"denied"`
	Count         uint32     `json:"count"`
	Until         *time.Time `json:"until"`
	ScopeLifetime bool       `json:"scope_lifetime"`
	Because       string     `json:"because"`
	UID           uint32     `json:"uid"`
	Name          string     `json:"name"`
	Via           string     `json:"via"`   // "cli", "approver", …
	Login         string     `json:"login"` // who had logged in, if that is another
	Time          time.Time  `json:"time"`
	Used          uint64     `json:"used"`
	Over          string     `json:"over"` // "used up", "expired", "revoked", or empty
	OverTime      *time.Time `json:"over_time"`
}

// Document is the request as JSON has it.
func (x *Request) Document() RequestDocument {
	d := RequestDocument{
		Version: DocumentVersion,
		ID:      x.Id, Scope: x.Scope, Name: x.ScopeName, Image: x.Image, State: x.State, Opened: time.UnixMilli(x.OpenedUnixMs).UTC(),
		Held: x.Held, Until: Instant(x.UntilUnixMs), Operation: x.Operation, Object: string(x.Object),
		Args: texts(x.Args), ArgsCut: x.ArgsCut, Inexact: !utf8.Valid(x.Object) || !utf8.Valid(x.Cwd), Mapped: x.Mapped,
		Rule: x.Rule, Because: x.Because, Clause: x.Clause, Position: x.ClausePos, Layer: x.Layer, RuleAdded: x.RuleAdded,
		UID: x.Uid, PID: x.Pid, Comm: string(x.Comm), CWD: string(x.Cwd), Labels: append([]string{}, x.Labels...),
		Deciding: x.Deciding, Ancestors: []AncestorLine{}, Warnings: []WarningDocument{}, Answer: x.Answered.document(),
	}
	for _, arg := range x.Args {
		d.Inexact = d.Inexact || !utf8.Valid(arg)
	}
	for _, a := range x.Ancestors {
		d.Ancestors = append(d.Ancestors, AncestorLine{PID: a.Pid, Comm: string(a.Comm)})
	}
	for _, w := range x.Warnings {
		d.Warnings = append(d.Warnings, WarningDocument{Approver: w.Approver, Text: w.Text})
	}
	return d
}

func (x *Answered) document() *AnswerDocument {
	if x == nil {
		return nil
	}
	return &AnswerDocument{
		Denied: x.Denied, Count: x.Count, Until: Instant(x.UntilUnixMs), ScopeLifetime: x.ScopeLifetime, Because: x.Because,
		UID: x.By.GetUid(), Name: x.By.GetName(), Via: x.By.GetVia(), Login: x.By.GetLogin(), Time: time.UnixMilli(x.TimeUnixMs).UTC(), Used: x.Used,
		Over: x.Over, OverTime: Instant(x.OverUnixMs),
	}
}

func texts(list [][]byte) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = string(text)
	}
	return out
}

// Instant is a time of the protocol, nil for none.
func Instant(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}
