// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"strings"
)

func isType(wanted string) func(object) bool {
	return func(o object) bool { return o["type"] == wanted }
}

func streams(body object) bool { return body["stream"] == true }

func name(prefix string, n int) string { return fmt.Sprintf("%s_%d", prefix, n) }

// messages is Anthropic's API.
func (s *server) messages(w http.ResponseWriter, body object) {
	turn := 0
	for _, message := range list(body, "messages") {
		turn += count(list(message, "content"), isType("tool_result"))
	}
	next, n := s.next(body, turn, len(list(body, "tools")) > 0)
	block, start, delta, reason := object{"type": "text", "text": next.Text}, object{"type": "text", "text": ""},
		object{"type": "text_delta", "text": next.Text}, "end_turn"
	if next.Tool != "" {
		block = object{"type": "tool_use", "id": name("toolu", n), "name": next.Tool, "input": next.Args}
		start = object{"type": "tool_use", "id": name("toolu", n), "name": next.Tool, "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": string(next.Args)}
		reason = "tool_use"
	}
	usage := object{"input_tokens": 10, "output_tokens": 5}
	message := func(content []any, stop any) object {
		return object{"id": name("msg", n), "type": "message", "role": "assistant", "model": body["model"],
			"content": content, "stop_reason": stop, "stop_sequence": nil, "usage": usage}
	}
	if !streams(body) {
		writeJSON(w, message([]any{block}, reason))
		return
	}
	send := events(w)
	of := func(kind string, fields object) {
		fields["type"] = kind
		send(kind, fields)
	}
	of("message_start", object{"message": message([]any{}, nil)})
	of("content_block_start", object{"index": 0, "content_block": start})
	of("content_block_delta", object{"index": 0, "delta": delta})
	of("content_block_stop", object{"index": 0})
	of("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 5}})
	of("message_stop", object{})
}

// responses is OpenAI's newer API.
func (s *server) responses(w http.ResponseWriter, body object) {
	turn := count(list(body, "input"), func(o object) bool {
		kind, _ := o["type"].(string)
		return strings.HasSuffix(kind, "_output")
	})
	next, n := s.next(body, turn, len(list(body, "tools")) > 0)
	var item object
	switch {
	case next.Input != "":
		item = object{"type": "custom_tool_call", "id": name("ctc", n), "call_id": name("call", n), "name": next.Tool, "input": next.Input, "status": "completed"}
	case next.Tool != "":
		item = object{"type": "function_call", "id": name("fc", n), "call_id": name("call", n), "name": next.Tool, "arguments": string(next.Args), "status": "completed"}
	default:
		item = object{"type": "message", "id": name("msg", n), "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": next.Text, "annotations": []any{}}}}
	}
	response := func(status string, output []any) object {
		return object{"id": name("resp", n), "object": "response", "created_at": 1, "status": status, "model": body["model"], "output": output,
			"usage": object{"input_tokens": 10, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 5,
				"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 15}}
	}
	if !streams(body) {
		writeJSON(w, response("completed", []any{item}))
		return
	}
	send := events(w)
	of := func(kind string, fields object) {
		fields["type"] = "response." + kind
		send("response."+kind, fields)
	}
	of("created", object{"response": response("in_progress", []any{})})
	of("output_item.added", object{"output_index": 0, "item": item})
	if next.Tool == "" {
		of("output_text.delta", object{"item_id": item["id"], "output_index": 0, "content_index": 0, "delta": next.Text})
	}
	of("output_item.done", object{"output_index": 0, "item": item})
	of("completed", object{"response": response("completed", []any{item})})
}

// completions is OpenAI's older API, which most agents can speak.
func (s *server) completions(w http.ResponseWriter, body object) {
	turn := count(list(body, "messages"), func(o object) bool { return o["role"] == "tool" })
	next, n := s.next(body, turn, len(list(body, "tools")) > 0)
	message, reason := object{"role": "assistant", "content": next.Text}, "stop"
	if next.Tool != "" {
		call := object{"index": 0, "id": name("call", n), "type": "function",
			"function": object{"name": next.Tool, "arguments": string(next.Args)}}
		message, reason = object{"role": "assistant", "content": nil, "tool_calls": []any{call}}, "tool_calls"
	}
	usage := object{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	answer := func(kind string, choices []any) object {
		return object{"id": name("chatcmpl", n), "object": kind, "created": 1, "model": body["model"], "choices": choices}
	}
	if !streams(body) {
		whole := answer("chat.completion", []any{object{"index": 0, "message": message, "finish_reason": reason}})
		whole["usage"] = usage
		writeJSON(w, whole)
		return
	}
	send := events(w)
	const kind = "chat.completion.chunk"
	send("", answer(kind, []any{object{"index": 0, "delta": message, "finish_reason": nil}}))
	send("", answer(kind, []any{object{"index": 0, "delta": object{}, "finish_reason": reason}}))
	last := answer(kind, []any{})
	last["usage"] = usage
	send("", last)
	send("", "[DONE]")
}

// contents is Google's API.
func (s *server) contents(w http.ResponseWriter, body object, stream bool) {
	turn := 0
	for _, content := range list(body, "contents") {
		turn += count(list(content, "parts"), func(o object) bool { return o["functionResponse"] != nil })
	}
	tools := false
	for _, tool := range list(body, "tools") {
		tools = tools || len(list(tool, "functionDeclarations")) > 0
	}
	next, n := s.next(body, turn, tools)
	part := object{"text": next.Text}
	if next.Tool != "" {
		part = object{"functionCall": object{"id": name("call", n), "name": next.Tool, "args": next.Args}}
	}
	answer := object{
		"candidates":    []any{object{"content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
		"responseId":    name("resp", n),
	}
	if !stream {
		writeJSON(w, answer)
		return
	}
	events(w)("", answer)
}
