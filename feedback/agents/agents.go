// SPDX-License-Identifier: Apache-2.0

// Package agents speaks the hook protocols of coding agents: it reads what an
// agent says about a tool call, and answers with what the policy did since the
// last answer, in the form that the agent puts before its model.
//
// It decides nothing and guesses nothing: not from error texts, not from exit
// codes. A hook must never disturb its agent, so on any trouble a protocol
// writes nothing; what was not delivered comes with the next event.
package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"

	"github.com/actplane/actplane/feedback"
)

// Source is where a protocol learns what happened; feedback.Client is one.
type Source interface {
	Feedback(ctx context.Context, query feedback.Query) (feedback.Page, error)
	Ack(ctx context.Context, ack feedback.Ack) error
}

// Protocol handles one event: it reads it from in and writes at most one answer
// to out. depth is feedback.Query's. An error is for a person who looks for
// one; the agent is told nothing of it.
type Protocol func(ctx context.Context, in io.Reader, out io.Writer, source Source, depth int) error

// ByName finds an agent's protocol.
func ByName(name string) (Protocol, bool) {
	switch name {
	case "claude":
		return claude, true
	default:
		return nil, false
	}
}

// Names are those that ByName knows.
func Names() []string { return []string{"claude"} }

// consumer names an agent's session in the ledger. A session id that is no
// valid name, or so long that it might have been cut, is hashed.
func consumer(agent, session string) string {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	if session == "" || len(session) > 64 || strings.ContainsFunc(session, odd) {
		sum := sha256.Sum256([]byte(session))
		session = "sha256:" + hex.EncodeToString(sum[:])
	}
	return agent + ":" + session
}
