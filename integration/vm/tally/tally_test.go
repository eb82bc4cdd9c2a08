// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// tally runs one input through the program and returns its summary.
func tally(t *testing.T, kind string, input string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results")
	runErr := run([]string{kind, file, "here"}, strings.NewReader(input), io.Discard)
	var out bytes.Buffer
	sumErr := run([]string{"sum", file}, nil, &out)
	if (runErr != nil) != strings.Contains(out.String(), "failed: ") {
		t.Errorf("status of the run: %v, but the summary is\n%s", runErr, out.String())
	}
	if runErr != nil && sumErr == nil {
		t.Error("a failed run, but the sum has no error")
	}
	return out.String()
}

func TestGo(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"passes", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":0.1}`, "1 passed, 0 failed, 0 skipped\n"},
		{"subtests count, their parent does not", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"run","Package":"p","Test":"TestA/y"}
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"output","Package":"p","Test":"TestA/y","Output":"    a_test.go:3: no good\n"}
{"Action":"fail","Package":"p","Test":"TestA/y"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`, "failed: here: p.TestA/y: no good\n1 passed, 1 failed, 0 skipped\n"},
		{"a parent that fails by itself counts", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`, "failed: here: p.TestA: \n1 passed, 1 failed, 0 skipped\n"},
		{"skipped with its reason", `
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: needs root\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p"}`, "skipped: needs root: p.TestA\n1 passed, 0 failed, 1 skipped\n"},
		{"a panic", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: oh\n"}
{"Action":"fail","Package":"p"}`, "failed: here: p: failed outside its tests\n0 passed, 1 failed, 0 skipped\n"},
		{"a build that fails", `
{"ImportPath":"p [p.test]","Action":"build-output","Output":"# p\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"start","Package":"p"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`, "failed: here: p: does not build\n0 passed, 1 failed, 0 skipped\n"},
		{"a guest that dies", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}`, "failed: here: p: the run ended before the package did\n1 passed, 1 failed, 0 skipped\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := tally(t, "go", test.input); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestScenarios(t *testing.T) {
	got := tally(t, "scenarios", "noise\n# scenario a\nok one\nnot ok two: no: good\n# scenario b\nskip one: no such tier\nokay\n")
	want := "skipped: no such tier: b/one\nfailed: here: a/two: no: good\n1 passed, 1 failed, 1 skipped\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := tally(t, "scenarios", "noise\n"); !strings.Contains(got, "reported nothing") {
		t.Errorf("a run without results: %s", got)
	}
}

// A test that is skipped natively and runs in a guest is not a skipped one.
func TestSkippedElsewhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results")
	err := store(file, []result{
		{skipped, "native", "p.TestA", "needs a kernel"}, {passed, "6.12 bpf", "p.TestA", ""},
		{skipped, "native", "p.TestB", "needs luck"}, {skipped, "6.12 bpf", "p.TestB", "needs luck"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{"sum", file}, nil, &out); err != nil {
		t.Error(err)
	}
	if want := "skipped: needs luck: p.TestB\n1 passed, 0 failed, 1 skipped\n"; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
