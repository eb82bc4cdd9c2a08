// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/actplane/actplane/feedback"
)

// dialect is what agents' hooks differ in.
type dialect struct {
	name    string
	session []string // the fields that may hold the session's id, the best first
	event   func(event) string
	sure    func(event) bool // whether it is an event of this agent, and no other's; may be nil
	// carriers are the events that take a text to the model. Of others, and of events
	// that a newer version brings, it is not known.
	carriers map[string]func(event) carrier
	// plain agents have no protocol of their own: any input will do.
	plain bool
}

// carrier is how one event takes a text to the model.
type carrier struct {
	answer func(text string) any
	wait   time.Duration // how long to wait for what is on its way
	// last is set where the agent stops unless it is answered. It is made to go on
	// only for what was refused, and only once.
	last bool
}

// carrier finds out how an event carries a text, if at all.
func (d dialect) carrier(e event) (carrier, error) {
	if d.plain {
		return plainText(e), nil
	}
	name := d.event(e)
	if name == "" {
		return carrier{}, errors.New("it has no name")
	}
	if make, known := d.carriers[name]; known {
		return make(e), nil
	}
	return carrier{}, nil
}

// encode is the answer as the agent reads it.
func (c carrier) encode(text string) ([]byte, error) {
	answer := c.answer(text)
	if words, plain := answer.(string); plain {
		return []byte(words + "\n"), nil
	}
	return feedback.EncodeJSON(answer)
}

// dialects are all that are spoken, measured with the versions that docs/feedback.md
// names. Those whose events only they have come first.
func dialects() []dialect {
	return []dialect{
		{
			name: "copilot", session: []string{"sessionId"}, event: copilotEvent,
			sure: func(e event) bool { return e.has("sessionId", "timestamp", "cwd") && !e.has("hookName") },
			carriers: map[string]func(event) carrier{
				"postToolUse":         always(flat),
				"postToolUseFailure":  failed(flat),
				"userPromptSubmitted": always(flat),
				"agentStop":           unlessAgain(block),
			},
		},
		{
			name: "cline", session: []string{"taskId"}, event: named("hookName"),
			sure:     func(e event) bool { return e.has("hookName", "taskId") },
			carriers: map[string]func(event) carrier{"tool_result": always(modification)},
		},
		{
			name: "cursor", session: []string{"conversation_id"}, event: named("hook_event_name"),
			sure: func(e event) bool { return e.has("hook_event_name", "conversation_id") },
			carriers: map[string]func(event) carrier{
				"postToolUse": always(snake),
				"stop":        cursorStop,
			},
		},
		{
			name: "gemini", session: []string{"session_id"}, event: named("hook_event_name"),
			sure: func(e event) bool {
				name := e.text("hook_event_name")
				return name == "AfterTool" || name == "BeforeAgent" || name == "AfterAgent"
			},
			carriers: map[string]func(event) carrier{
				"AfterTool":   geminiTool,
				"BeforeAgent": nested("BeforeAgent"),
				"AfterAgent":  unlessAgain(deny),
			},
		},
		{
			name: "codex", session: []string{"session_id"}, event: named("hook_event_name"),
			sure: func(e event) bool { return e.has("hook_event_name", "turn_id", "model") },
			carriers: map[string]func(event) carrier{
				"PostToolUse":      nested("PostToolUse"),
				"UserPromptSubmit": nested("UserPromptSubmit"),
				"Stop":             unlessAgain(block),
			},
		},
		{
			name: "qwen", session: []string{"session_id"}, event: named("hook_event_name"),
			sure: func(e event) bool { return e.has("hook_event_name", "session_id", "timestamp") },
			carriers: map[string]func(event) carrier{
				"PostToolUse":        nested("PostToolUse"),
				"PostToolUseFailure": late(nested("PostToolUseFailure")),
				"UserPromptSubmit":   nested("UserPromptSubmit"),
				"Stop":               unlessAgain(block),
			},
		},
		{
			name: "claude", session: []string{"session_id"}, event: named("hook_event_name"),
			sure: func(e event) bool { return e.has("hook_event_name", "session_id", "transcript_path") },
			carriers: map[string]func(event) carrier{
				"PostToolUse":        nested("PostToolUse"),
				"PostToolUseFailure": late(nested("PostToolUseFailure")),
				// Of an edit that was rejected before it ran there is no other event.
				"PostToolBatch":    nested("PostToolBatch"),
				"UserPromptSubmit": nested("UserPromptSubmit"),
				// To block is shown twice by some versions.
				"Stop": unlessAgain(specific("Stop")),
			},
		},
		{name: "opencode", session: []string{"sessionID"}, plain: true},
		{name: "pi", session: []string{"session_id"}, plain: true},
		{name: "generic", session: []string{"session_id", "sessionId", "sessionID", "conversation_id", "thread_id"}, plain: true},
	}
}

func named(field string) func(event) string {
	return func(e event) string { return e.text(field) }
}

// copilotEvent tells events apart by what is in them: they have no name.
func copilotEvent(e event) string {
	switch {
	case e.has("toolResult"):
		return "postToolUse"
	case e.has("toolName", "error"):
		return "postToolUseFailure"
	case e.has("stopReason"):
		return "agentStop"
	case e.has("prompt"):
		return "userPromptSubmitted"
	}
	return "another"
}

func always(answer func(string) any) func(event) carrier {
	return func(event) carrier { return carrier{answer: answer} }
}

func failed(answer func(string) any) func(event) carrier { return late(always(answer)) }

// late waits for the reason.
func late(make func(event) carrier) func(event) carrier {
	return func(e event) carrier {
		c := make(e)
		c.wait = failureWait
		return c
	}
}

func nested(event string) func(event) carrier { return always(specific(event)) }

// unlessAgain keeps an agent from stopping, but no agent that goes on already because
// a hook wanted it. One that does not say is left alone.
func unlessAgain(answer func(string) any) func(event) carrier {
	return func(e event) carrier {
		if !e.is("stop_hook_active", "false") {
			return carrier{}
		}
		return carrier{answer: answer, last: true}
	}
}

func cursorStop(e event) carrier {
	if !e.is("status", `"completed"`) || !e.is("loop_count", "0") {
		return carrier{}
	}
	return carrier{answer: func(text string) any { return followup{text} }, last: true}
}

// geminiTool: where the tool itself failed, Gemini CLI drops the text of a hook, and
// takes a reason in place of the error.
func geminiTool(e event) carrier {
	var response struct {
		Error *struct{ Message string }
	}
	if !e.has("tool_response") {
		return carrier{}
	}
	if json.Unmarshal(e["tool_response"], &response) != nil || response.Error == nil {
		return carrier{answer: specific("AfterTool")}
	}
	message := response.Error.Message
	return carrier{wait: failureWait, answer: func(text string) any {
		if message != "" {
			text = message + "\n" + text
		}
		return deny(text)
	}}
}

// plainText is for agents whose plugin, or whose user, does the rest. It may say that
// a tool has failed.
func plainText(e event) carrier {
	c := carrier{answer: func(text string) any { return text }}
	if e.is("failed", "true") {
		c.wait = failureWait
	}
	return c
}
