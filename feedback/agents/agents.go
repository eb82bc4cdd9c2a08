// SPDX-License-Identifier: Apache-2.0

// Package agents speaks the hook protocols of coding agents: it reads what an
// agent says about a tool call, and answers with what the policy did since the
// last answer, in the form that the agent puts before its model.
//
// It decides nothing and guesses nothing: not from error texts, not from exit
// codes. A hook must never disturb its agent, so on any trouble a protocol
// writes nothing; what was not delivered comes with the next event. So it is with
// events that take no text to the model, and with those that nobody knows.
//
// What agents differ in is a table (dialects.go); what they have in common is here.
package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/actplane/actplane/feedback"
)

const (
	// maxText bounds an answer's text, in bytes, for every agent. Claude Code shows
	// a preview only of what is longer than 2 KB; the others take more.
	maxText = 1900
	// failureWait is how long a failed tool's hook waits for a reason that is
	// still on its way from the kernel.
	failureWait = 100 * time.Millisecond
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

// Auto is the name of the protocol that finds out whose event it is. It is silent
// on one of an agent that it does not know.
const Auto = "auto"

// ByName finds an agent's protocol.
func ByName(name string) (Protocol, bool) {
	if name == Auto {
		return protocol(detect), true
	}
	for _, known := range dialects() {
		if known.name == name {
			return protocol(func(event) (dialect, bool) { return known, true }), true
		}
	}
	return nil, false
}

// Names are those that ByName knows, sorted.
func Names() []string {
	names := []string{Auto}
	for _, known := range dialects() {
		names = append(names, known.name)
	}
	slices.Sort(names)
	return names
}

// detect finds the first agent whose event this surely is.
func detect(e event) (dialect, bool) {
	for _, known := range dialects() {
		if known.sure != nil && known.sure(e) {
			return known, true
		}
	}
	return dialect{}, false
}

// protocol speaks the dialect that choose finds for an event.
func protocol(choose func(event) (dialect, bool)) Protocol {
	return func(ctx context.Context, in io.Reader, out io.Writer, source Source, depth int) error {
		in = io.LimitReader(in, maxEvent)
		e, err := readEvent(in)
		defer drain(ctx, in)()
		spoken, known := choose(e)
		session := e.text(spoken.session...)
		switch {
		// Of an event that breaks off, as a very large one does, the beginning will do.
		case err != nil && !spoken.plain && session == "":
			return fmt.Errorf("read hook event: %w", err)
		case !known:
			return errors.New("read hook event: it is of no known agent")
		}
		carry, err := spoken.carrier(e)
		if err != nil {
			return fmt.Errorf("read hook event: %w", err)
		}
		if carry.answer == nil {
			// Whether a text would arrive is not known: it stays for the next event.
			return nil
		}
		query := feedback.Query{Consumer: consumer(spoken.name, session), Depth: depth, Wait: carry.wait}
		return deliver(ctx, out, source, query, carry)
	}
}

// drain reads the rest of the input: a hook that closes it early may be reported
// as broken. The agent may also keep it open, so that the function that it returns
// waits for the end of the input no longer than there is time.
func drain(ctx context.Context, in io.Reader) func() {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, in)
	}()
	return func() {
		select {
		case <-drained:
		case <-ctx.Done():
		}
	}
}

// deliver asks for what the consumer has not had, writes it, and acknowledges it.
func deliver(ctx context.Context, out io.Writer, source Source, query feedback.Query, carry carrier) error {
	page, err := source.Feedback(ctx, query)
	if err != nil {
		return fmt.Errorf("ask for feedback: %w", err)
	}
	if len(page.Items) == 0 || carry.last && !slices.ContainsFunc(page.Items, refused) {
		return nil
	}
	folded := feedback.Fold(page, maxText)
	answer, err := carry.encode(folded.Text)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("answer in time: %w", err)
	}
	if _, err := out.Write(answer); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	// Written first: what is acknowledged and not written would be lost.
	if err := source.Ack(ctx, feedback.Ack{Consumer: query.Consumer, Cursor: folded.Cursor}); err != nil {
		return fmt.Errorf("acknowledge feedback: %w", err)
	}
	return nil
}

// refused tells whether the item is of something that did not happen: worth that an
// agent that is about to stop goes on.
func refused(entry feedback.Entry) bool {
	switch entry.Outcome {
	case feedback.Denial:
		return true
	case feedback.Used:
		return false
	}
	return entry.Effect != feedback.Notify && !entry.Outcome.OfRequest()
}

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
