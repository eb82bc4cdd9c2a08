// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/proc"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), ConfigName)
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

// Structs lose what they don't know: the reason for package bundle.
func TestUnknownFieldsStay(t *testing.T) {
	const text = `{"ociVersion":"9.9.9","process":{"cwd":"/","x-new":{"a":[1,2.50,1e3,"<&>\u2028"]}},"future":12345678901234567890,"mounts":[{"destination":"/a","x":1}]}`
	var spec specs.Spec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	lossy, _ := json.Marshal(&spec)
	if strings.Contains(string(lossy), "x-new") {
		t.Fatal("specs.Spec keeps unknown fields now: Object may be simpler")
	}

	path := write(t, text)
	file, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = file.Root.Update("process", func(process Object) error { return process.Set("noNewPrivileges", true) })
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Root.Append("mounts", map[string]string{"destination": "/b"}); err != nil {
		t.Fatal(err)
	}
	if err := file.Save(); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(path)
	for _, want := range []string{
		`"x-new":{"a":[1,2.50,1e3,"<&>\u2028"]}`, `"future":12345678901234567890`,
		`[{"destination":"/a","x":1},{"destination":"/b"}]`, `"noNewPrivileges":true`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o640 {
		t.Errorf("mode is %o", info.Mode().Perm())
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestOpenRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "unexpected end",
		`null`:                             "null",
		`[]`:                               "expected an object, found an array",
		`{"a":1,"a":2}`:                    `ambiguous keys "a" and "a"`,
		`{"process":{},"Process":{}}`:      `ambiguous keys "process" and "Process"`,
		`{"a":1} {"b":2}`:                  "invalid character",
		`{"a":`:                            "unexpected end",
		strings.Repeat(" ", MaxSize) + "1": "larger than 16 MiB",
	} {
		if _, err := Open(write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v instead of %q", text, err, want)
		}
	}
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	directory := t.TempDir()
	fifo, link := filepath.Join(directory, "fifo"), filepath.Join(directory, "link")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(write(t, "{}"), link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		fifo: "not a regular file", link: "symbolic link", "/dev/null": "not a regular file", directory: "not a regular file",
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v instead of %q", path, err, want)
		}
	}
	if _, err := Open(filepath.Join(directory, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// runc, in Go, takes "Process" for "process"; we must not miss it.
func TestOtherCaseIsRefused(t *testing.T) {
	file, err := Open(write(t, `{"Process":{"noNewPrivileges":false}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Root.Get("process", new(Object)); err == nil {
		t.Error("Get misses Process")
	}
	if err := file.Root.Set("process", 1); err == nil {
		t.Error("Set goes beside Process")
	}
}

func TestUpdateOfMissing(t *testing.T) {
	root := Object{"null": json.RawMessage("null")}
	for _, key := range []string{"null", "missing"} {
		if err := root.Update(key, func(Object) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(root) != 1 {
		t.Errorf("an edit that does nothing has made %v", root)
	}
	if err := root.Update("null", func(o Object) error { return o.Set("a", 1) }); err != nil {
		t.Fatal(err)
	}
	if string(root["null"]) != `{"a":1}` {
		t.Errorf("got %s", root["null"])
	}
}

func TestValidID(t *testing.T) {
	for _, id := range []string{"a", "create", "a.b-c_d+e", strings.Repeat("f", 64), "1"} {
		if err := ValidID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", ".", "..", "a/b", "../a", "a\x00", "a b", "-a", "ä", "a\n", strings.Repeat("f", 201)} {
		if ValidID(id) == nil {
			t.Errorf("%q is accepted", id)
		}
	}
}

func TestRecords(t *testing.T) {
	records := Records(filepath.Join(t.TempDir(), "runtime"))
	if _, err := records.Load("one"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("missing record: %v", err)
	}
	stat, err := proc.ReadStat(proc.Directory, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	live := &Record{ID: "one", Root: "/r", Bundle: "/b", NoNewPrivileges: true, Pid: os.Getpid(), PidStarted: stat.Started,
		Capabilities: []CapabilityFilter{{Drop: []string{"ALL"}, Add: []string{"CAP_CHOWN"}}}}
	reused := &Record{ID: "two", Pid: os.Getpid(), PidStarted: stat.Started - 1}
	staged := &Record{ID: "three"}
	unmanaged := &Record{ID: "four", Unmanaged: true, Bundle: t.TempDir()}
	for _, record := range []*Record{live, reused, staged, unmanaged} {
		if err := records.Save(record); err != nil {
			t.Fatal(err)
		}
	}
	got, err := records.Load("one")
	if err != nil || !cmp.Equal(got, live) {
		t.Fatalf("%v %s", err, cmp.Diff(live, got))
	}
	records.Sweep(time.Now())
	for id, want := range map[string]bool{"one": true, "two": false, "three": true} {
		if _, err := records.Load(id); (err == nil) != want {
			t.Errorf("after the sweep: %s: %v", id, err)
		}
	}
	records.Sweep(time.Now().Add(time.Hour))
	if _, err := records.Load("three"); err == nil {
		t.Error("a record that was staged an hour ago is still there")
	}
	if _, err := records.Load("four"); err != nil {
		t.Errorf("the record of an unmanaged container whose bundle is there: %v", err)
	}
	os.Remove(unmanaged.Bundle)
	records.Sweep(time.Now())
	if _, err := records.Load("four"); err != nil {
		t.Errorf("the record of an unmanaged container that is being created: %v", err)
	}
	records.Sweep(time.Now().Add(time.Hour))
	if _, err := records.Load("four"); err == nil {
		t.Error("the record of an unmanaged container is there without its bundle")
	}
	if err := records.Remove("one"); err != nil {
		t.Fatal(err)
	}
	if err := records.Remove("one"); err != nil {
		t.Errorf("second remove: %v", err)
	}
	if err := records.Save(&Record{ID: "../x"}); err == nil {
		t.Error("a record outside of the folder")
	}
	if info, _ := os.Stat(string(records)); info.Mode().Perm() != 0o700 {
		t.Errorf("the folder's mode is %o", info.Mode().Perm())
	}
}
