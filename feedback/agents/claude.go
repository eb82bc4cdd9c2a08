// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/actplane/actplane/feedback"
)

const (
	// claudeEvent bounds the event that is read; a tool's output is part of it.
	claudeEvent = 32 << 20
	// claudeText bounds the answer's text: from 2 KB on Claude Code may show a
	// preview only.
	claudeText = 1900
	// claudeWait is how long a failed tool's hook waits for a reason that is
	// still on its way from the kernel.
	claudeWait = 100 * time.Millisecond
)

// The events of Claude Code that take a text to the model. Measured with
// 2.1.197, which fires one of them for a tool call, and 2.1.332, which fires
// both for a failed one: the ledger sees to it that the text is in one only.
const (
	postToolUse        = "PostToolUse"
	postToolUseFailure = "PostToolUseFailure"
)

// claudeInput is what is needed of an event.
type claudeInput struct {
	session, event string
}

// claudeOutput is the answer. Claude Code drops it without a word if the event's
// name is not the one that it fired.
type claudeOutput struct {
	HookSpecificOutput claudeSpecific `json:"hookSpecificOutput"`
}

type claudeSpecific struct {
	HookEventName     string `json:"hookEventName"`
	AdditionalContext string `json:"additionalContext"`
}

// claude is Claude Code's Protocol.
func claude(ctx context.Context, in io.Reader, out io.Writer, source Source, depth int) error {
	in = io.LimitReader(in, claudeEvent)
	input, err := readClaude(in)
	// A hook that closes its input early may be reported as broken, so the rest
	// is read, but not waited for: the agent may keep it open.
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, in)
	}()
	defer func() {
		select {
		case <-drained:
		case <-ctx.Done():
		}
	}()
	if err != nil {
		return fmt.Errorf("read hook event: %w", err)
	}
	query := feedback.Query{Consumer: consumer("claude", input.session), Depth: depth}
	switch input.event {
	case postToolUse:
	case postToolUseFailure:
		query.Wait = claudeWait
	default:
		// Whether a text would arrive is not known: it stays for the next event.
		return nil
	}
	page, err := source.Feedback(ctx, query)
	if err != nil {
		return fmt.Errorf("ask for feedback: %w", err)
	}
	if len(page.Items) == 0 {
		return nil
	}
	folded := feedback.Fold(page, claudeText)
	answer, err := feedback.EncodeJSON(claudeOutput{claudeSpecific{input.event, folded.Text}})
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

// readClaude reads an event up to the fields that are needed, which come before
// the tool's input and output.
func readClaude(in io.Reader) (claudeInput, error) {
	var input claudeInput
	decoder := json.NewDecoder(in)
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return input, errors.New("it is not a JSON object")
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return input, err
		}
		var target any = new(json.RawMessage)
		switch name {
		case "session_id":
			target = &input.session
		case "hook_event_name":
			target = &input.event
		}
		if err := decoder.Decode(target); err != nil {
			return input, err
		}
		if input.session != "" && input.event != "" {
			return input, nil
		}
	}
	if _, err := decoder.Token(); err != nil {
		return input, err
	}
	if input.event == "" {
		return input, errors.New("it has no hook_event_name")
	}
	return input, nil
}
