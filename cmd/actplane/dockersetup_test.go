// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigMade: a file that install made goes with uninstall; a link stays one.
func TestConfigMade(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	d := &dockerSetup{ctx: t.Context(), out: &out, file: filepath.Join(dir, "docker/daemon.json")}
	add := func(text []byte) ([]byte, error) { return addRuntime(text, "/p/actplane-runtime") }
	step := func(change func([]byte) ([]byte, error), do func(*edit) error) {
		t.Helper()
		e, err := d.plan(change)
		if err == nil {
			err = do(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	step(add, d.apply)
	if text, err := os.ReadFile(d.file); err != nil || !strings.Contains(string(text), "/p/actplane-runtime") {
		t.Fatalf("%s, %v", text, err)
	}
	step(removeRuntime, d.undo)
	if exists(d.file) {
		t.Error("a file that install made is left")
	}

	target := filepath.Join(dir, "real.json")
	if err := os.WriteFile(target, []byte("{}\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../real.json", d.file); err != nil {
		t.Fatal(err)
	}
	step(add, d.apply)
	step(removeRuntime, d.undo)
	info, err := os.Stat(target)
	if link, _ := os.Readlink(d.file); err != nil || link != "../real.json" || info.Mode().Perm() != 0o640 {
		t.Errorf("link %q, %v, %v", link, info, err)
	}
	if text, _ := os.ReadFile(target); string(text) != "{}\n" || exists(target+backupSuffix) {
		t.Errorf("left are %q and a backup: %v", text, exists(target+backupSuffix))
	}
}
