// SPDX-License-Identifier: Apache-2.0

package version

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	module := func(version string) *debug.BuildInfo { return &debug.BuildInfo{Main: debug.Module{Version: version}} }
	for _, test := range []struct {
		stamp string
		info  *debug.BuildInfo
		want  string
	}{
		{"v1.2.3-4-gabc", module("(devel)"), "v1.2.3-4-gabc"},
		{"", module("v1.2.3"), "v1.2.3"},
		{"", module("(devel)"), "devel"},
		{"", module(""), "devel"},
		{"", nil, "devel"},
	} {
		if got := describe(test.stamp, test.info); got != test.want {
			t.Errorf("%q: %s, want %s", test.stamp, got, test.want)
		}
	}
}

// The name that the Makefile gives the linker is the variable's: a wrong one would
// be ignored.
func TestStampOfTheMakefile(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	const name = "github.com/actplane/actplane/internal/version.stamp"
	if !strings.Contains(string(makefile), "-X "+name+"=") {
		t.Errorf("the Makefile does not set %s", name)
	}
	program := filepath.Join(t.TempDir(), "actplane")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-X "+name+"=v9.8.7-test", "-o", program, "../../cmd/actplane")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program, "--version").Output(); err != nil || string(out) != "actplane version v9.8.7-test\n" {
		t.Errorf("%q, %v", out, err)
	}
}
