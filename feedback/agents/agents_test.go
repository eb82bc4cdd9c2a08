// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/internal/testenv"
)

var update = flag.Bool("update", false, "write the golden files")

// scope is a feedback.Scope that knows nothing of its peers.
type scope struct{ *feedback.Log }

func (scope) Status() feedback.Status           { return feedback.Status{} }
func (scope) Policy() []feedback.PolicyDocument { return nil }
func (scope) Peer(int) (feedback.Process, bool) { return feedback.Process{}, true }
func (scope) Check(context.Context, feedback.Process, feedback.CheckRequest) (feedback.Checked, error) {
	return feedback.Checked{}, errors.New("no engine")
}
func (scope) Narrow(context.Context, feedback.Process, feedback.NarrowRequest) (feedback.Narrowed, error) {
	return feedback.Narrowed{}, errors.New("no engine")
}

func newSource(t *testing.T) (*feedback.Log, *feedback.Client) {
	t.Helper()
	log := feedback.NewLog(feedback.LogSize, 0)
	path := filepath.Join(t.TempDir(), "s")
	listener := testenv.ListenUnix(t, path)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- feedback.NewServer(scope{log}, feedback.Options{}).Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return log, feedback.NewClient(path)
}

func push() feedback.Item {
	return feedback.Item{
		Effect: feedback.Block, Operation: "exec", Object: "/usr/bin/git", Args: []string{"git", "push", "origin"},
		Rule: "no-push", Because: "Pushing needs a human. Open a merge request with `make mr` instead.",
	}
}

// input reads an event as its agent writes it: testdata/NAME.in.json.
func input(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".in.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func mustFind(t testing.TB, name string) Protocol {
	t.Helper()
	protocol, ok := ByName(name)
	if !ok {
		t.Fatalf("no protocol %s", name)
	}
	return protocol
}

func ask(t *testing.T, source Source, name, in string) string {
	t.Helper()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := mustFind(t, name)(ctx, strings.NewReader(in), &out, source, -1); err != nil {
		t.Errorf("%v", err)
	}
	return out.String()
}

func TestClaudeDeliversOnce(t *testing.T) {
	log, source := newSource(t)
	post, failure := input(t, "claude-2.1.332-PostToolUse"), input(t, "claude-2.1.332-PostToolUseFailure")
	if got := ask(t, source, "claude", post); got != "" {
		t.Errorf("nothing happened, and yet %s", got)
	}
	log.Append(push())
	// 2.1.332 fires both events for one failed tool call.
	if got := ask(t, source, "claude", failure); strings.Count(got, "was blocked") != 1 {
		t.Errorf("got %s", got)
	}
	if got := ask(t, source, "claude", post); got != "" {
		t.Errorf("again: %s", got)
	}
	other := strings.ReplaceAll(post, `"session_id":"`, `"session_id":"other-`)
	if got := ask(t, source, "claude", other); strings.Count(got, "was blocked") != 1 {
		t.Errorf("another session: %s", got)
	}
	log.Append(push())
	for range 3 {
		if got := ask(t, source, "claude", strings.ReplaceAll(post, "PostToolUse", "PreToolUse")); got != "" {
			t.Errorf("an event that may not take the text: %s", got)
		}
	}
	if got := ask(t, source, "claude", post); strings.Count(got, "was blocked") != 1 {
		t.Errorf("the next event: %s", got)
	}
}

// Both events at once, as an agent fires them.
func TestClaudeDeliversOnceAtOnce(t *testing.T) {
	log, source := newSource(t)
	post, failure := input(t, "claude-2.1.332-PostToolUse"), input(t, "claude-2.1.332-PostToolUseFailure")
	for range 20 {
		log.Append(push())
		texts := make(chan string, 2)
		for _, in := range []string{post, failure} {
			go func() { texts <- ask(t, source, "claude", in) }()
		}
		if got := <-texts + <-texts; strings.Count(got, "was blocked") != 1 {
			t.Fatalf("got %s", got)
		}
	}
}

// A thousand waiting items come out in order, each once, in as many texts as it takes.
func TestClaudeDrains(t *testing.T) {
	const items = 1000
	log, source := newSource(t)
	for i := range items {
		item := push()
		item.Rule = fmt.Sprintf("rule-%04d.", i)
		log.Append(item)
	}
	var told []string
	rounds, rule := 0, regexp.MustCompile(`rule-\d{4}\.`)
	for ; ; rounds++ {
		out := ask(t, source, "claude", input(t, "claude-2.1.332-PostToolUse"))
		if out == "" {
			break
		}
		var answer specificAnswer
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatal(err)
		}
		text := answer.HookSpecificOutput.AdditionalContext
		if len(text) >= 2000 {
			t.Fatalf("%d bytes", len(text))
		}
		told = append(told, rule.FindAllString(text, -1)...)
	}
	if len(told) != items || !slices.IsSorted(told) || len(slices.Compact(told)) != items {
		t.Errorf("told of %d: %q", len(told), told)
	}
	t.Logf("drained in %d texts", rounds)
}

func TestClaudeFindsTheFieldsWhereverTheyAre(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for _, in := range []string{
		`{"tool_response":{"deep":[1,{"hook_event_name":"no"}]},"hook_event_name":"PostToolUse","session_id":"s"}`,
		`{"tool_input":"` + large + `","session_id":"s","hook_event_name":"PostToolUse"}`,
		`{"session_id":"s","hook_event_name":"PostToolUse","rest":"` + large + `"`,
		`{"hook_event_name":"PostToolUse"}`,
		`{"session_id":"../../\u0000 ","hook_event_name":"PostToolUse"}`,
	} {
		log, source := newSource(t)
		log.Append(push())
		if got := ask(t, source, "claude", in); strings.Count(got, "was blocked") != 1 {
			t.Errorf("%.80s: got %q", in, got)
		}
	}
}

func TestClaudeIsSilentOnGarbage(t *testing.T) {
	for _, in := range []string{
		"", "null", "[]", "{", `{"hook_event_name":1}`, `{"session_id":"s"}`, `{"a":1}`, `{"hook_event_name":"PostToolUse"`, "\xff\x00", `"x"`,
	} {
		log, source := newSource(t)
		log.Append(push())
		var out bytes.Buffer
		if err := mustFind(t, "claude")(t.Context(), strings.NewReader(in), &out, source, -1); err == nil || out.Len() > 0 {
			t.Errorf("%q: wrote %q, error %v", in, out.String(), err)
		}
	}
}

// broken is a Source, a reader and a writer that do not work.
type broken struct{ page feedback.Page }

func (b broken) Feedback(context.Context, feedback.Query) (feedback.Page, error) {
	if b.page.Items == nil {
		return b.page, feedback.ErrNoScope
	}
	return b.page, nil
}
func (broken) Ack(context.Context, feedback.Ack) error { return errors.New("acknowledged") }
func (broken) Write([]byte) (int, error)               { return 0, io.ErrClosedPipe }

func TestClaudeTrouble(t *testing.T) {
	in := input(t, "claude-2.1.332-PostToolUse")
	var out bytes.Buffer
	if err := mustFind(t, "claude")(t.Context(), strings.NewReader(in), &out, broken{}, -1); !errors.Is(err, feedback.ErrNoScope) || out.Len() > 0 {
		t.Errorf("no scope: %v, %q", err, out.String())
	}
	page := feedback.Page{Items: []feedback.Entry{{Sequence: 1, Message: "m"}}, Cursor: 1}
	// What could not be written is not acknowledged.
	if err := mustFind(t, "claude")(t.Context(), strings.NewReader(in), broken{}, broken{page}, -1); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("no output: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := mustFind(t, "claude")(ctx, strings.NewReader(in), &out, broken{page}, -1); !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("too late: %v, %q", err, out.String())
	}
}

func TestByName(t *testing.T) {
	for _, name := range Names() {
		if _, ok := ByName(name); !ok {
			t.Errorf("%s is named and not known", name)
		}
	}
	if _, ok := ByName("nope"); ok {
		t.Error("nope is known")
	}
}

func TestConsumer(t *testing.T) {
	if got := consumer("claude", "6c5a-f"); got != "claude:6c5a-f" {
		t.Error(got)
	}
	seen := map[string]bool{}
	for _, session := range []string{"", " ", "a\n", strings.Repeat("a", 65), strings.Repeat("a", 1<<20)} {
		name := consumer("claude", session)
		if len(name) > feedback.MaxConsumer || seen[name] {
			t.Errorf("%.20q: %s", session, name)
		}
		seen[name] = true
	}
}

// Whatever an event is, an answer is one JSON object of a known form, or words for
// those that have none.
func FuzzEvents(f *testing.F) {
	files, err := filepath.Glob("testdata/*.in.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, seed := range []string{
		"", "{", `{"session_id":"s","hook_event_name":"PostToolUse"}`, `{"hook_event_name":"PostToolUseFailure","x":[{}]}`,
		`{"session_id":null,"hook_event_name":"PostToolUse"}`, `[{"hook_event_name":"PostToolUse"}]`,
	} {
		f.Add([]byte(seed))
	}
	source := broken{feedback.Page{Items: []feedback.Entry{{Sequence: 1, Effect: feedback.Block, Message: "m"}}, Cursor: 1}}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, name := range Names() {
			var out bytes.Buffer
			_ = mustFind(t, name)(t.Context(), bytes.NewReader(in), &out, source, -1)
			if out.Len() == 0 {
				continue
			}
			if isPlain(name) {
				if out.String() != "m\n" {
					t.Errorf("%q: %s got %q", in, name, out.String())
				}
				continue
			}
			var answer struct {
				specificAnswer
				snakeAnswer
				followup
				modificationAnswer
				decision
				Flat string `json:"additionalContext"`
			}
			decoder := json.NewDecoder(&out)
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&answer); err != nil || decoder.More() {
				t.Errorf("%q: %s: not one answer: %v", in, name, err)
			}
		}
	})
}
