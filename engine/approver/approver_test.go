// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/approval"
)

// says is an approver that prints a text and notes that it was asked.
func says(t *testing.T, name, text string) approval.Approver {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	script := "#!/bin/sh\ncat > " + path + ".asked\ncat <<'ANSWER'\n" + text + "\nANSWER\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return approval.Approver{Target: approval.Target{Name: name, Command: []string{path}, Timeout: 10 * time.Second}}
}

func wasAsked(a approval.Approver) bool {
	_, err := os.Stat(a.Command[0] + ".asked")
	return err == nil
}

func chain(t *testing.T, approvers ...approval.Approver) *Chain {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := New(approvers, nil, logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func request() *api.RequestDocument {
	r := &api.Request{
		Id: "k3m9p", Scope: "0123", ScopeName: "web", State: "open", Rule: "push", Operation: "exec", Object: []byte("/usr/bin/git"),
		Args: [][]byte{[]byte("git"), []byte("push\xff")}, Cwd: []byte("/w"), Uid: 1000, Image: "agent:1", Labels: []string{"SECRET"},
		Ancestors: []*api.Ancestor{{Pid: 6, Comm: []byte("node")}}, OpenedUnixMs: 1_700_000_000_000,
	}
	d := r.Document()
	return &d
}

// The strictest wins.
func TestChain(t *testing.T) {
	const grant, deny, pass = `{"decision":"grant"}`, `{"decision":"deny","because":"no"}`, `{"decision":"pass"}`
	for _, c := range []struct {
		say   []string
		want  Verdict
		asked int
	}{
		{[]string{pass}, Verdict{Decision: Pass}, 1},
		{[]string{grant}, Verdict{Decision: Grant, By: "a0", For: 10 * time.Minute}, 1},
		{[]string{pass, grant, pass}, Verdict{Decision: Grant, By: "a1", For: 10 * time.Minute}, 3},
		{[]string{grant, deny, grant}, Verdict{Decision: Deny, By: "a1", Because: "no", For: 10 * time.Minute}, 2},
		{[]string{deny, grant}, Verdict{Decision: Deny, By: "a0", Because: "no", For: 10 * time.Minute}, 1},
		{[]string{`{"decision":"grant","for":"1h","because":"x"}`, `{"decision":"grant","once":true,"for":"2m","because":"y"}`},
			Verdict{Decision: Grant, By: "a0, a1", For: 2 * time.Minute, Once: true, Because: "x y"}, 2},
		{[]string{`{"decision":"pass","warning":"at night"}`, `{"decision":"grant","warning":"big"}`},
			Verdict{Decision: Grant, By: "a1", For: 10 * time.Minute, Warnings: []Warning{{"a0", "at night"}, {"a1", "big"}}}, 2},
		{[]string{pass, `{"decision":"deny","for":"1h"}`}, Verdict{Decision: Deny, By: "a1", For: time.Hour}, 2},
	} {
		var approvers []approval.Approver
		for i, say := range c.say {
			approvers = append(approvers, says(t, fmt.Sprintf("a%d", i), say))
		}
		got, err := chain(t, approvers...).Ask(context.Background(), request())
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%v: %+v, %v; want %+v", c.say, got, err, c.want)
		}
		asked := 0
		for _, a := range approvers {
			if wasAsked(a) {
				asked++
			}
		}
		if asked != c.asked {
			t.Errorf("%v: %d were asked, want %d", c.say, asked, c.asked)
		}
	}
}

// Whatever is no answer denies.
func TestNoAnswerDenies(t *testing.T) {
	for _, say := range []string{
		"", "grant", "null", "true", `"grant"`, "[]", "{}", `{"decision":"GRANT"}`, `{"decision":"allow"}`, `{"decison":"grant"}`, `{"decision":true}`,
		`{"decision":"grant"} {"decision":"deny"}`, `{"decision":"grant"}x`, `{"decision":"grant","for":"10"}`, `{"decision":"grant","for":"-1m"}`,
		`{"decision":"grant","for":"0s"}`, `{"decision":"grant","for":"100000h"}`, `{"decision":"grant","once":"yes"}`, `{"decision":"grant","for":10}`,
		`{"decision":"grant","count":100}`, `{"decision":"grant","warning":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		got, err := chain(t, says(t, "a", say)).Ask(context.Background(), request())
		if err != nil || got.Decision != Deny || got.By != "a" || got.For != failureTime || got.Because == "" {
			t.Errorf("%q: %+v, %v", say, got, err)
		}
	}
	slow := says(t, "slow", "")
	if err := os.WriteFile(slow.Command[0], []byte("#!/bin/sh\nsleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	slow.Timeout = 200 * time.Millisecond
	if got, err := chain(t, slow).Ask(context.Background(), request()); err != nil || got.Decision != Deny {
		t.Errorf("after its time: %+v, %v", got, err)
	}
	failing := says(t, "failing", "")
	if err := os.WriteFile(failing.Command[0], []byte("#!/bin/sh\necho '{\"decision\":\"grant\"}'\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := chain(t, failing).Ask(context.Background(), request()); err != nil || got.Decision != Deny {
		t.Errorf("with a grant and exit status 1: %+v, %v", got, err)
	}
	// Who asks goes away: that is nobody's answer.
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	slow.Timeout = time.Minute
	if got, err := chain(t, slow).Ask(ctx, request()); err == nil || got.Decision != "" {
		t.Errorf("cancelled: %+v, %v", got, err)
	}
}

// Each is asked about what it is for, and gets the whole request.
func TestInput(t *testing.T) {
	mine, other := says(t, "mine", `{"decision":"pass"}`), says(t, "other", `{"decision":"deny"}`)
	mine.Rules, other.Operations = []string{"pu*"}, []string{"open"}
	c := chain(t, mine, other)
	if !c.Asks("push", "exec", "web") || !c.Asks("x", "open", "web") || c.Asks("x", "exec", "web") || (*Chain)(nil).Asks("x", "exec", "web") {
		t.Error("who is asked about what")
	}
	if got, err := c.Ask(context.Background(), request()); err != nil || got.Decision != Pass || wasAsked(other) {
		t.Errorf("%+v, %v", got, err)
	}
	text, err := os.ReadFile(mine.Command[0] + ".asked")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"version": 1.0, "id": "k3m9p", "scope": "0123", "name": "web", "image": "agent:1", "rule": "push", "operation": "exec", "object": "/usr/bin/git",
		"cwd": "/w", "uid": 1000.0, "inexact": true, "labels": []any{"SECRET"}, "args": []any{"git", "push\ufffd"},
		"ancestors": []any{map[string]any{"pid": 6.0, "comm": "node"}}, "opened": "2023-11-14T22:13:20Z",
	} {
		if fmt.Sprint(got[key]) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
}

// As the data API of the Open Policy Agent speaks.
func TestOPA(t *testing.T) {
	var answer, got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = string(text)
		fmt.Fprint(w, answer)
	}))
	defer server.Close()
	c := chain(t, approval.Approver{Format: approval.OPA, Target: approval.Target{Name: "opa", URL: server.URL + "/v1/data/actplane", Timeout: 10 * time.Second}})
	for text, want := range map[string]Decision{
		`{}`: Pass, `{"decision_id":"x","result":true,"metrics":{}}`: Grant, `{"result":false}`: Deny, `{"result":{"decision":"grant","once":true}}`: Grant,
		`{"result":{"decision":"pass"}}`: Pass, `{"result":{}}`: Deny, `{"result":null}`: Deny, `{"result":"grant"}`: Deny, `{"result":[true]}`: Deny,
		`{"code":"internal_error"`: Deny, ``: Deny, `{"result":{"decision":"grant","reason":"x"}}`: Deny,
	} {
		answer = text
		v, err := c.Ask(context.Background(), request())
		if err != nil || v.Decision != want {
			t.Errorf("%s: %+v, %v; want %s", text, v, err, want)
		}
	}
	if !strings.HasPrefix(got, `{"input":{"version":1,"id":"k3m9p"`) {
		t.Errorf("it was asked %.80s", got)
	}
}

// Others take the place of those that there are; what is wrong changes nothing.
func TestReplace(t *testing.T) {
	c := chain(t)
	if c.Asks("push", "exec", "web") {
		t.Error("nobody is there, and asked")
	}
	grants, denies := says(t, "a", `{"decision":"grant"}`), says(t, "b", `{"decision":"deny"}`)
	for _, next := range []struct {
		approvers []approval.Approver
		want      Decision
	}{{[]approval.Approver{grants}, Grant}, {[]approval.Approver{grants, denies}, Deny}, {nil, Pass}} {
		if err := c.Replace(next.approvers); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Ask(context.Background(), request()); err != nil || got.Decision != next.want {
			t.Errorf("%+v, %v, want %s", got, err, next.want)
		}
	}
}
