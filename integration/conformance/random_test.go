// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/model"
)

// TestTrials: each seed gives one case, always the same, all of which can be acted out and
// goes on the model as it says; together they have all there is.
func TestTrials(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(120) {
		x := newTrial(seed)
		if again := newTrial(seed); again.text() != x.text() {
			t.Fatalf("seed %d: two cases", seed)
		}
		if why := impossible(x.planned); why != "" {
			t.Errorf("seed %d: %s\n%s", seed, why, x.text())
		}
		if f := model.Run(x.Program, &x.Case); f != nil {
			t.Errorf("seed %d: step %d: %+v", seed, f.Step, f)
		}
		if rooted(x.Steps) {
			met["begins with its first program"]++
		}
		for _, step := range x.Steps {
			met[step.Words[1]]++
			met["verdict "+step.Verdict]++
		}
	}
	for _, what := range []string{
		"begins with its first program", "verdict ok", "verdict notify", "verdict ask", "verdict block", "verdict kill", "approve", "deny",
		"restart", "lost", "fork", "exec", "execscript", "mapexec", "rename", "exchange", "link", "symlink", "truncate", "mmapshared", "fdopen",
		"fdread", "fdwrite", "fdpass", "pipewrite", "piperead", "shm", "ptrace", "memread", "memwrite", "connect", "send", "recv", "bind",
	} {
		if met[what] == 0 {
			t.Errorf("no case has %s", what)
		}
	}
}

// TestMappedFolder: where a program to be mapped turns out to be a folder, the case ends
// without it.
func TestMappedFolder(t *testing.T) {
	if x := newTrial(200238); len(x.Steps) == 0 {
		t.Error("no steps")
	}
}

// TestFirstProgram: a case that begins with a container's first program has all others
// come from it.
func TestFirstProgram(t *testing.T) {
	for steps, want := range map[string]string{
		"init exec /sbin/init ok\n init fork a\n a read /w/x ok":                                       "",
		"init exec /sbin/init ok\n init fork a\n a fork b\n b exec /bin/x ok":                          "",
		"init exec /sbin/init ok\n a read /w/x ok":                                                     "all others come from it",
		"init exec /sbin/init ok\n init fork a\n a ptrace b ok":                                        "all others come from it",
		"init exec /sbin/init ok\n init exit 0":                                                        "ends with its first program",
		"init exec /sbin/init ok\n scope restart\n init fork a":                                        "starts with its first program",
		"init exec /sbin/init ok\n scope restart\n init exec /bin/x ok":                                "starts with its first program",
		"init exec /sbin/init ok\n scope restart\n init exec /sbin/init ok\n init fork a":              "",
		"init exec /sbin/init ok\n init exec /bin/x ok\n init fork a\n a memread init ok":              "",
		"init exec /sbin/init ok\n scope lost\n init exec /sbin/init ok\n init read /w ok":             "",
		"a exec /sbin/init ok\n init read /w/x ok":                                                     "leaves {A}",
		"init exec /sbin/init ok\n init fork a\n a exec /bin/kills kill\n a read /w/x ok":              "",
		"init exec /sbin/init ok\n init fork a\n a read /w/s ok\n a exec /bin/kills kill":              "",
		"init exec /bin/l ok\n init fork a\n a read /w/s ok\n a exec /bin/kills kill\n a read /w/x ok": "comes from its parent again",
	} {
		text := "== x\npolicy:\n  source A = exec any\n  source S = file \"/w/s\"\n  rule r: kill exec \"kills\"\ntrace:\n " + steps + "\n"
		cases, err := model.ParseCases("x", text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := planCase("x", &cases[0])
		if err != nil {
			t.Fatalf("%s: %v", steps, err)
		}
		if why := impossible(c); want == "" && why != "" || !strings.Contains(why, want) {
			t.Errorf("%s: %q, want %q", steps, why, want)
		}
	}
}

// TestMisused: a file is not taken for a folder, nor a folder for a file.
func TestMisused(t *testing.T) {
	for steps, want := range map[string]int{
		"a write /w/a\n b rmdir /w/a":                                1,
		"a open /w/d\n b read /w/d/x":                                0,
		"a read /w/d\n b read /w/d/x":                                -1,
		"a rename /w/f /w/g\n b write /w/g\n b exec /bin/x":          0,
		"a rmdir /w/e\n b mkdir /w/e":                                -1,
		"a write /w/f\n a unlink /w/f\n a mkdir /w/f\n a rmdir /w/f": -1,
	} {
		p, err := policy.Compile([]policy.Document{{Name: "x", Text: []byte("version: 1\npolicy: |\n  rule r: block write \"/none\"\n")}}, policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := director{program: p.Program, scripts: map[string]string{}, bound: map[string]bool{}}
		if !d.begin(nil) {
			t.Fatal("no container")
		}
		for line := range strings.Lines(steps) {
			d.direct(strings.Fields(line))
		}
		files, err := model.Outside(p.Program, &model.Case{Steps: d.steps})
		if err != nil {
			t.Fatal(err)
		}
		if got := misused(d.steps, d.folders, files); got != want {
			t.Errorf("%s: %d, want %d", steps, got, want)
		}
	}
}
