// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/bundle"
)

func newLimited(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, map[string]string{"dev.actplane.limits.pids": "30", "dev.actplane.limits.memory": "1000", "dev.actplane.limits.cpus": "0.5"})
	if !w.call("--root", "/r", "create", "-b", w.bundle(), "one") {
		t.Fatal(w.stderr.String())
	}
	if err := w.Records.Save(&bundle.Record{ID: "free", Root: "/r"}); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestUpdate(t *testing.T) {
	w := newLimited(t)
	for line, want := range map[string]string{
		"--pids-limit 20 one":                      "",
		"--pids-limit 30 --cpuset-cpus 0 one":      "",
		"--memory 900 one":                         "",
		"--cpu-quota 5000 --cpu-period 10000 one":  "",
		"--pids-limit 31 one":                      `the policy of container "one" allows no more than {"pids":{"limit":30}}`,
		"--pids-limit=-1 one":                      "allows no more",
		"--memory 1GiB one":                        "allows no more",
		"--memory -1 one":                          "allows no more",
		"--memory-swap 1001 one":                   "allows no more",
		"--cpu-quota 50001 --cpu-period 10000 one": "allows no more",
		"--cpu-quota -1 one":                       "allows no more",
		"--cpu-period 1000 one":                    "allows no more",
		"--pids-limit 5 --pids-limit 50 one":       "given twice",
		"--memory plenty one":                      "is no number",
		"--pids-limit x one":                       "is no number",
		"--frob one":                               "unknown option",
		"--resources /none/such one":               "no such file",
		"--resources a -r b one":                   "given twice",
		"two":                                      "no record",
		"--pids-limit 5000 free":                   "",
		"--resources /none/such free":              "",
	} {
		reached := w.call(append([]string{"--root", "/r", "update"}, strings.Fields(line)...)...)
		if reached != (want == "") || !strings.Contains(w.stderr.String(), want) {
			t.Errorf("%q: %q instead of %q", line, &w.stderr, want)
		}
	}
	if w.call("--root", "/other", "update", "one") {
		t.Error("update with the record of another container")
	}
	file := w.write(t, "resources.json", `{"pids":{"limit":31},"memory":{"limit":5},"x":1.0}`)
	if !w.call("--root", "/r", "update", "-r", file, "one") {
		t.Fatal(w.stderr.String())
	}
	if got, _ := os.ReadFile(file); string(got) != `{"memory":{"limit":5},"pids":{"limit":30},"x":1.0}` {
		t.Errorf("resources %s", got)
	}
}

// What is on standard input is limited as well, whatever its size.
func TestUpdateFromInput(t *testing.T) {
	w := newLimited(t)
	w.write(t, "bin/runc", "#!/bin/sh\nexec cat\n")
	if err := os.Chmod(filepath.Join(w.root, "bin/runc"), 0o755); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1<<20)
	for in, want := range map[string]string{
		`{"pids":{"limit":5}}` + "\n":                       `{"pids":{"limit":5}}`,
		`{"pids":{"limit":-1}}`:                             `{"pids":{"limit":30}}`,
		`{"unified":{"pids.max":"max"},"x":"` + long + `"}`: `{"unified":{"pids.max":"30"},"x":"` + long + `"}`,
		`{"pids":{"limit":-1}}{"pids":{"limit":1}}`:         "",
		`{"pids":{"limit":1},"pids":{"limit":-1}}`:          "",
		`null`: "",
		``:     "",
		`[]`:   "",
	} {
		command := exec.Command(os.Args[0], "--root", "/r", "update", "--resources", "-", "one")
		command.Env = []string{"RUNTIME_TEST_ROOT=" + w.root, "RUNTIME_TEST_SOCKET=" + w.socket}
		command.Stdin = strings.NewReader(in)
		var errs bytes.Buffer
		command.Stderr = &errs
		out, err := command.Output()
		if string(out) != want || (err == nil) != (want != "") || want == "" && !strings.Contains(errs.String(), "update: parse resources") {
			t.Errorf("%.60q: %.60q, %s, error %v", in, out, &errs, err)
		}
	}
}
