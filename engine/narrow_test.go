// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/feedback"
	"github.com/actplane/actplane/policy"
)

// narrowed begins a container under a real policy, whose process 100 has the number 5.
func (m *machine) narrowed(e *Engine, client api.EngineClient, pid int) (*inside, kernel.Slot, feedback.Process) {
	m.t.Helper()
	p, err := policy.Compile([]policy.Document{{Name: "p.yaml", Text: []byte("version: 1\nworkspace: /w\npolicy: |\n  source SECRET = file \".env\"\n  rule a:\n    block exec \"git\" if SECRET\n")}},
		policy.Options{Protect: []string{"/w/actplane.yaml"}})
	if err != nil {
		m.t.Fatal(err)
	}
	text, err := json.Marshal(p.Program)
	if err != nil {
		m.t.Fatal(err)
	}
	m.prepareProgram(client, "c", text)
	m.container("c", pid)
	m.attach(client, "c", pid)
	s := e.scope("c")
	slot := *s.now().Slot
	m.kernel.set(func() { m.kernel.processes[pid] = kernel.Process{ID: 5, Slot: slot, Ancestors: []kernel.ProcessID{4}} })
	return &inside{engine: e, scope: s}, slot, feedback.Process{PID: pid, ID: 5, Ancestors: []uint64{4}}
}

func (m *machine) narrow(i *inside, peer feedback.Process, whom, text string) (feedback.Narrowed, error) {
	i.scope.adding.rested = time.Time{} // this machine may be slow
	return i.Narrow(m.t.Context(), peer, feedback.NarrowRequest{Policy: text, For: whom})
}

// rulesIn names the rules of what the kernel has.
func rulesIn(t *testing.T, m *machine, s *scope, slot kernel.Slot) string {
	t.Helper()
	m.kernel.mu.Lock()
	defer m.kernel.mu.Unlock()
	program := s.rules()
	var names []string
	for _, c := range m.kernel.slots[slot].Image.Clauses {
		if r := program.Rules[program.Clauses[c.Clause].Rule]; r.Pos != policy.BuiltIn && !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, " ")
}

const cut = "rule cut:\n  block write \"out/**\" if SECRET\n"

func TestNarrow(t *testing.T) {
	m := newMachine(t)
	m.compile = policy.CompileProgram
	e, client, stop := m.start()
	i, slot, peer := m.narrowed(e, client, 100)
	got, err := m.narrow(i, peer, feedback.ForContainer, cut)
	if err != nil || got.Name != "added-1" || got.For != feedback.ForContainer || got.SHA256 != policy.Sum([]byte(cut)) || got.Known {
		t.Fatalf("%+v, %v", got, err)
	}
	if rules := rulesIn(t, m, i.scope, slot); rules != "a cut" {
		t.Errorf("in force: %s", rules)
	}
	events := waitEvents(t, client, "c", 1)
	if last := events[0]; last.Outcome != "added" || last.Operation != "rules for the container" || !strings.Contains(last.Object, "added-1 sha256:"+got.SHA256) || last.Pid != 100 {
		t.Errorf("%+v", last)
	}
	if lines := m.log("rules added from inside"); len(lines) != 1 || !strings.Contains(lines[0], got.SHA256) {
		t.Errorf("log: %v", lines)
	}
	// The same again is known, and takes nothing; other rules so soon are too many.
	if again, err := m.narrow(i, peer, feedback.ForContainer, cut); err != nil || !again.Known || again.Name != "added-1" {
		t.Errorf("%+v, %v", again, err)
	}
	_, err = m.narrow(i, peer, feedback.ForProcess, cut)
	wantRefusal(t, err, http.StatusTooManyRequests, "less than a second ago")
	m.advance(2 * time.Second)
	got, err = m.narrow(i, peer, feedback.ForProcess, "source NEW = exec \"x\"\nrule own:\n  block exec any unless after exec \"y\"\n  block read any if NEW")
	if err != nil || got.Name != "added-2" || len(got.Notes) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	label := uint64(1) << (len(i.scope.rules().Labels) - 1)
	if p := m.kernel.processes[100]; p.Labels != label {
		t.Errorf("the process carries %b, want %b", p.Labels, label)
	}
	if layers := m.list(client)["c"].Layers; strings.Join(layers, ", ") != "p.yaml, added-1 (at run time, for the container), added-2 (at run time, for the process)" {
		t.Errorf("%v", layers)
	}
	if documents := i.Policy(); len(documents) != 3 || documents[1].Text != cut || documents[2].For != feedback.ForProcess {
		t.Errorf("%+v", documents)
	}
	m.deny(slot, 1)
	if last := waitEvents(t, client, "c", 3)[2]; last.Sequence != 3 {
		t.Errorf("%+v", last)
	}

	// The next daemon has the same.
	stop()
	e, client, _ = m.start()
	i = &inside{engine: e, scope: e.scope("c")}
	if known, err := m.narrow(i, peer, feedback.ForContainer, cut); err != nil || !known.Known {
		t.Errorf("%+v, %v", known, err)
	}
	// At the next start what was for the container is in force, what was for a process not.
	m.exit("c", 100)
	closeScope(t, client, "c")
	i, slot, _ = m.narrowed(e, client, 200)
	if rules := rulesIn(t, m, i.scope, slot); rules != "a cut" {
		t.Errorf("in force after a restart: %s", rules)
	}
}

func wantRefusal(t *testing.T, err error, status int, says string) {
	t.Helper()
	var refusal *feedback.Refusal
	if !errors.As(err, &refusal) || refusal.Status != status || !strings.Contains(refusal.Error(), says) {
		t.Errorf("%v, want %d and %q", err, status, says)
	}
}

func TestNarrowRefuses(t *testing.T) {
	m := newMachine(t)
	m.compile = policy.CompileProgram
	e, client, _ := m.start()
	i, slot, peer := m.narrowed(e, client, 100)
	before := rulesIn(t, m, i.scope, slot)
	_, err := m.narrow(i, peer, feedback.ForContainer, "rule x:\n  block exec \"a\" if SECERT\n")
	wantRefusal(t, err, http.StatusUnprocessableEntity, `2:21: error[P203]: label "SECERT" is not declared`)
	_, err = m.narrow(i, feedback.Process{PID: 101, ID: 6}, feedback.ForProcess, cut)
	wantRefusal(t, err, http.StatusConflict, "has ended")
	_, err = i.Narrow(t.Context(), peer, feedback.NarrowRequest{Policy: cut, For: feedback.ForProcess, Depth: 1})
	wantRefusal(t, err, http.StatusConflict, "has ended")
	m.kernel.set(func() { m.kernel.swap = errors.New("no room") })
	if _, err = m.narrow(i, peer, feedback.ForContainer, cut); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("the kernel refuses: %v", err)
	}
	m.kernel.set(func() { m.kernel.swap = nil })
	if after := rulesIn(t, m, i.scope, slot); after != before || len(i.Policy()) != 1 || i.scope.now().Next != nil {
		t.Errorf("what was refused has left %s, %v", after, i.Policy())
	}
	for n := range maxAdded {
		m.advance(2 * time.Second)
		if _, err := m.narrow(i, peer, feedback.ForContainer, strings.Repeat("#", n)+"\n"+cut); err != nil {
			t.Fatal(err)
		}
	}
	m.advance(2 * time.Second)
	_, err = m.narrow(i, peer, feedback.ForContainer, "# one more\n"+cut)
	wantRefusal(t, err, http.StatusConflict, "which is the limit")
	e.config.NoNarrowing = true
	_, err = m.narrow(i, peer, feedback.ForContainer, cut)
	wantRefusal(t, err, http.StatusForbidden, "narrowing: refuse")
}

// A daemon that dies between the kernel's work and its own note ends what it began.
func TestNarrowIsFinished(t *testing.T) {
	m := newMachine(t)
	m.compile = policy.CompileProgram
	e, client, stop := m.start()
	i, slot, _ := m.narrowed(e, client, 100)
	extended, err := policy.Extend(i.scope.rules(), policy.Addition{Name: "added-1", Text: []byte(cut)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(extended.Program)
	if err != nil {
		t.Fatal(err)
	}
	l := layer{Name: "added-1", Text: []byte(cut), Added: &addition{}}
	if err := i.scope.change(func(r *record) { r.Next = &next{Program: text, Layer: l} }); err != nil {
		t.Fatal(err)
	}
	stop()
	e, _, _ = m.start()
	if rules := rulesIn(t, m, e.scope("c"), slot); rules != "a cut" || e.scope("c").now().Next != nil {
		t.Errorf("in force: %s", rules)
	}
}

// A container whose policy has become another one, which its rules do not fit, does not
// start without them.
func TestNarrowDoesNotFit(t *testing.T) {
	m := newMachine(t)
	m.compile = policy.CompileProgram
	e, client, _ := m.start()
	i, _, peer := m.narrowed(e, client, 100)
	if _, err := m.narrow(i, peer, feedback.ForContainer, cut); err != nil {
		t.Fatal(err)
	}
	m.exit("c", 100)
	closeScope(t, client, "c")
	p, err := policy.Compile([]policy.Document{{Name: "p.yaml", Text: []byte("version: 1\npolicy: |\n  rule a: block exec \"git\"\n")}}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p.Program)
	if err != nil {
		t.Fatal(err)
	}
	m.prepareProgram(client, "c", text)
	m.container("c", 200)
	_, err = client.Attach(t.Context(), &api.AttachRequest{Id: "c", Pid: 200, Rootfs: "/r"})
	wantError(t, err, `run "actplane state reset c" to let it start without them`)
}
