// SPDX-License-Identifier: Apache-2.0

// Command model is a scripted stand-in for a language model: it speaks the APIs that
// coding agents use, and answers the nth turn with the nth step of a script. What turn
// it is, it learns from the request: how many results of tools are in it. So retries
// and side requests upset nothing, and a run is the same each time.
//
//	model SCRIPT LOG ADDRESS
//
// SCRIPT is a JSON list of steps. LOG gets each request as a line of JSON, with its turn;
// it is there once the server listens.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// step is one answer: a call of a tool, with arguments or free text, or words.
type step struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	// Input makes it a call of a custom tool, of Responses only.
	Input string `json:"input"`
	Text  string `json:"text"`
	// After is a file that has to be there before the answer is given. That it is
	// waited for tells another file, of the same name with ".wanted".
	After string `json:"after"`
}

// patience is how long the answer waits for its file.
const patience = 5 * time.Minute

// object is JSON that is written and read as it is.
type object = map[string]any

// server answers requests.
type server struct {
	steps []step

	mu      sync.Mutex
	log     *os.File // guarded by mu
	answers int      // guarded by mu
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: model SCRIPT LOG ADDRESS")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	s := new(server)
	if err := json.Unmarshal(text, &s.steps); err != nil || len(s.steps) == 0 {
		return fmt.Errorf("%s is no list of steps: %w", args[0], err)
	}
	listener, err := net.Listen("tcp", args[2])
	if err != nil {
		return err
	}
	if s.log, err = os.OpenFile(args[1], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return err
	}
	return http.Serve(listener, s)
}

// ServeHTTP routes by the ends of paths: agents put different things before them.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var body object
	if json.Unmarshal(text, &body) != nil {
		body = object{}
	}
	path := r.URL.Path
	switch {
	case strings.HasSuffix(path, "count_tokens"), strings.HasSuffix(path, "countTokens"):
		writeJSON(w, object{"input_tokens": 10, "totalTokens": 10})
	case strings.HasSuffix(path, "/messages"):
		s.messages(w, body)
	case strings.HasSuffix(path, "/responses"):
		s.responses(w, body)
	case strings.HasSuffix(path, "/chat/completions"):
		s.completions(w, body)
	case strings.Contains(path, "enerateContent"):
		s.contents(w, body, strings.Contains(path, ":stream"))
	default:
		writeJSON(w, object{"object": "list", "data": []any{object{"id": "m", "object": "model"}}, "models": []any{}})
	}
}

// next is the step of a turn, and the answer's number. Requests without tools are side
// business, such as a title for the session, and have no turn.
func (s *server) next(body object, turn int, tools bool) (step, int) {
	if !tools {
		turn = -1
	}
	n := s.record(body, turn)
	if turn < 0 {
		return step{Text: "ok"}, n
	}
	next := s.steps[min(turn, len(s.steps)-1)]
	if next.After != "" {
		if err := os.WriteFile(next.After+".wanted", nil, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "model:", err)
		}
	}
	for deadline := time.Now().Add(patience); next.After != "" && time.Now().Before(deadline); {
		if _, err := os.Stat(next.After); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return next, n
}

// record logs a request and numbers its answer.
func (s *server) record(body object, turn int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	line, err := json.Marshal(object{"turn": turn, "body": body})
	if err == nil {
		_, err = s.log.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
	}
	s.answers++
	return s.answers
}

// list is a field that is a list, objects in it alone.
func list(of object, field string) []object {
	values, _ := of[field].([]any)
	var objects []object
	for _, value := range values {
		if o, ok := value.(object); ok {
			objects = append(objects, o)
		}
	}
	return objects
}

func count(objects []object, is func(object) bool) int {
	n := 0
	for _, o := range objects {
		if is(o) {
			n++
		}
	}
	return n
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // to a client that left
}

// events starts a stream of server-sent events.
func events(w http.ResponseWriter) func(event string, data any) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(event string, data any) {
		text, plain := data.(string)
		if !plain {
			encoded, err := json.Marshal(data)
			if err != nil {
				return
			}
			text = string(encoded)
		}
		if event != "" {
			fmt.Fprintf(w, "event: %s\n", event)
		}
		fmt.Fprintf(w, "data: %s\n\n", text)
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
	}
}
