// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy"
)

// logOf makes a log bit by bit, so that it can be longer than memory.
type logOf struct {
	line  func(n int) string // "" at the end
	n     int
	ahead string
}

func (l *logOf) Read(into []byte) (int, error) {
	if l.ahead == "" {
		if l.ahead = l.line(l.n); l.ahead == "" {
			return 0, io.EOF
		}
		l.n++
	}
	n := copy(into, l.ahead)
	l.ahead = l.ahead[n:]
	return n, nil
}

func replayOf(t *testing.T, text string, log io.Reader) *replayer {
	t.Helper()
	p, err := policy.Compile([]policy.Document{{Name: "p.yaml", Text: []byte(text)}}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := newReplayer(p.Program, "")
	if err := r.read(log); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReplayLines(t *testing.T) {
	const event = `{"scope":"s","effect":"block","operation":"exec","object":"/bin/git","args":["git"],"rule":"r","clause":"block exec \"git\"","sequence":%d}`
	const text = "policy: |\n  rule r:\n    block exec \"sh\"\n"
	long := strings.Repeat("x", maxLogLine)
	for _, c := range []struct {
		name, log       string
		records, broken int
	}{
		{"empty", "", 0, 0},
		{"blank lines, and one without an end", "\n\r\n  \n" + fmt.Sprintf(event, 1) + "\r\n" + fmt.Sprintf(event, 2), 2, 0},
		{"cut off", fmt.Sprintf(event, 1) + "\n" + event[:40], 1, 1},
		{"no JSON", "2026-11-30 blocked\n" + fmt.Sprintf(event, 1), 1, 1},
		{"other JSON", "[]\n1\nnull\n{}\n\"x\"\n", 0, 5},
		{"two in one line", fmt.Sprintf(event, 1) + fmt.Sprintf(event, 2) + "\n", 0, 1},
		{"wrong types", `{"effect":1,"operation":"exec"}` + "\n" + `{"effect":"block","operation":"exec","args":"x"}`, 0, 2},
		{"bytes", "\x00\xff\xfe\n", 0, 1},
		{"too long, then good", long + long + "\n" + fmt.Sprintf(event, 1), 1, 1},
		{"nested", strings.Repeat("[", 100_000), 0, 1},
		{"fields to come", `{"effect":"block","operation":"exec","object":"/bin/git","rule":"r","clause":"x","hash":{"prev":[1]}}`, 1, 0},
	} {
		r := replayOf(t, text, strings.NewReader(c.log))
		if r.records != c.records || r.broken != c.broken {
			t.Errorf("%s: %d records, %d broken lines", c.name, r.records, r.broken)
		}
	}
}

// Answers are no operations, and what was approved was asked about.
func TestReplayAsks(t *testing.T) {
	const event = `{"scope":"s","effect":%q,"outcome":%q,"operation":"exec","object":"/bin/git","args":["git"],"rule":"r","clause":"ask exec \"git\"","sequence":%d}` + "\n"
	log := fmt.Sprintf(event, "ask", "opened", 1) + fmt.Sprintf(event, "ask", "granted", 2) + fmt.Sprintf(event, "notify", "used", 3) +
		fmt.Sprintf(event, "ask", "denied", 4) + fmt.Sprintf(event, "block", "blocked", 5)
	r := replayOf(t, "policy: |\n  rule r:\n    ask exec \"git\"\n", strings.NewReader(log))
	if r.records != 3 || r.alike != 3 || r.missing != 0 {
		t.Errorf("%d records, %d alike, %d missing", r.records, r.alike, r.missing)
	}
}

// Rules that were added at run time are in no policy here, which is said.
func TestReplayAdded(t *testing.T) {
	const event = `{"scope":"s","effect":"block","outcome":%q,"operation":"exec","object":"/bin/git","args":["git"],"rule":"r","clause":"block exec \"git\"","position":%q,"sequence":%d}` + "\n"
	log := fmt.Sprintf(event, "added", "", 1) + fmt.Sprintf(event, "", "added-1:1:9", 2) + fmt.Sprintf(event, "", "actplane.yaml:3:5", 3)
	r := replayOf(t, "policy: |\n  rule other:\n    block exec \"sh\"\n", strings.NewReader(log))
	if report := r.report("log", nil); report.Records != 2 || report.Added != 1 || report.ByAdded != 1 || report.Missing != 0 {
		t.Errorf("%+v", report)
	}
	var p page
	p.replay("log", "p.yaml", r)
	text := strings.Join(strings.Fields(p.b.String()), " ")
	for _, want := range []string{"Rules were added at run time (1 time in the log), which no policy here has", "1 record that they decided is replayed without them."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// However long a log is, and whatever is in it, memory stays bounded.
func TestReplayMemory(t *testing.T) {
	const lines = 12_000
	argument := strings.Repeat("a", 4<<10)
	r := replayOf(t, "policy: |\n  rule r:\n    block exec \"sh\"\n", &logOf{line: func(n int) string {
		if n == lines {
			return ""
		}
		return fmt.Sprintf(`{"scope":"%d%s","name":"%[1]d","effect":"block","operation":"exec","object":"/bin/%[1]d","args":["x",%[2]q],"rule":"r","clause":"block exec any","sequence":3}`+"\n", n, argument)
	}})
	if r.records != lines || r.unshown+len(r.groups) != lines || len(r.groups) < 100 || len(r.scopes) != maxReplayScopes {
		t.Errorf("%d records, %d groups, %d not shown, %d containers", r.records, len(r.groups), r.unshown, len(r.scopes))
	}
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > 128<<20 {
		t.Errorf("%d MiB are held", after.HeapAlloc>>20)
	}
	runtime.KeepAlive(r)
}

func TestReplayGaps(t *testing.T) {
	log := ""
	for _, n := range []string{"a 5", "a 6", "b 1", "a 9", "b 2", "a 1", "a 2"} {
		var scope string
		var sequence int
		if _, err := fmt.Sscan(n, &scope, &sequence); err != nil {
			t.Fatal(err)
		}
		log += fmt.Sprintf(`{"scope":%q,"effect":"block","operation":"exec","object":"/x","sequence":%d,"lost":1}`+"\n", scope, sequence)
	}
	if r := replayOf(t, "policy: |\n  rule r:\n    block exec \"sh\"\n", strings.NewReader(log)); r.missing != 2 || r.lost != 7 || r.itself != 7 {
		t.Errorf("%d missing, %d lost, %d by the engine", r.missing, r.lost, r.itself)
	}
}
