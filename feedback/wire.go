// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of what one answer holds. Raw text is cut to them in JSON only.
const (
	maxPageItems  = 100
	maxPageBytes  = 256 << 10
	maxPolicySize = 1 << 20
	maxRawText    = 4096
	maxRawArgs    = 64
	maxRawArg     = 1024
)

// Entry is an Item on the wire. The raw fields are for programs; Message is for
// people and models.
type Entry struct {
	Sequence       uint64       `json:"sequence"`
	Time           time.Time    `json:"time"`
	Effect         Effect       `json:"effect"`
	Operation      string       `json:"operation"`
	Object         string       `json:"object"`
	Args           []string     `json:"args,omitempty"`
	ArgsCut        bool         `json:"args_cut,omitempty"`
	Rule           string       `json:"rule,omitempty"`
	Because        string       `json:"because,omitempty"`
	RuleAdded      bool         `json:"rule_added,omitempty"` // by a program in the container
	Clause         string       `json:"clause,omitempty"`
	ClausePosition string       `json:"clause_position,omitempty"`
	Labels         []string     `json:"labels,omitempty"`
	Chain          []Origin     `json:"chain,omitempty"` // of each label, how the process came by it
	Process        EntryProcess `json:"process"`
	Parents        []Parent     `json:"parents,omitempty"` // above it, nearest first
	Outcome        Outcome      `json:"outcome,omitempty"`
	Request        string       `json:"request,omitempty"`
	Reason         string       `json:"reason,omitempty"`
	Warnings       []string     `json:"warnings,omitempty"`
	Until          time.Time    `json:"until,omitzero"`
	// Also are the other rules that match; AlsoCut tells that there are more.
	Also    []string `json:"also,omitempty"`
	AlsoCut bool     `json:"also_cut,omitempty"`
	// Unrecorded: it stands for so many operations, of whose objects nothing is known.
	Unrecorded uint64 `json:"unrecorded,omitempty"`
	Lost       uint64 `json:"lost,omitempty"`
	Message    string `json:"message"`
}

// EntryProcess is a Process on the wire. Pids are the host's and mean nothing
// in a container, so they are not told.
type EntryProcess struct {
	ID   string `json:"id"` // as text: JSON's numbers are too small
	Comm string `json:"comm"`
}

// Page is the answer of GET /v1/feedback.
type Page struct {
	Items []Entry `json:"items"`
	// Cursor is where the next request goes on, and what is acknowledged.
	Cursor uint64 `json:"cursor"`
	// Remaining counts the items that are there already and not in this page.
	Remaining int `json:"remaining"`
	// Others counts the items of other process trees between where the reader was
	// and the cursor.
	Others int `json:"others,omitempty"`
	// Missed counts the scope's items that were dropped, being too old, before
	// this reader asked.
	Missed uint64 `json:"missed,omitempty"`
}

// Ack is the body of POST /v1/acks.
type Ack struct {
	Consumer string `json:"consumer"`
	Cursor   uint64 `json:"cursor"`
}

// Policy is the answer of GET /v1/policy.
type Policy struct {
	Documents []PolicyDocument `json:"documents"`
	// Cut tells that the texts are not complete.
	Cut bool `json:"cut,omitempty"`
}

// Failure is the answer to a request that is refused: one sentence, and where it is wrong.
type Failure struct {
	Error string `json:"error"`
	// Diagnostics are of rules that are wrong.
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
}

func newEntry(item Item) Entry {
	args, argsCut := item.Args, item.ArgsCut
	if len(args) > maxRawArgs {
		args, argsCut = args[:maxRawArgs], true
	}
	shown := make([]string, len(args))
	for i, arg := range args {
		shown[i] = cut(arg, maxRawArg)
	}
	return Entry{
		Sequence:       item.Sequence,
		Time:           item.Time,
		Effect:         item.Effect,
		Operation:      item.Operation,
		Object:         cut(item.Object, maxRawText),
		Args:           shown,
		ArgsCut:        argsCut,
		Rule:           cut(item.Rule, maxRawArg),
		Because:        cut(item.Because, maxRawText),
		RuleAdded:      item.RuleAdded,
		Clause:         cut(item.Clause, maxRawText),
		ClausePosition: item.ClausePosition,
		Labels:         cutAll(item.Labels),
		Chain:          inside(item.Origins),
		Parents:        parentsInside(item.Parents),
		Process:        EntryProcess{ID: strconv.FormatUint(item.Process.ID, 10), Comm: item.Process.Comm},
		Outcome:        item.Outcome,
		Request:        item.Request,
		Reason:         cut(item.Reason, maxRawText),
		Warnings:       item.Warnings,
		Until:          item.Until,
		Also:           cutAll(item.Also),
		AlsoCut:        item.AlsoCut,
		Unrecorded:     item.Unrecorded,
		Lost:           item.Lost,
		Message:        item.Message(),
	}
}

// cutAll cuts names: rules that are added at run time may have long ones.
func cutAll(names []string) []string {
	out := slices.Clone(names)
	for i, name := range out {
		out[i] = cut(name, maxRawArg)
	}
	return out
}

// EncodeJSON marshals to one line of ASCII. encoding/json leaves DEL, the C1 controls and
// characters that turn the direction of writing as they are, and answers are
// also read with curl in a terminal.
func EncodeJSON(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	text := buffer.Bytes()
	ascii := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r < 0x7f:
			ascii = append(ascii, byte(r))
		case r < 0x10000:
			ascii = fmt.Appendf(ascii, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			ascii = fmt.Appendf(ascii, `\u%04x\u%04x`, high, low)
		}
		i += size
	}
	return ascii, nil
}
