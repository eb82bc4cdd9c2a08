// SPDX-License-Identifier: Apache-2.0

// Package feedback tells the programs in a scope what the policy did to them
// and why, in words: the model of one thing that happened (Item), its wording,
// the HTTP server on the scope's socket, the ledger of what was delivered to
// whom, and the client that actplane-guest is made of.
//
// Feedback is a courtesy, never enforcement. Nothing here decides, delays or
// lifts anything; a scope without a reader is enforced all the same, and what a
// peer says on the socket is data that can at most spoil its own scope's texts.
// Everything that comes from inside a scope (names, argv, requests) is taken to
// be hostile: it is bounded, and quoted before it is put into words.
package feedback

import (
	"context"
	"time"
)

// Effect is what the policy did.
type Effect string

// The effects that are fed back.
const (
	Notify Effect = "notify"
	Ask    Effect = "ask"
	Block  Effect = "block"
	Kill   Effect = "kill"
)

// Outcome is what became of an ask, or of a request that one has opened.
type Outcome string

// The outcomes. Those from Grant on are of a request, and no operation.
const (
	Opened    Outcome = "opened"    // refused; a request was opened
	StillOpen Outcome = "open"      // refused again; its request is still open
	Held      Outcome = "held"      // the process is stopped until the request is answered
	TimedOut  Outcome = "timed-out" // nobody answered the request of a held one
	Unasked   Outcome = "unasked"   // refused, and nobody could be asked
	Denied    Outcome = "blocked"   // refused, since a person had denied it
	Used      Outcome = "used"      // a person had granted it
	Grant     Outcome = "granted"   // a person grants it
	Denial    Outcome = "denied"    // a person denies it
	Withdrawn Outcome = "withdrawn" // the process that was held is gone
	Warned    Outcome = "warned"    // an approver warns, and leaves it to a person
	Revoked   Outcome = "revoked"   // a person takes the answer back
	UsedUp    Outcome = "used-up"   // of what was granted nothing is left
	Expired   Outcome = "expired"   // the answer's time is up
	Locked    Outcome = "locked"    // an operator locks the scope
	Unlocked  Outcome = "unlocked"

	// Added is of no operation either: rules were added to the policy.
	Added Outcome = "added"
)

// OfRequest tells whether it is of a request, a lock, or of rules that were added, and no
// operation: the engine's own, which the kernel has not counted.
func (o Outcome) OfRequest() bool {
	switch o {
	case Grant, Denial, Withdrawn, Warned, Revoked, UsedUp, Expired, Locked, Unlocked, Added:
		return true
	}
	return false
}

// Item is one thing that happened in a scope. It holds raw text: Message is
// what may be shown.
type Item struct {
	// Sequence numbers the items of a scope, from 1, without gaps. It belongs
	// to the container id, not to one start of it or of the engine.
	Sequence  uint64
	Time      time.Time
	Effect    Effect
	Operation string // as the policy language names it: "exec", "open", …
	Object    string // path, address or socket name as the container sees it
	Args      []string
	// ArgsCut tells that Args do not hold all of argv.
	ArgsCut bool
	// Rule is the deciding rule; empty for a decision of the engine's own,
	// which Because then explains.
	Rule    string
	Because string // word for word
	// RuleAdded: a program in the scope added what decided, at run time. Rule, Because and
	// Clause are then its words, and no more to be trusted than a file's name.
	RuleAdded bool `json:",omitempty"`
	// Also are the other rules that match, in the policy's order; AlsoCut tells that
	// there are more.
	Also    []string `json:",omitempty"`
	AlsoCut bool     `json:",omitempty"`
	// Clause is the deciding clause as written, ClausePosition its file:line:col.
	Clause         string
	ClausePosition string
	// Labels are those that the clause tested and the process carries.
	Labels  []string
	Process Process
	// Origins tell of each of these labels how the process came by it.
	Origins []Origin `json:",omitempty"`
	// Parents are the nearest processes above it in the scope, nearest first.
	Parents []Parent `json:",omitempty"`
	// Outcome and Request are of an ask: what became of it, and the request that
	// people know it by. By is who answered.
	Outcome Outcome `json:",omitempty"`
	Request string  `json:",omitempty"`
	By      string  `json:",omitempty"`
	// Approver names the program on the host that answered; empty where a person did.
	Approver string `json:",omitempty"`
	// WasDenied tells of an answer that is over that it was a denial.
	WasDenied bool `json:",omitempty"`
	// Reason is the person's own, or of an Unasked one why nobody can be asked.
	Reason string `json:",omitempty"`
	// Warnings are what approvers said that whoever decides should know.
	Warnings []string `json:",omitempty"`
	// Until is when a held operation is refused, or an answer is over.
	Until time.Time `json:",omitzero"`
	// Since and Refused are of an Unlocked one: since when it was locked, and how many
	// operations were refused.
	Since   time.Time `json:",omitzero"`
	Refused uint64    `json:",omitempty"`
	// Unrecorded is set where the item stands for operations whose records were lost: so
	// many that were decided alike. What they were about is not known.
	Unrecorded uint64
	// Lost counts the records of this scope that were lost just before this one.
	Lost uint64
}

// Parent is a process above another one. What it calls itself is its own choice.
type Parent struct {
	Program string `json:"program"`
	PID     int    `json:"pid,omitempty"`      // as its own pid namespace numbers it
	HostPID int    `json:"host_pid,omitempty"` // not told inside
}

// Process is the kernel's record of a process in a scope.
type Process struct {
	PID  int // as the host numbers it, for display
	Comm string
	// ID names the process for as long as the scope lives; 0 is unknown.
	ID uint64
	// Ancestors are the IDs of its ancestors in the scope, nearest first.
	Ancestors []uint64
	// AncestorsCut tells that the oldest ancestors are missing.
	AncestorsCut bool
}

// Status tells whether and how a scope is enforced.
type Status struct {
	ID         string        `json:"id"` // the container's id
	Enforcing  bool          `json:"enforcing"`
	Tier       string        `json:"tier"` // "lsm", "fmod_ret"
	Mode       string        `json:"mode"` // "enforce"
	Since      time.Time     `json:"since"`
	Layers     []PolicyLayer `json:"layers"`
	Degraded   []string      `json:"degraded"` // sentences; empty when all is as it should be
	Warnings   []string      `json:"warnings"` // sentences on the policy and the container
	Denied     uint64        `json:"denied"`
	Notified   uint64        `json:"notified"`
	LostEvents uint64        `json:"lost"`
	// Clauses are those of the policy, with what they really do on this host, and
	// ClausesLeft counts those that there is no room for.
	Clauses     []ClauseMode `json:"clauses"`
	ClausesLeft int          `json:"clauses_left,omitempty"`
}

// ClauseMode is what a clause really does on a host.
type ClauseMode struct {
	Rule     string `json:"rule,omitempty"` // empty for a default
	Clause   string `json:"clause"`         // as written
	Position string `json:"position"`       // file:line:col
	Mode     string `json:"mode"`           // "block", "kill", "notify", …, or "block or kill"
}

// PolicyLayer names one policy document of a scope.
type PolicyLayer struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of the text, hex
	// For tells for whom rules were added at run time: ForProcess or ForContainer. Empty for
	// what the container began with.
	For string `json:"for,omitempty"`
}

// PolicyDocument is one policy document, as it was read.
type PolicyDocument struct {
	PolicyLayer
	Text string `json:"text"`
}

// Scope is what the server asks of the engine. All methods are called from
// several goroutines at once and return without waiting, but for Wait and Narrow.
type Scope interface {
	// Status is the state as of now.
	Status() Status
	// Policy is all documents, outermost layer first.
	Policy() []PolicyDocument
	// Items returns what is kept with a Sequence above after, in order. What
	// the kernel had reported before the call should be in it. Log does this.
	Items(after uint64) []Item
	// Wait returns nil once there is an item with a Sequence above after, and
	// the context's error if that comes first.
	Wait(ctx context.Context, after uint64) error
	// Peer finds the process with a host pid. It returns false for a process
	// that is not in this scope. A process that is in it and of which nothing
	// more is known has ID 0; it is told of everything in the scope.
	Peer(pid int) (Process, bool)
	// Narrow puts rules into force beside the policy, and returns when they hold. It may
	// take seconds. An error that is a Refusal is told to who asked.
	Narrow(ctx context.Context, peer Process, request NarrowRequest) (Narrowed, error)
	// Check tells whether something would be allowed. Its errors are as Narrow's.
	Check(ctx context.Context, peer Process, request CheckRequest) (Checked, error)
}

// Cursors keeps, per consumer, up to which Sequence items were acknowledged.
// MemoryCursors is one; an engine may bring one that survives a restart. The
// server calls it with its own lock held.
type Cursors interface {
	// Cursor returns 0 for a consumer that is not known.
	Cursor(consumer string) uint64
	SetCursor(consumer string, cursor uint64)
}
