// SPDX-License-Identifier: Apache-2.0

package agents

// The forms of answers. Each is exactly what its agents take: some drop an answer
// without a word if it has a field more.

// specific is the form of Claude Code, Codex, Gemini CLI and Qwen Code. They want the
// name of the event that they fired.
func specific(event string) func(string) any {
	return func(text string) any { return specificAnswer{specificOutput{event, text}} }
}

type specificAnswer struct {
	HookSpecificOutput specificOutput `json:"hookSpecificOutput"`
}

type specificOutput struct {
	HookEventName     string `json:"hookEventName"`
	AdditionalContext string `json:"additionalContext"`
}

// flat is Copilot CLI's.
func flat(text string) any { return flatAnswer{text} }

type flatAnswer struct {
	AdditionalContext string `json:"additionalContext"`
}

// snake is Cursor's, and so is followup.
func snake(text string) any { return snakeAnswer{text} }

type snakeAnswer struct {
	AdditionalContext string `json:"additional_context"`
}

type followup struct {
	FollowupMessage string `json:"followup_message"`
}

// modification is Cline's.
func modification(text string) any { return modificationAnswer{text} }

type modificationAnswer struct {
	ContextModification string `json:"contextModification"`
}

// block and deny make an agent go on that is about to stop; deny also replaces the
// error of a tool.
func block(text string) any { return decision{"block", text} }
func deny(text string) any  { return decision{"deny", text} }

type decision struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
}
