// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/console"
	"github.com/actplane/actplane/engine/api"
)

// call asks the server something; headers are pairs.
func (b *bench) call(method, path, body string, headers ...string) (int, string, http.Header) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.address+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header
}

// own are the headers that the page itself sends.
func (b *bench) own(more ...string) []string {
	return append([]string{"Authorization", "Bearer " + b.server.Token(), "Origin", "http://" + b.address, "Content-Type", "application/json"}, more...)
}

// The page itself has no secret; all else wants the token, this host's name and no other
// site's page.
func TestWhoIsAnswered(t *testing.T) {
	b := newBench(t, nil)
	b.tell()
	token := "Bearer " + b.server.Token()
	for _, test := range []struct {
		path    string
		headers []string
		want    int
	}{
		{"/", nil, 200}, {"/app.js", nil, 200}, {"/graph.js", nil, 200}, {"/style.css", nil, 200}, {"/icon.svg", nil, 200},
		{"/assets/app.js", nil, 404}, {"/api/", nil, 404},
		{"/api/graph?row=1", nil, 401},
		{"/api/graph?row=1", []string{"Authorization", "Bearer "}, 401},
		{"/api/graph?row=1", []string{"Authorization", "Bearer x" + b.server.Token()}, 401},
		{"/api/graph?row=1", []string{"Authorization", "Basic " + b.server.Token()}, 401},
		{"/api/graph?row=1", []string{"Cookie", "token=" + b.server.Token()}, 401},
		{"/api/graph?row=1&token=" + b.server.Token(), nil, 401},
		{"/api/stream", nil, 401},
		{"/api/graph?row=1", []string{"Authorization", token}, 200},
		{"/api/graph?row=999", []string{"Authorization", token}, 404},
		{"/api/graph?row=-1", []string{"Authorization", token}, 400},
		{"/api/graph", []string{"Authorization", token}, 400},
		{"/api/graph?row=1", []string{"Authorization", token, "Host", "localhost:1"}, 200},
		{"/api/graph?row=1", []string{"Authorization", token, "Host", "[::1]"}, 200},
		{"/api/graph?row=1", []string{"Authorization", token, "Host", "evil.example"}, 421},
		{"/", []string{"Host", "evil.example"}, 421},
		{"/", []string{"Host", "localhost.evil.example"}, 421},
		{"/", []string{"Host", "127.0.0.1.evil.example:80"}, 421},
		{"/", []string{"Host", "10.0.0.1"}, 421},
		{"/", []string{"Host", "127.0.0.1:x"}, 421},
		{"/api/graph?row=1", []string{"Authorization", token, "Origin", "http://evil.example"}, 403},
		{"/api/graph?row=1", []string{"Authorization", token, "Origin", "null"}, 403},
		{"/api/graph?row=1", []string{"Authorization", token, "Origin", "http://127.0.0.1:1"}, 403},
		{"/api/graph?row=1", []string{"Authorization", token, "Origin", "http://" + b.address, "Origin", "http://evil.example"}, 403},
		{"/api/graph?row=1", []string{"Authorization", token, "Sec-Fetch-Site", "cross-site"}, 403},
		{"/api/graph?row=1", []string{"Authorization", token, "Sec-Fetch-Site", "same-site"}, 403},
		{"/api/graph?row=1", []string{"Authorization", token, "Sec-Fetch-Site", "same-origin"}, 200},
	} {
		code, text, header := b.call("GET", test.path, "", test.headers...)
		if code != test.want {
			t.Errorf("%s %q: %d, want %d: %s", test.path, test.headers, code, test.want, text)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Content-Security-Policy": contentPolicy} {
			if header.Get(name) != want {
				t.Errorf("%s: %s is %q", test.path, name, header.Get(name))
			}
		}
		if header.Get("Set-Cookie") != "" || header.Get("Access-Control-Allow-Origin") != "" || strings.Contains(text, b.server.Token()) {
			t.Errorf("%s: gives away too much: %v", test.path, header)
		}
	}
	for _, method := range []string{"PUT", "DELETE", "OPTIONS", "POST"} {
		if code, _, _ := b.call(method, "/", "", b.own()...); code != http.StatusMethodNotAllowed {
			t.Errorf("%s /: %d", method, code)
		}
	}
	if NewServer(b.server.options).Token() == b.server.Token() {
		t.Error("two runs have one token")
	}
}

// The policy in the header only helps if the page has nothing that it forbids.
func TestPageHasNothingInline(t *testing.T) {
	entries, err := assets.ReadDir("assets")
	if err != nil || len(entries) < 5 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		text, err := assets.ReadFile("assets/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, never := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", " style=", " onclick=", "https://", "setAttribute(\"style\""} {
			if strings.Contains(string(text), never) {
				t.Errorf("%s has %q", e.Name(), never)
			}
		}
	}
}

func TestAnswer(t *testing.T) {
	b := newBench(t, nil)
	b.tell()
	good := `{"id":"k3m9p","seen":"open 0","what":"once"}`
	for _, test := range []struct {
		body    string
		headers []string
		want    int
	}{
		{good, []string{"Authorization", "Bearer " + b.server.Token(), "Content-Type", "application/json"}, 403}, // no Origin
		{good, []string{"Origin", "http://" + b.address, "Content-Type", "application/json"}, 401},
		{good, []string{"Authorization", "Bearer " + b.server.Token(), "Origin", "http://" + b.address, "Content-Type", "text/plain"}, 403},
		{good, []string{"Authorization", "Bearer " + b.server.Token(), "Origin", "http://evil.example", "Content-Type", "application/json"}, 403},
		{`{"id":"k3m9p","seen":"granted 5","what":"once"}`, b.own(), 409},
		{`{"id":"zzzzz","seen":"open 0","what":"once"}`, b.own(), 409},
		{`{"id":"k3m9p","seen":"open 0","what":"forever"}`, b.own(), 400},
		{`{"id":"k3m9p","seen":"open 0","what":"once","scope_lifetime":true}`, b.own(), 400},
		{good + good, b.own(), 400},
		{"", b.own(), 400}, {"[]", b.own(), 400}, {"\xff", b.own(), 400},
		{`{"id":"k3m9p","seen":"open 0","what":"deny","because":"` + strings.Repeat("é", 1001) + `"}`, b.own(), 400},
		{`{"id":"` + strings.Repeat("x", 10000) + `"}`, b.own(), 400},
	} {
		if code, text, _ := b.call("POST", "/api/answer", test.body, test.headers...); code != test.want || !strings.HasPrefix(text, `{"error":"`) {
			t.Errorf("%.80q: %d, want %d: %s", test.body, code, test.want, text)
		}
	}
	if got := b.engine.Answers(); len(got) != 0 {
		t.Fatalf("%v", got)
	}
	if code, text, _ := b.call("POST", "/api/answer", good, b.own()...); code != 200 || !strings.Contains(text, `"granted"`) {
		t.Errorf("%d %s", code, text)
	}
	if code, text, _ := b.call("POST", "/api/answer", good, b.own()...); code != 409 { // it has been answered
		t.Errorf("%d %s", code, text)
	}
	if code, _, _ := b.call("POST", "/api/answer", `{"id":"b7q2x","seen":"open 0","what":"deny","because":"Not yet."}`, b.own()...); code != 200 {
		t.Error(code)
	}
	if code, text, _ := b.call("POST", "/api/answer", `{"id":"k3m9p","seen":"`+seenOf(b.watcher.View().Request("k3m9p"))+`","what":"revoke"}`, b.own()...); code != 200 || !strings.Contains(text, "revoked") {
		t.Errorf("%d %s", code, text)
	}
	if got := b.engine.Revoked(); len(got) != 1 || got[0].Id != "k3m9p" || got[0].By.GetVia() != "web" {
		t.Errorf("%v", got)
	}
	got := b.engine.Answers()
	if len(got) != 2 || got[0].Count != 1 || got[0].Denied || got[0].By.GetVia() != "web" || !got[1].Denied || !got[1].ScopeLifetime || got[1].Because != "Not yet." {
		t.Errorf("%v", got)
	}
}

// A scope is locked by the page alone, as it is shown there.
func TestLock(t *testing.T) {
	b := newBench(t, nil)
	b.tell()
	id := b.watcher.View().Scopes[0].Id
	body := func(seen, what string) string {
		return fmt.Sprintf(`{"id":%q,"seen":%q,"what":%q,"because":"It leaks."}`, id, seen, what)
	}
	for _, test := range []struct {
		body    string
		headers []string
		want    int
	}{
		{body("unlocked", "lock"), []string{"Origin", "http://" + b.address, "Content-Type", "application/json"}, 401},
		{body("unlocked", "lock"), []string{"Authorization", "Bearer " + b.server.Token(), "Content-Type", "application/json"}, 403},
		{body("locked 1", "lock"), b.own(), 409}, {body("unlocked", "unlock"), b.own(), 409}, {body("unlocked", "freeze"), b.own(), 400},
		{strings.Replace(body("unlocked", "lock"), id[:8], "4f1c09ab", 1), b.own(), 409}, {body("unlocked", "lock") + "x", b.own(), 400},
	} {
		if code, text, _ := b.call("POST", "/api/lock", test.body, test.headers...); code != test.want || !strings.HasPrefix(text, `{"error":"`) {
			t.Errorf("%.80q: %d, want %d: %s", test.body, code, test.want, text)
		}
	}
	if got := b.engine.Locked(); len(got) != 0 {
		t.Fatalf("%v", got)
	}
	if code, text, _ := b.call("POST", "/api/lock", body("unlocked", "lock"), b.own()...); code != 200 || !strings.Contains(text, "web-agent is locked") {
		t.Errorf("%d %s", code, text)
	}
	if code, text, _ := b.call("POST", "/api/lock", body("unlocked", "lock"), b.own()...); code != 409 { // it is locked
		t.Errorf("%d %s", code, text)
	}
	if code, text, _ := b.call("POST", "/api/lock", body(lockSeen(b.watcher.View().Scope(id)), "unlock"), b.own()...); code != 200 || !strings.Contains(text, "is unlocked") {
		t.Errorf("%d %s", code, text)
	}
	locked, unlocked := b.engine.Locked(), b.engine.Unlocked()
	if len(locked) != 1 || locked[0].Scope != id || locked[0].Because != "It leaks." || locked[0].By.GetVia() != "web" || len(unlocked) != 1 || unlocked[0].By.GetVia() != "web" {
		t.Errorf("%v, %v", locked, unlocked)
	}
}

// follow opens a stream and gives its updates.
func (b *bench) follow() <-chan update {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "GET", "http://"+b.address+"/api/stream", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+b.server.Token())
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.t.Fatal(err)
	}
	updates := make(chan update, 100)
	go func() {
		defer response.Body.Close()
		defer close(updates)
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			text, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is {
				continue
			}
			var u update
			if err := json.Unmarshal([]byte(text), &u); err != nil {
				return
			}
			updates <- u
		}
	}()
	return updates
}

// A stream has all once, and then only what is new.
func TestStream(t *testing.T) {
	b := newBench(t, func(s *Server) { s.limits.alive = 20 * time.Millisecond })
	b.tell()
	updates := b.follow()
	first := <-updates
	if first.Status == nil || len(*first.Requests) != 3 || len(*first.Scopes) != 2 || len(first.Rows) != 6 || len(*first.Rules) != 6 {
		t.Fatalf("%+v", first)
	}
	b.engine.Happen(&api.Event{Scope: "s", ScopeName: "new", Sequence: 1, TimeUnixMs: time.Now().UnixMilli(), Effect: "block", Operation: "exec", Object: "/x"})
	second := <-updates
	if second.Requests != nil || second.Scopes != nil || len(second.Rows) != 1 || second.Rows[0].Operation != "exec /x" || second.Rules == nil {
		t.Errorf("%+v", second)
	}
	b.engine.Stop()
	for u := range updates {
		if u.Status != nil {
			if !strings.Contains(u.Status.Problem, "the engine has stopped") {
				t.Errorf("%+v", u.Status)
			}
			break
		}
	}
}

// 200 hostile names: what is sent is ASCII, valid, and has nothing left that a terminal
// obeys or that turns text around.
func TestHostileStream(t *testing.T) {
	b := newBench(t, nil)
	b.hostile()
	u := <-b.follow()
	if len(u.Rows) != 200 || len(*u.Requests) != 200 {
		t.Fatalf("%d rows, %d requests", len(u.Rows), len(*u.Requests))
	}
	text := fmt.Sprintf("%q", fmt.Sprint(u.Rows, *u.Requests, *u.Scopes, *u.Rules))
	for _, never := range []string{`\x1b`, `\u009b`, `\u202e`, `\u2066`, `\u2028`, `\n`, `\r`, `\x00`, `\x7f`} {
		for rest := text; ; {
			i := strings.Index(rest, never)
			if i < 0 {
				break
			}
			// %q doubles the backslash of what has been escaped before.
			if i == 0 || rest[i-1] != '\\' {
				t.Fatalf("%s in …%s…", never, rest[max(0, i-60):min(len(rest), i+60)])
			}
			rest = rest[i+len(never):]
		}
	}
}

// Who connects and says nothing, or reads nothing, is hung up on, and holds up nobody.
func TestSlowClients(t *testing.T) {
	b := newBench(t, func(s *Server) {
		s.limits.receive, s.limits.send, s.limits.connections = 300*time.Millisecond, 300*time.Millisecond, 8
		s.limits.pace = time.Millisecond
	})
	dial := func(text string) net.Conn {
		conn, err := net.Dial("tcp", b.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.(*net.TCPConn).SetReadBuffer(4096)
		io.WriteString(conn, text)
		return conn
	}
	stream := "GET /api/stream HTTP/1.1\r\nHost: " + b.address + "\r\nAuthorization: Bearer " + b.server.Token() + "\r\n\r\n"
	for _, text := range []string{"", "GET / HTTP/1.1\r\nHost: localhost\r\nX: ", "POST /api/answer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{",
		"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 100_000), stream} {
		for b.server.open.Load() > 0 { // that of the one before
			time.Sleep(10 * time.Millisecond)
		}
		conn := dial(text)
		if text == stream {
			for b.server.open.Load() == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			b.engine.SetScopes(&api.Scope{Id: "s", State: "closed"})
			for i := range 500 { // more than its buffers hold
				b.engine.Happen(&api.Event{Scope: "s", Sequence: uint64(i + 1), TimeUnixMs: int64(i), Effect: "block", Operation: "exec", Object: fmt.Sprint(i, strings.Repeat("x", 20_000))})
			}
			for end := time.Now().Add(30 * time.Second); b.server.open.Load() > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("who reads nothing is not hung up on")
				}
			}
			continue
		}
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			if timeout, is := err.(net.Error); is && timeout.Timeout() {
				t.Errorf("%.60q: still open", text)
			}
		}
	}
	// One too many is hung up on at once, and later there is room again.
	var open []net.Conn
	for range 12 {
		open = append(open, dial(""))
	}
	time.Sleep(600 * time.Millisecond)
	for _, conn := range open {
		conn.Close()
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn := dial("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		conn.SetReadDeadline(time.Now().Add(2 * time.Second))
		if text, _ := io.ReadAll(conn); strings.HasPrefix(string(text), "HTTP/1.1 200") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no room any more")
		}
	}
}

// tell fills the engine, and waits until the watcher has it.
func (b *bench) tell() {
	b.t.Helper()
	b.engine.Tell()
	b.await(func(v *console.View) bool { return len(v.Scopes) == 2 && len(v.Requests) == 3 && len(v.Rows) == 6 })
}

// hostile asks and does 200 things whose every text is one that a container may choose.
func (b *bench) hostile() {
	b.t.Helper()
	parts := []string{`<script>document.title="owned"</script>`, `"><img src=x onerror=document.title="owned">`, "\x1b[2J", "\u202egpj", "\u009b31m", "\x00", "\r\n", "\u2028", "javascript:alert(1)", "</svg><svg onload=document.title='owned'>",
		`'"&lt;`, "\x7f", "\u2066", "漢字", strings.Repeat("A", 3000), "${document.title='owned'}", "{{7*7}}", "\\u003cscript\\u003e", "]]>", "data: x\n\n"}
	text := func(i int) string {
		return fmt.Sprintf("%d%s%s", i, parts[i%len(parts)], parts[(i*7+3)%len(parts)])
	}
	b.engine.SetScopes(&api.Scope{Id: "s", Name: text(2), State: "closed", Mode: text(4), Layers: []string{text(5)}, Warnings: []string{text(6)}})
	for i := range 200 {
		t := text(i)
		b.engine.Ask(&api.Request{Id: fmt.Sprintf("r%04d", i), Scope: "s", ScopeName: t, State: "open", Operation: "exec", Object: []byte(t + "\xff"), Args: [][]byte{[]byte(t), []byte(text(i + 1))},
			Comm: []byte(t), Rule: t, Because: t, Clause: t, ClausePos: t, Labels: []string{t}, OpenedUnixMs: time.Now().UnixMilli()})
		b.engine.Happen(&api.Event{Scope: "s", ScopeName: t, Sequence: uint64(i + 1), TimeUnixMs: time.Now().UnixMilli(), Effect: t, Outcome: t, Operation: t, Object: t, Args: []string{t, t},
			Rule: t, Because: t, Clause: t, ClausePos: t, Comm: t, Labels: []string{t}, By: t, Request: t, Also: []string{t}})
	}
	b.await(func(v *console.View) bool { return len(v.Requests) == 200 && len(v.Rows) == 200 && len(v.Scopes) == 1 })
}
