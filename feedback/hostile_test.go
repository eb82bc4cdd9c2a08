// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestRefusals(t *testing.T) {
	path := serve(t, newFakeScope(), nil)
	tests := []struct {
		method, target, body string
		code                 int
		says                 string
	}{
		{"GET", "/", "", 404, "there is no such path"},
		{"GET", "/v1/feedback/../status", "", 404, "there is no such path"},
		{"POST", "/v1/feedback", "", 405, "GET only"},
		{"DELETE", "/v1/policy", "", 405, "GET only"},
		{"GET", "/v1/acks", "", 405, "POST only"},
		{"GET", "/v1/status", "body", 400, "no body"},
		{"GET", "/v1/feedback?after=-1", "", 400, "after is not a cursor"},
		{"GET", "/v1/feedback?after=1&after=2", "", 400, "more than once"},
		{"GET", "/v1/feedback?wait=31s", "", 400, "wait is not a duration"},
		{"GET", "/v1/feedback?wait=-1s", "", 400, "wait is not a duration"},
		{"GET", "/v1/feedback?tree=other", "", 400, "neither self nor all"},
		{"GET", "/v1/feedback?depth=65", "", 400, "depth is not"},
		{"GET", "/v1/feedback?consumer=a%20b", "", 400, "a consumer's name"},
		{"GET", "/v1/feedback?consumer=a&after=1", "", 400, "exclude each other"},
		{"GET", "/v1/feedback?nope%0A=1", "", 400, `no parameter \"nope\\n\"`},
		{"GET", "/v1/feedback?consumer=" + strings.Repeat("a", 600), "", 400, "longer than"},
		{"GET", "/v1/feedback?%zz", "", 400, "not of the form"},
		{"POST", "/v1/acks", "nonsense", 400, "not of the form"},
		{"POST", "/v1/acks", `{"consumer":"a","cursor":-1}`, 400, "not of the form"},
		{"POST", "/v1/acks", `{"consumer":"","cursor":1}`, 400, "a consumer's name"},
		{"POST", "/v1/acks", `{"consumer":"a","cursor":1}`, 409, "no answer with this cursor"},
		{"POST", "/v1/acks", strings.Repeat(" ", 2000), 400, "not of the form"},
	}
	for _, test := range tests {
		code, text := request(t, path, test.method, test.target, test.body)
		var failure Failure
		if json.Unmarshal([]byte(text), &failure) != nil || code != test.code || !strings.Contains(text, test.says) {
			t.Errorf("%s %.60s: got %d %s, want %d %q", test.method, test.target, code, text, test.code, test.says)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	scope := newFakeScope()
	scope.stranger = true
	scope.Append(push())
	path := serve(t, scope, nil)
	for _, target := range []string{"/v1/feedback", "/v1/status", "/v1/policy", "/"} {
		if code, text := request(t, path, "GET", target, ""); code != 403 || !strings.Contains(text, "not in the container") {
			t.Errorf("%s: %d %s", target, code, text)
		}
	}
}

func TestTooManyConnections(t *testing.T) {
	for name, adjust := range map[string]func(*Server){
		"of all":      func(s *Server) { s.limits.connections = 4 },
		"of one peer": func(s *Server) { s.limits.perPeer = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			path := serve(t, newFakeScope(), adjust)
			var open []net.Conn
			for range 4 {
				open = append(open, dial(t, path))
			}
			text, err := io.ReadAll(dial(t, path))
			if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 503 ") || !strings.Contains(string(text), `{"error":"too many connections`) {
				t.Errorf("got %q, %v", text, err)
			}
			for _, conn := range open {
				conn.Close()
			}
			eventually(t, func() bool {
				_, err := NewClient(path).Status(context.Background())
				return err == nil
			})
		})
	}
}

// floodSocket is the socket that this test's own child floods.
const floodSocket = "ACTPLANE_TEST_FLOOD"

// A process of another container makes ten thousand connections, and says nothing on them:
// few are held for it, the others are refused at once, and everybody else is served
// meanwhile.
func TestFlood(t *testing.T) {
	if path := os.Getenv(floodSocket); path != "" {
		flood(t, path)
		return
	}
	path := serve(t, newFakeScope(), func(s *Server) { s.limits.arrivals = 1e9 })
	sockets := map[string]string{"this container": path, "another": serve(t, newFakeScope(), nil)}
	flooding := exec.Command(os.Args[0], "-test.run=^TestFlood$")
	flooding.Env = append(os.Environ(), floodSocket+"="+path)
	var said bytes.Buffer
	flooding.Stdout, flooding.Stderr = &said, &said
	if err := flooding.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- flooding.Wait() }()
	most := runtime.NumGoroutine() + defaultLimits().connections // one for each
	for answers := 0; ; answers++ {
		for name, socket := range sockets {
			client := NewClient(socket)
			if _, err := client.Status(t.Context()); err != nil {
				t.Fatalf("%s: not answered: %v", name, err)
			}
			client.http.CloseIdleConnections()
		}
		if n := runtime.NumGoroutine(); n > most {
			t.Fatalf("%d goroutines", n)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%v: %s", err, said.Bytes())
			}
			t.Logf("%d answers meanwhile", answers)
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// flood makes connections and keeps as many as it may have files open.
func flood(t *testing.T, path string) {
	var open []net.Conn
	for range 10_000 {
		conn, err := connect(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		if len(open) > 500 {
			open[0].Close()
			open = open[1:]
		}
	}
}

func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func eventually(t *testing.T, true func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !true() {
		select {
		case <-ctx.Done():
			t.Fatal("it did not come true")
		case <-ticker.C:
		}
	}
}

// Clients that say nothing, never end their request, or never read: each is
// hung up on, and others are served meanwhile.
func TestStuckClients(t *testing.T) {
	scope := newFakeScope()
	scope.policy = []PolicyDocument{{Text: strings.Repeat("x", maxPolicySize)}}
	path := serve(t, scope, func(s *Server) {
		s.limits.receive, s.limits.idle, s.limits.send = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	})
	silent, slow, unread, idle := dial(t, path), dial(t, path), dial(t, path), dial(t, path)
	fmt.Fprint(slow, "GET /v1/status HTTP/1.1\r\nHost: ")
	fmt.Fprint(unread, "GET /v1/policy HTTP/1.1\r\nHost: x\r\n\r\n")
	fmt.Fprint(idle, "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := NewClient(path).Status(t.Context()); err != nil {
		t.Errorf("others are not served: %v", err)
	}
	for name, conn := range map[string]net.Conn{"silent": silent, "slow": slow, "idle": idle} {
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("%s: not hung up on: %v", name, err)
		}
	}
	// The unread one is read only after the server gave up on it.
	eventually(t, func() bool {
		_, err := unread.Write([]byte("x"))
		return err != nil
	})
	if text, _ := io.ReadAll(unread); len(text) > maxPolicySize {
		t.Errorf("the whole answer of %d bytes was kept for a client that did not read", len(text))
	}
}

func TestHugeHeaders(t *testing.T) {
	path := serve(t, newFakeScope(), nil)
	conn := dial(t, path)
	go fmt.Fprintf(conn, "GET /v1/status HTTP/1.1\r\nHost: x\r\nA: %s\r\n\r\n", strings.Repeat("a", 1<<20))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	if !strings.Contains(line, "431") {
		t.Errorf("got %q", line)
	}
}

// What is no request ends its connection, with an answer that says so or without one.
func TestMalformed(t *testing.T) {
	path := serve(t, newFakeScope(), func(s *Server) { s.limits.receive, s.limits.idle = 100*time.Millisecond, 100*time.Millisecond })
	for name, sent := range map[string]string{
		"binary":          strings.Repeat("\x00\xff\x16\x03\x01", 1000),
		"no line ends":    strings.Repeat("a", 100_000),
		"HTTP/2":          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"no version":      "GET /v1/status\r\n\r\n",
		"no host":         "GET /v1/status HTTP/1.1\r\n\r\n",
		"two lengths":     "POST /v1/acks HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nabc",
		"negative length": "POST /v1/acks HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"endless length":  "POST /v1/acks HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n" + strings.Repeat("{", 1_000_000),
		"bad chunk":       "POST /v1/acks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
		"endless chunks":  "POST /v1/acks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\n \r\n", 100_000),
		"other coding":    "POST /v1/acks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nabc",
		"connect":         "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
		"body of a GET":   "GET /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("GET /v1/policy HTTP/1.1\r\nHost: x\r\n\r\n", 1000),
	} {
		conn := dial(t, path)
		go func() { _, _ = io.WriteString(conn, sent) }() // which fails where it is hung up on
		text, err := io.ReadAll(io.LimitReader(conn, 1<<20))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: not hung up on, after %.100q", name, text)
		}
		if len(text) > 0 && !strings.HasPrefix(string(text), "HTTP/1.1 4") && !strings.HasPrefix(string(text), "HTTP/1.1 5") || strings.Count(string(text), "HTTP/1.1 ") > 1 {
			t.Errorf("%s: got %.300q", name, text)
		}
	}
	eventually(t, func() bool {
		_, err := NewClient(path).Status(t.Context())
		return err == nil
	})
}

// Connections without a request are no way around the rate of requests.
func TestArrivals(t *testing.T) {
	path := serve(t, newFakeScope(), func(s *Server) { s.limits.arrivals = 20 })
	began := time.Now()
	for range 40 {
		dial(t, path).Close()
	}
	if code, _ := request(t, path, "GET", "/v1/status", ""); code != 200 {
		t.Errorf("got %d", code)
	}
	if took := time.Since(began); took < 900*time.Millisecond {
		t.Errorf("41 connections at 20 a second took %v", took)
	}
}

func TestRate(t *testing.T) {
	path := serve(t, newFakeScope(), func(s *Server) {
		s.limits.burst, s.limits.rate = 3, 1
		fixed := time.Now()
		s.now = func() time.Time { return fixed }
	})
	for i := range 5 {
		code, text := request(t, path, "GET", "/v1/status", "")
		if want := map[bool]int{true: 200, false: 429}[i < 3]; code != want {
			t.Errorf("request %d: %d %s", i, code, text)
		}
	}
	var b bucket
	now := time.Now()
	b.take(now, 5, 2)
	b.charge(10)
	if b.take(now.Add(time.Second), 5, 2) || !b.take(now.Add(3*time.Second), 5, 2) {
		t.Error("a debt is not paid off with time")
	}
	b, now = bucket{}, time.Now()
	taken := 0
	for range 100 {
		now = now.Add(100 * time.Millisecond)
		if b.take(now, 5, 2) {
			taken++
		}
	}
	if taken < 50 || taken > 54 {
		t.Errorf("%d of 100 requests in 10 s at 5 a second", taken)
	}
}

func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"", "after=1&wait=5s&tree=all", "consumer=claude:abc&depth=2", "a=%0a", "wait=1e9h", "after=1&after=2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := parseQuery(raw)
		if err != nil {
			for _, r := range err.Error() {
				if !visible(r) {
					t.Errorf("%q: the error holds %U", raw, r)
				}
			}
			return
		}
		if query.Wait < 0 || query.Wait > MaxWait || query.Depth < -1 || query.Depth > maxDepth || len(query.Consumer) > MaxConsumer {
			t.Errorf("%q: out of bounds: %+v", raw, query)
		}
		if again, err := parseQuery(query.Encode()); err != nil || again != query {
			t.Errorf("%q: %+v became %+v (%v)", raw, query, again, err)
		}
	})
}

// However much a container gets into its records, answers stay small enough for who reads
// them: names that are long and have to be escaped, chains, rules of its own.
func TestAnswersStaySmall(t *testing.T) {
	long := strings.Repeat("\x01\u202e", 1<<10)
	step := Step{Way: WayRead, Object: long, Program: long}
	item := Item{
		Effect: Block, Operation: "exec", Object: long, Rule: strings.Repeat(long, 8), Because: strings.Repeat(long, 8), Clause: strings.Repeat(long, 8),
		RuleAdded: true, Labels: []string{long, "A"}, Also: []string{long, long}, Parents: []Parent{{Program: long}},
	}
	for range maxRawArgs {
		item.Args = append(item.Args, long)
	}
	for range 8 {
		item.Origins = append(item.Origins, Origin{Label: long, Gate: strings.Repeat(long, 8), Steps: []Step{step, step, step, step, step, step, step, step}})
	}
	var items []Item
	for n := range 200 {
		item.Sequence = uint64(n + 1)
		items = append(items, item)
	}
	small := push()
	for after := uint64(0); after < 200; {
		page := newPage(items[after:], after, 1000, func(Item) bool { return true })
		text, err := EncodeJSON(page)
		if err != nil || len(page.Items) == 0 || page.Cursor <= after {
			t.Fatalf("%v, %d items, cursor %d behind %d", err, len(page.Items), page.Cursor, after)
		}
		if len(text) > 4<<20 || len(page.Items) > 1 && len(text) > 2*maxPageBytes {
			t.Fatalf("%d bytes for %d items", len(text), len(page.Items))
		}
		after = page.Cursor + 50
	}
	small.Sequence = 1
	if page := newPage([]Item{small, small, small}, 0, 1000, func(Item) bool { return true }); len(page.Items) != 3 {
		t.Errorf("%d items", len(page.Items))
	}
}
