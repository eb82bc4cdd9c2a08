// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/actplane/actplane/engine/kernel"
)

// TestPacked: what is read of a file is what each seed gives, those that need the same
// hooks one after the other; a file that is cut off is an error.
func TestPacked(t *testing.T) {
	seeds, err := seedsOf([]string{"7", "20", "100000", "2"})
	if err != nil || len(seeds) != 22 || seeds[21] != 100001 {
		t.Fatalf("%v %v", seeds, err)
	}
	for _, args := range [][]string{nil, {"1"}, {"x", "1"}, {"1", "-1"}, {"1", "1", "2"}} {
		if _, err := seedsOf(args); err == nil {
			t.Errorf("%q are seeds", args)
		}
	}
	var out bytes.Buffer
	if err := writeTrials(seeds, &out); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "trials")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	read, hooks := 0, 0
	err = readTrials(file, func(x *trial) error {
		read++
		if want := newTrial(x.seed).text(); x.text() != want {
			t.Errorf("seed %d: read\n%s\nwant\n%s", x.seed, x.text(), want)
		}
		if now := kernel.Hooks(x.policy.Image); now < hooks {
			t.Errorf("seed %d: hooks %x after %x", x.seed, now, hooks)
		} else {
			hooks = now
		}
		return nil
	})
	if err != nil || read != len(seeds) {
		t.Fatalf("%d read: %v", read, err)
	}
	if err := os.Truncate(file, int64(out.Len()-5)); err != nil {
		t.Fatal(err)
	}
	if err := readTrials(file, func(*trial) error { return nil }); !errors.As(err, new(usageError)) {
		t.Errorf("a file that is cut off: %v", err)
	}
}

// TestKindOf: a smaller case is one of the same difference.
func TestKindOf(t *testing.T) {
	for found, want := range map[string]string{
		"a read /x: expected block r1, got ok":              "block ok",
		"a read /x: expected ok, got EPERM (recorded: ok)":  "ok EPERM",
		"process a has the labels {A}, and in the model {}": "process",
	} {
		if got := kindOf(found); got != want {
			t.Errorf("%s: %s, want %s", found, got, want)
		}
	}
}
