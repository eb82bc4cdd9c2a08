// SPDX-License-Identifier: Apache-2.0

package testenv

import "testing"

func TestRequireBPF(t *testing.T) { RequireBPF(t) }

func TestRequireKernel(t *testing.T) { RequireKernel(t) }

func TestRequireLSM(t *testing.T) { RequireLSM(t) }

// A recorder is a test that notes how it ended.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper()     {}
func (r *recorder) Skip(...any) { r.end("skip") }

func (r *recorder) Fatalf(string, ...any) { r.end("fail") }

// end panics, because the real methods do not return.
func (r *recorder) end(how string) {
	r.ended = how
	panic(r)
}

// A promise that is not kept fails the test; without one it is skipped.
func TestPromise(t *testing.T) {
	tests := []struct {
		promised      bool
		missing, want string
	}{
		{false, "", "skip"},
		{false, "the user is 1000, not root", "skip"},
		{true, "", ""},
		{true, "the user is 1000, not root", "fail"},
	}
	for _, test := range tests {
		r := &recorder{}
		func() {
			defer func() { _ = recover() }()
			requireKernel(r, test.promised, func() string { return test.missing })
		}()
		if r.ended != test.want {
			t.Errorf("promised %v, missing %q: %q, want %q", test.promised, test.missing, r.ended, test.want)
		}
	}
}
