// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/approval"
	"github.com/actplane/actplane/internal/hostcall"
)

const deadline = 20 * time.Second

// receiver is a webhook's other end.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	status []int // of the next answers; then 204
	hold   chan struct{}
}

type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, received{req.Header, body})
		status, hold := http.StatusNoContent, r.hold
		if len(r.status) > 0 {
			status, r.status = r.status[0], r.status[1:]
		}
		r.mu.Unlock()
		if hold != nil {
			<-hold
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) wait(t *testing.T, n int) []received {
	t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		got := r.got
		r.mu.Unlock()
		if len(got) >= n {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages, want %d", len(got), n)
		}
	}
}

// clock is a time that passes only where somebody pauses.
type clock struct {
	mu     sync.Mutex
	at     time.Time
	paused []time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pause(ctx context.Context, d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	c.paused = append(c.paused, d)
	return ctx.Err() == nil
}

// run starts a notifier of one target, with a clock of its own.
func run(t *testing.T, n approval.Notification) (*Notifier, *clock) {
	t.Helper()
	notifications := []approval.Notification{n}
	if err := approval.CheckAll(nil, notifications); err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	notifier, err := New(notifications, nil, logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{at: time.Unix(1_700_000_000, 0)}
	notifier.pause = c.pause
	notifier.targets[0].now = c.now
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { notifier.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return notifier, c
}

func request(id string) Event {
	r := &api.Request{
		Id: id, Scope: "0123", ScopeName: "web", State: "open", Rule: "push", Because: "Ask first.", Operation: "exec", Object: []byte("/usr/bin/git"),
		Args: [][]byte{[]byte("git"), []byte("push"), []byte("https://user:hunter2@host/\x1b[2J<!channel>")}, Cwd: []byte("/w"), OpenedUnixMs: 1,
	}
	d := r.Document()
	return Event{Kind: approval.EventRequest, Type: "request.opened", Time: time.Unix(1_700_000_000, 0), Request: &d}
}

// A message is signed as the Standard Webhooks specification says; without being asked
// for, no arguments are in it.
func TestWebhook(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	key := []byte("0123456789abcdef01234567")
	if err := os.WriteFile(secret, []byte("whsec_"+base64.StdEncoding.EncodeToString(key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newReceiver(t)
	n, _ := run(t, approval.Notification{Target: approval.Target{Name: "hook", URL: r.URL + "/x"}, SecretFile: secret})
	n.Tell(request("k3m9p"))
	n.Tell(Event{Kind: approval.EventDenial, Denial: &Denial{}}) // it wants none
	got := r.wait(t, 1)[0]
	id, at := got.header.Get("webhook-id"), got.header.Get("webhook-timestamp")
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, got.body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got.header.Get("webhook-signature") != want || at != "1700000000" || !strings.HasPrefix(id, "msg_") {
		t.Errorf("headers %v, want %s", got.header, want)
	}
	var p payload
	if err := json.Unmarshal(got.body, &p); err != nil {
		t.Fatal(err)
	}
	e := p.Data.Events[0]
	if p.Version != 1 || p.Type != "actplane.events" || len(p.Data.Events) != 1 || e.Type != "request.opened" || e.Request.ID != "k3m9p" ||
		len(e.Request.Args) != 0 || !e.Request.ArgsCut || e.Request.CWD != "/w" {
		t.Errorf("message %s", got.body)
	}
	if want := "web: request k3m9p wants to exec /usr/bin/git, by rule push: Ask first."; p.Text != want {
		t.Errorf("text %q, want %q", p.Text, want)
	}
	if strings.Contains(string(got.body), "hunter2") {
		t.Errorf("the arguments are told: %s", got.body)
	}
	if !n.Wants(approval.EventRequest) || n.Wants(approval.EventAnswer) || (*Notifier)(nil).Wants(approval.EventRequest) {
		t.Error("who wants what")
	}
}

func TestSlack(t *testing.T) {
	r := newReceiver(t)
	n, _ := run(t, approval.Notification{Target: approval.Target{Name: "chat", URL: r.URL}, Format: approval.Slack, Args: true})
	n.Tell(request("k3m9p"))
	got := r.wait(t, 1)[0]
	var body map[string]any
	if err := json.Unmarshal(got.body, &body); err != nil {
		t.Fatal(err)
	}
	const want = `web: request k3m9p wants to exec /usr/bin/git push https://user:hunter2@host/\x1b[2J&lt;!channel&gt;, by rule push: Ask first.`
	if len(body) != 2 || body["mrkdwn"] != false || got.header.Get("webhook-signature") != "" {
		t.Errorf("body %s", got.body)
	}
	if text := strings.ReplaceAll(body["text"].(string), `"`, ""); strings.ReplaceAll(text, `\\`, `\`) != want {
		t.Errorf("text %q, want %q", body["text"], want)
	}
}

// What comes fast is told in few messages, and nothing of it is lost but what is counted.
func TestBurst(t *testing.T) {
	r := newReceiver(t)
	r.hold = make(chan struct{})
	n, c := run(t, approval.Notification{Target: approval.Target{Name: "hook", URL: r.URL}})
	n.Tell(request("first"))
	r.wait(t, 1) // and its answer takes its time
	began := time.Now()
	const many = maxQueue + 44
	for i := range many {
		n.Tell(request(fmt.Sprint(i)))
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("telling takes %s", took)
	}
	close(r.hold)
	messages := 1 + (maxQueue+maxBatch-1)/maxBatch
	events, leftOut := 0, uint64(0)
	for i, got := range r.wait(t, messages) {
		var p payload
		if err := json.Unmarshal(got.body, &p); err != nil {
			t.Fatal(err)
		}
		events += len(p.Data.Events)
		leftOut += p.Data.LeftOut
		if lines := strings.Split(p.Text, "\n"); i == 1 && (len(lines) != maxLines+1 || !strings.Contains(lines[maxLines], "and 54 more")) {
			t.Errorf("text %s", p.Text)
		}
	}
	if events != 1+maxQueue || leftOut != 44 {
		t.Errorf("%d events, %d left out", events, leftOut)
	}
	if problems := n.Problems(); len(problems) != 1 || !strings.Contains(problems[0], "44 events were dropped") {
		t.Errorf("problems %q", problems)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var paused time.Duration
	for _, d := range c.paused {
		paused += d
	}
	if want := time.Duration(messages-burst) * interval; paused != want {
		t.Errorf("%d messages within %s, want %s", messages, paused, want)
	}
}

// What fails is tried again, with the same id and another signature's time; what is
// refused is not.
func TestRetries(t *testing.T) {
	r := newReceiver(t)
	r.status = []int{500, 503, 429, 204, 400, 500, 500, 500, 500, 500}
	n, c := run(t, approval.Notification{Target: approval.Target{Name: "hook", URL: r.URL}})
	n.Tell(request("a"))
	got := r.wait(t, 4)
	ids, times := map[string]bool{}, map[string]bool{}
	for _, m := range got {
		ids[m.header.Get("webhook-id")] = true
		times[m.header.Get("webhook-timestamp")] = true
	}
	if len(ids) != 1 || len(times) != 4 || n.Problems() != nil {
		t.Errorf("ids %v, times %v, %q", ids, times, n.Problems())
	}
	n.Tell(request("b"))
	r.wait(t, 5)
	n.Tell(request("c"))
	r.wait(t, 10)
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		problems := n.Problems()
		if len(problems) == 1 && strings.Contains(problems[0], `notification "hook": 2 events could not be delivered`) && strings.Contains(problems[0], "500") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("problems %q", problems)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.paused) != 3+4 {
		t.Errorf("pauses %v", c.paused)
	}
	for status, want := range map[int]bool{400: true, 401: true, 404: true, 410: true, 307: true, 408: false, 425: false, 429: false, 500: false, 502: false} {
		if final(hostcall.StatusError(status)) != want {
			t.Errorf("%d: final is %v", status, !want)
		}
	}
	if final(errors.New("connection refused")) {
		t.Error("a connection that is refused is final")
	}
}

// A program gets the same on its standard input.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "notify")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat > "+dir+"/got.new && mv "+dir+"/got.new "+dir+"/got\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	n, _ := run(t, approval.Notification{Target: approval.Target{Name: "mail", Command: []string{program}}, Events: []string{approval.EventDenial, approval.EventAnswer}})
	n.Tell(Event{Kind: approval.EventDenial, Type: "operation.denied", Denial: &Denial{Scope: strings.Repeat("a", 64), Operation: "open", Object: "/etc/\x1b[2Jx", Rule: "r", Args: []string{"x"}}})
	for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(dir + "/got")
		if err == nil {
			var p payload
			if err := json.Unmarshal(text, &p); err != nil {
				t.Fatal(err)
			}
			if want := `aaaaaaaaaaaa: open "/etc/\x1b[2Jx" was denied, by rule r`; p.Text != want || p.Data.Events[0].Denial.Object != "/etc/\x1b[2Jx" {
				t.Errorf("message %s, want %q", text, want)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal("it is not told")
		}
	}
}

// What is told of an answer says who gave it.
func TestText(t *testing.T) {
	for want, edit := range map[string]func(*Event, *api.RequestDocument){
		`web: request a, to exec /usr/bin/git: granted by approver rules: ok`: func(e *Event, r *api.RequestDocument) {
			e.Type, r.State, r.Answer = "request.granted", "granted", &api.AnswerDocument{Name: "rules", Via: "approver", Because: "ok"}
		},
		`web: request a, to exec /usr/bin/git: denied by "a b" (uid 7)`: func(e *Event, r *api.RequestDocument) {
			e.Type, r.State, r.Answer = "request.denied", "denied", &api.AnswerDocument{Denied: true, Name: "a b", UID: 7, Via: "cli"}
		},
		`web: request a, to exec /usr/bin/git: timed-out`: func(e *Event, r *api.RequestDocument) { e.Type, r.State = "request.timed-out", "timed-out" },
		`web: request a wants to exec /usr/bin/git, by a default Warning of w: \x1b[1m`: func(_ *Event, r *api.RequestDocument) {
			r.Rule, r.Because, r.Warnings = "", "", []api.WarningDocument{{Approver: "w", Text: "\x1b[1m"}}
		},
		`web: request a wants to exec /usr/bin/git, by rule push, which a program in the container added: "Approved by \"security\"."`: func(_ *Event, r *api.RequestDocument) {
			r.RuleAdded, r.Because = true, `Approved by "security".`
		},
	} {
		e := request("a")
		edit(&e, e.Request)
		if got := e.within(false).text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Other notifications are told from then on; one that stays keeps what waits for it.
func TestReplace(t *testing.T) {
	stays, goes, comes := newReceiver(t), newReceiver(t), newReceiver(t)
	of := func(name string, r *receiver) approval.Notification {
		return approval.Notification{Target: approval.Target{Name: name, URL: r.URL}}
	}
	notifier, _ := run(t, of("stays", stays))
	replace := func(notifications ...approval.Notification) {
		t.Helper()
		if err := approval.CheckAll(nil, notifications); err != nil {
			t.Fatal(err)
		}
		if err := notifier.Replace(notifications); err != nil {
			t.Fatal(err)
		}
	}
	kept := notifier.now()[0]
	replace(of("stays", stays), of("goes", goes))
	notifier.Tell(request("aaaaa"))
	stays.wait(t, 1)
	goes.wait(t, 1)
	replace(of("comes", comes), of("stays", stays))
	if notifier.now()[1] != kept {
		t.Error("what stays has begun anew")
	}
	notifier.Tell(request("bbbbb"))
	comes.wait(t, 1)
	stays.wait(t, 2)
	if got := goes.wait(t, 1); len(got) != 1 {
		t.Errorf("%d messages for one that is gone", len(got))
	}
	if err := notifier.Replace([]approval.Notification{{Target: approval.Target{Name: "x", URL: comes.URL}, SecretFile: "/nonexistent"}}); err == nil || len(notifier.now()) != 2 {
		t.Errorf("%v, %d", err, len(notifier.now()))
	}
	replace()
	if notifier.Wants(approval.EventRequest) {
		t.Error("nobody is there, and wants something")
	}
}
