// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestNarrow(t *testing.T) {
	scope := newFakeScope()
	var asked []NarrowRequest
	scope.narrow = func(peer Process, request NarrowRequest) (Narrowed, error) {
		asked = append(asked, request)
		if strings.Contains(request.Policy, "wrong") {
			return Narrowed{}, &Refusal{Status: http.StatusUnprocessableEntity, Sentence: "wrong\x1b", Diagnostics: []Diagnostic{{Line: 1, Message: "a\x1b[m"}}}
		}
		return Narrowed{PolicyLayer: PolicyLayer{Name: "added-1", SHA256: "00", For: request.For}}, nil
	}
	path := serve(t, scope, nil)
	for _, test := range []struct {
		body string
		code int
		says string
	}{
		{`{"policy":"rule a: block exec \"x\""}`, 200, `{"name":"added-1","sha256":"00","for":"process","warnings":[],"notes":[]}`},
		{`{"policy":"x","for":"container"}`, 200, `"for":"container"`},
		{`{"policy":"x","depth":2}`, 200, `"process"`},
		{`{"policy":"wrong"}`, 422, `{"error":"wrong\u001b","diagnostics":[{"line":1,"col":0,"severity":"","code":"","message":"a\u001b[m"}]}`},
		{`{"policy":"x","depth":3}`, 400, "no ancestor"},
		{`{"policy":"x","depth":-1}`, 400, "no ancestor"},
		{`{"policy":"x","for":"container","depth":1}`, 400, "only"},
		{`{"policy":"x","for":"nobody"}`, 400, "neither"},
		{`{"policy":"x","fro":"process"}`, 400, "not of the form"},
		{`{"policy":"x"} {}`, 400, "not of the form"},
		{`[]`, 400, "not of the form"},
		{``, 400, "not of the form"},
		{`{"policy":"` + strings.Repeat("x", MaxRules+1) + `"}`, 413, "longer"},
		{`{"policy":"` + strings.Repeat("x", 7*MaxRules) + `"}`, 413, "too long"},
	} {
		code, text := request(t, path, "POST", "/v1/policy/rules", test.body)
		if code != test.code || !strings.Contains(text, test.says) {
			t.Errorf("%.80s: %d %s", test.body, code, text)
		}
	}
	if len(asked) != 4 || asked[0].For != ForProcess || asked[2].Depth != 2 {
		t.Errorf("asked %+v", asked)
	}
	if code, text := request(t, path, "GET", "/v1/policy/rules", ""); code != 405 {
		t.Errorf("GET: %d %s", code, text)
	}
	scope.peer.ID = 0
	if code, text := request(t, serve(t, scope, nil), "POST", "/v1/policy/rules", `{"policy":"x"}`); code != 409 {
		t.Errorf("of a process that is not known: %d %s", code, text)
	}
	scope.narrow = nil
	code, text := request(t, path, "POST", "/v1/policy/rules", `{"policy":"x","for":"container"}`)
	var failure Failure
	if err := json.Unmarshal([]byte(text), &failure); err != nil || code != 500 || !strings.Contains(failure.Error, "its log tells why") {
		t.Errorf("what is not for the container: %d %s", code, text)
	}
}

func TestClientNarrow(t *testing.T) {
	scope := newFakeScope()
	scope.narrow = func(Process, NarrowRequest) (Narrowed, error) {
		return Narrowed{}, &Refusal{Status: 422, Sentence: "a\x1b b", Diagnostics: []Diagnostic{{Line: 2, Col: 3, Severity: "error", Code: "P203", Message: "m\n", Hint: "h\x1b"}}}
	}
	_, err := NewClient(serve(t, scope, nil)).Narrow(t.Context(), NarrowRequest{Policy: "x"})
	if err == nil || !strings.HasSuffix(err.Error(), "a\\x1b b\n2:3: error[P203]: m\n  hint: h\\x1b") {
		t.Errorf("%q", err)
	}
}

func TestAddedInWords(t *testing.T) {
	item := Item{Effect: Notify, Operation: "policy", Object: "added-1 sha256:00", Outcome: Added, Reason: ForProcess, Process: Process{Comm: "sh\x1b"}}
	if got, want := item.Message(), `ActPlane policy: rules "added-1 sha256:00" were added by program "sh\x1b". They hold for that process and what it starts from now on, as long as they live.`; got != want {
		t.Error(got)
	}
	if item.Reason = ForContainer; !strings.Contains(item.Message(), "whole container") {
		t.Error(item.Message())
	}
}
