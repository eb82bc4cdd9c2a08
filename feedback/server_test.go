// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actplane/actplane/internal/testenv"
)

// fakeScope is a Scope without an engine. The peer is this test's process.
type fakeScope struct {
	*Log
	peer     Process
	stranger bool
	policy   []PolicyDocument
	status   Status
	narrow   func(Process, NarrowRequest) (Narrowed, error)
}

func (f *fakeScope) Status() Status           { return f.status }
func (f *fakeScope) Policy() []PolicyDocument { return f.policy }

func (f *fakeScope) Peer(pid int) (Process, bool) {
	if pid != os.Getpid() || f.stranger {
		return Process{}, false
	}
	return f.peer, true
}

func (f *fakeScope) Narrow(_ context.Context, peer Process, request NarrowRequest) (Narrowed, error) {
	if f.narrow == nil {
		return Narrowed{}, errors.New("no engine")
	}
	return f.narrow(peer, request)
}

func (f *fakeScope) Check(_ context.Context, _ Process, request CheckRequest) (Checked, error) {
	if request.Object == "" {
		return Checked{}, &Refusal{Status: http.StatusBadRequest, Sentence: "no object"}
	}
	return NewChecked(request, Item{Effect: Block, Operation: request.Operation, Object: request.Object, Rule: "r", Because: "No."}), nil
}

func newFakeScope() *fakeScope {
	return &fakeScope{Log: NewLog(LogSize, 0), peer: Process{ID: 30, Ancestors: []uint64{20, 10}}}
}

// serve starts a server and stops it, with all that it started, when the test ends.
func serve(t *testing.T, scope Scope, adjust func(*Server)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "feedback.sock")
	serveOn(t, scope, adjust, testenv.ListenUnix(t, path))
	return path
}

func serveOn(t *testing.T, scope Scope, adjust func(*Server), listener *net.UnixListener) {
	t.Helper()
	server := NewServer(scope, Options{})
	if adjust != nil {
		adjust(server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the server does not stop")
		}
	})
}

// request makes one request, and returns the answer's code and body.
func request(t *testing.T, path, method, target, body string) (int, string) {
	t.Helper()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", path)
	}}
	defer transport.CloseIdleConnections()
	asked, err := http.NewRequest(method, "http://x"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(asked)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if kind := answer.Header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s %s: content type %q", method, target, kind)
	}
	return answer.StatusCode, string(text)
}

func pageFrom(t *testing.T, path, query string) Page {
	t.Helper()
	code, text := request(t, path, "GET", "/v1/feedback?"+query, "")
	var page Page
	if err := json.Unmarshal([]byte(text), &page); err != nil || code != 200 {
		t.Fatalf("%s: %d %s (%v)", query, code, text, err)
	}
	return page
}

func sequences(page Page) string {
	var numbers []uint64
	for _, entry := range page.Items {
		numbers = append(numbers, entry.Sequence)
	}
	return fmt.Sprint(numbers)
}

func TestFeedbackOnTheWire(t *testing.T) {
	scope := newFakeScope()
	path := serve(t, scope, nil)
	item := push()
	item.Time = time.Date(2026, 11, 30, 2, 12, 1, 0, time.UTC)
	item.Object = "/tmp/\u009b\u202e\xff<&>"
	item.Args = nil
	item.Labels = []string{"AGENT"}
	item.ClausePosition = "actplane.yaml:7:3"
	item.Lost = 2
	scope.Append(item)
	const want = `{"items":[{"sequence":1,"time":"2026-11-30T02:12:01Z","effect":"block","operation":"exec",` +
		`"object":"/tmp/\u009b\u202e\ufffd<&>","rule":"no-push",` +
		"\"because\":\"Pushing needs a human. Open a merge request with `make mr` instead.\"," +
		`"clause":"block exec \"git\" \"push\" if AGENT","clause_position":"actplane.yaml:7:3","labels":["AGENT"],` +
		`"process":{"id":"2","comm":"bash"},"lost":2,` +
		`"message":"ActPlane policy: exec \"/tmp/\\u009b\\u202e\\xff<&>\" was blocked before it ran, by rule \"no-push\" (the process carries label AGENT): ` +
		"Pushing needs a human. Open a merge request with `make mr` instead. Trying again changes nothing.\"}],\"cursor\":1,\"remaining\":0}\n"
	if code, got := request(t, path, "GET", "/v1/feedback?tree=all", ""); code != 200 || got != want {
		t.Errorf("got  %d %s\nwant %s", code, got, want)
	}
	if code, got := request(t, path, "GET", "/v1/feedback?after=1", ""); code != 200 || got != `{"items":[],"cursor":1,"remaining":0}`+"\n" {
		t.Errorf("got %d %s", code, got)
	}
}

func TestStatusAndPolicy(t *testing.T) {
	path := serve(t, newFakeScope(), nil)
	_, got := request(t, path, "GET", "/v1/status", "")
	const want = `{"id":"","enforcing":false,"tier":"","mode":"","since":"0001-01-01T00:00:00Z","layers":[],` +
		`"degraded":[],"warnings":[],"denied":0,"notified":0,"lost":0,"clauses":[]}` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	scope := newFakeScope()
	scope.policy = []PolicyDocument{{PolicyLayer: PolicyLayer{Name: "a.yaml", SHA256: "00"}, Text: "version: 1\n"}, {PolicyLayer: PolicyLayer{Name: "b.yaml", SHA256: "01"}, Text: strings.Repeat("é", maxPolicySize)}}
	policy, err := NewClient(serve(t, scope, nil)).Policy(t.Context())
	if err != nil || len(policy.Documents) != 2 || policy.Documents[0].Text != "version: 1\n" || !policy.Cut ||
		len(policy.Documents[1].Text) > maxPolicySize || strings.Contains(policy.Documents[1].Text, "\ufffd") {
		t.Errorf("policy %.200v, %v", policy, err)
	}
}

func TestProcessTrees(t *testing.T) {
	log := NewLog(LogSize, 0)
	for _, process := range []Process{
		{ID: 10},
		{ID: 20, Ancestors: []uint64{10}},
		{ID: 31, Ancestors: []uint64{20, 10}},
		{ID: 40, Ancestors: []uint64{11, 10}},
		{ID: 50, Ancestors: []uint64{12}},
		{ID: 60, Ancestors: []uint64{61, 62}, AncestorsCut: true},
		{},
	} {
		item := push()
		item.Process = process
		log.Append(item)
	}
	path := serve(t, &fakeScope{Log: log, peer: newFakeScope().peer}, nil)
	for query, want := range map[string]string{
		"tree=all":          "[1 2 3 4 5 6 7]",
		"depth=0":           "[1 6 7]",
		"depth=1":           "[1 2 3 6 7]",
		"depth=2":           "[1 2 3 4 6 7]",
		"depth=64":          "[1 2 3 4 6 7]",
		"":                  "[1 2 3 4 6 7]",
		"tree=self&after=2": "[3 4 6 7]",
	} {
		if got := pageFrom(t, path, query); sequences(got) != want || got.Cursor != 7 {
			t.Errorf("%q: got %s, cursor %d, want %s", query, sequences(got), got.Cursor, want)
		}
		skipped := 0
		if strings.HasSuffix(query, "after=2") {
			skipped = 2
		}
		if got := pageFrom(t, path, query); got.Others+len(got.Items)+skipped != 7 {
			t.Errorf("%q: %d items, %d others", query, len(got.Items), got.Others)
		}
	}
	path = serve(t, &fakeScope{Log: log, peer: Process{ID: 30}}, nil)
	if got := sequences(pageFrom(t, path, "depth=3")); got != "[1 6 7]" {
		t.Errorf("without ancestors: %s", got)
	}
	path = serve(t, &fakeScope{Log: log}, nil)
	if got := sequences(pageFrom(t, path, "depth=0")); got != "[1 2 3 4 5 6 7]" {
		t.Errorf("a peer of which nothing is known: %s", got)
	}
}

func TestPages(t *testing.T) {
	scope := newFakeScope()
	path := serve(t, scope, nil)
	for range 250 {
		scope.Append(push())
	}
	var after uint64
	for _, want := range []struct{ items, remaining int }{{100, 150}, {100, 50}, {50, 0}, {0, 0}} {
		page := pageFrom(t, path, fmt.Sprint("tree=all&after=", after))
		if len(page.Items) != want.items || page.Remaining != want.remaining {
			t.Errorf("after %d: %d items, %d remaining", after, len(page.Items), page.Remaining)
		}
		after = page.Cursor
	}
	big := push()
	big.Object = strings.Repeat("x", 1<<15)
	big.Args = strings.Split(strings.Repeat("y ", 1_000), " ")
	for range 100 {
		scope.Append(big)
	}
	code, text := request(t, path, "GET", "/v1/feedback?tree=all&after=250", "")
	if code != 200 || len(text) > 2*maxPageBytes || len(text) < maxPageBytes/4 {
		t.Errorf("%d, %d bytes", code, len(text))
	}
}

// A reader of all that is kept is not slowed down.
func TestWholeLogAtOnce(t *testing.T) {
	scope := newFakeScope()
	path := serve(t, scope, nil)
	for range LogSize {
		scope.Append(push())
	}
	total := 0
	for page := (Page{Remaining: 1}); page.Remaining > 0; total += len(page.Items) {
		page = pageFrom(t, path, fmt.Sprint("tree=all&after=", page.Cursor))
	}
	if total != LogSize {
		t.Errorf("%d items", total)
	}
}

func TestOldItemsAreDropped(t *testing.T) {
	scope := newFakeScope()
	scope.Log = NewLog(10, 5)
	path := serve(t, scope, nil)
	for range 100 {
		scope.Append(push())
	}
	page := pageFrom(t, path, "tree=all")
	if len(page.Items) != 10 || page.Items[9].Sequence != 105 || page.Missed != 95 {
		t.Errorf("%s, missed %d", sequences(page), page.Missed)
	}
	if page := pageFrom(t, path, "tree=all&after=100"); sequences(page) != "[101 102 103 104 105]" || page.Missed != 0 {
		t.Errorf("%s, missed %d", sequences(page), page.Missed)
	}
}

// A container that is denied what it does over and over, with all that a record
// holds, must not fill the engine's memory.
func TestLogBytes(t *testing.T) {
	log := NewLog(LogSize, 0)
	item := Item{Object: strings.Repeat("x", 4096), Args: strings.Split(strings.Repeat("y ", 1024), " ")}
	for range 3 * LogSize {
		log.Append(item)
	}
	kept := log.Items(0)
	if held := len(kept) * item.bytes(); held > maxLogBytes || held < maxLogBytes/2 {
		t.Errorf("keeps %d items, %d bytes", len(kept), held)
	}
	if last := kept[len(kept)-1].Sequence; last != 3*LogSize || kept[0].Sequence != last-uint64(len(kept))+1 {
		t.Errorf("keeps %d to %d", kept[0].Sequence, last)
	}
	log.Append(Item{Object: strings.Repeat("x", 2*maxLogBytes)})
	if n := len(log.Items(0)); n != 1 {
		t.Errorf("keeps %d items beside one that is too large", n)
	}
}

func TestWait(t *testing.T) {
	scope := newFakeScope()
	path := serve(t, scope, nil)
	for _, query := range []string{"depth=1&wait=20s", "depth=1&wait=20s&consumer=a"} {
		next := scope.Last() + 2
		got := make(chan Page, 1)
		go func() {
			page, err := NewClient(path).Feedback(context.Background(), mustQuery(query, next-2))
			if err != nil {
				t.Error(err)
			}
			got <- page
		}()
		other := push() // of another tree: the waiter sleeps on
		other.Process = Process{ID: 5, Ancestors: []uint64{4}}
		scope.Append(other)
		mine := push()
		mine.Process = Process{ID: 30, Ancestors: []uint64{20, 10}}
		scope.Append(mine)
		page := <-got
		if len(page.Items) == 0 || page.Items[len(page.Items)-1].Sequence != next {
			t.Errorf("%s: got %s", query, sequences(page))
		}
	}
	start := time.Now()
	if page := pageFrom(t, path, fmt.Sprintf("wait=50ms&after=%d", scope.Last())); len(page.Items) > 0 || time.Since(start) < 50*time.Millisecond {
		t.Errorf("got %s after %s", sequences(page), time.Since(start))
	}
}

func mustQuery(raw string, after uint64) Query {
	query, err := parseQuery(raw)
	if err != nil {
		panic(err)
	}
	if query.Consumer == "" {
		query.After = after
	}
	return query
}

func TestConsumers(t *testing.T) {
	scope := newFakeScope()
	path := serve(t, scope, nil)
	client := NewClient(path)
	scope.Append(push())
	if page := pageFrom(t, path, "consumer=s1&tree=all"); sequences(page) != "[1]" {
		t.Errorf("got %s", sequences(page))
	}
	if page := pageFrom(t, path, "consumer=s1&tree=all"); len(page.Items) != 0 {
		t.Errorf("on lease, and yet %s", sequences(page))
	}
	if err := client.Ack(t.Context(), Ack{Consumer: "s1", Cursor: 1}); err != nil {
		t.Error(err)
	}
	scope.Append(push())
	if page := pageFrom(t, path, "consumer=s1&tree=all"); sequences(page) != "[2]" {
		t.Errorf("got %s", sequences(page))
	}
	if page := pageFrom(t, path, "consumer=s2&tree=all"); sequences(page) != "[1 2]" {
		t.Errorf("got %s", sequences(page))
	}
}

func TestManyAtOnce(t *testing.T) {
	scope := newFakeScope()
	path := serve(t, scope, func(s *Server) {
		s.limits.rate, s.limits.burst, s.limits.perPeer, s.limits.arrivals = 1e9, 1e9, 64, 1e9
	})
	var clients sync.WaitGroup
	counts := make([]int, 201)
	var mu sync.Mutex
	for range 8 {
		clients.Go(func() {
			client := NewClient(path)
			for {
				mu.Lock()
				enough := counts[200] > 0
				mu.Unlock()
				page, err := client.Feedback(context.Background(), Query{Consumer: "session", All: true, Wait: 20 * time.Millisecond})
				if err != nil {
					t.Error(err)
					return
				}
				for _, entry := range page.Items {
					mu.Lock()
					counts[entry.Sequence]++
					mu.Unlock()
				}
				if len(page.Items) > 0 {
					if err := client.Ack(context.Background(), Ack{Consumer: "session", Cursor: page.Cursor}); err != nil {
						t.Error(err)
					}
				} else if enough {
					return
				}
			}
		})
	}
	for range 200 {
		scope.Append(push())
	}
	clients.Wait()
	for sequence, count := range counts[1:] {
		if count != 1 {
			t.Errorf("item %d was delivered %d times", sequence+1, count)
		}
	}
}
