// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const tail = " 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n"

func TestParse(t *testing.T) {
	for text, want := range map[string]Stat{
		"7 (sh) S 3" + tail:               {State: 'S', Parent: 3, Started: 4711},
		"7 (a) b (c) Z 3" + tail:          {State: 'Z', Parent: 3, Started: 4711},
		"7 () R 1 (\n) S 3) X 0" + tail:   {State: 'X', Parent: 0, Started: 4711},
		"7 (a b\tc) D 1" + tail + "9 9 9": {State: 'D', Parent: 1, Started: 4711},
	} {
		if got, err := parse(text); err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"":                  "no name",
		"7 sh S 3" + tail:   "no name",
		"7 )sh( S 3" + tail: "no name",
		"7 (sh) S 3":        "only 2 fields",
		"7 (sh)":            "only 0 fields",
		"7 (sh) S x" + tail: "its parent",
		"7 (sh) S 3 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 -1": "its start",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func TestReadStat(t *testing.T) {
	own, err := ReadStat(Directory, os.Getpid())
	if err != nil || own.Parent != os.Getppid() || own.Started == 0 || own.Ended() {
		t.Errorf("of this process: %+v %v", own, err)
	}
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadStat(Directory, child.Process.Pid); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of one that is gone: %v", err)
	}
	for _, pid := range []int{0, -1} {
		if _, err := ReadStat(Directory, pid); err == nil {
			t.Errorf("of %d: no error", pid)
		}
	}
}
