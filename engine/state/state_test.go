// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actplane/actplane/policy/ir"
)

func sample() *Saved {
	return &Saved{
		ID: "c", Name: "agent", Run: "one", Saved: time.Unix(1_700_000_000, 0).UTC(), Boot: "boot",
		Labels: []string{"A", "B"}, Kept: []string{"B"}, Marks: true, Open: []string{"gate"},
		Filesystems: []Filesystem{{Device: 40, Type: "overlay", Upper: "/u", Places: []Place{{"/", "/"}}}},
		Files:       Files{{Inode: 1 << 60, Generation: 7, Labels: 1 << 63, Flags: 3, Kept: 5}, {Inode: 2}},
		Counters:    Counters{Denied: 3}, Sequence: 9, Answers: []byte(`{"x":1}`),
	}
}

func TestFormat(t *testing.T) {
	text, err := sample().encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(text)
	if err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, spoilt := range map[string][]byte{
		"empty": nil, "cut": text[:len(text)-1], "longer": append(bytes.Clone(text), ' '), "no line": bytes.ReplaceAll(text, []byte("\n"), nil),
		"a bit": append(bytes.Clone(text[:len(text)-9]), append([]byte{text[len(text)-9] ^ 1}, text[len(text)-8:]...)...),
		"newer": bytes.Replace(text, []byte("state 1"), []byte("state 2"), 1), "zeros": make([]byte, len(text)),
	} {
		if got, err := decode(spoilt); err == nil {
			t.Errorf("%s is read as %+v", name, got)
		}
	}
	wrong := sample()
	wrong.Files[1].Filesystem = 1
	if text, _ := wrong.encode(); text != nil {
		if _, err := decode(text); err == nil {
			t.Error("a file on no file system is read")
		}
	}
}

// store opens one with a clock that advance sets on.
func store(t *testing.T) (s *Store, advance func(time.Duration)) {
	t.Helper()
	now := sample().Saved
	s, err := Open(filepath.Join(t.TempDir(), "states"), Retention, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return s, func(d time.Duration) { now = now.Add(d) }
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What is saved is there until its time is up, whoever dies in between; a start of which
// nothing was saved is lost.
func TestStore(t *testing.T) {
	s, advance := store(t)
	if got := s.Load("c", ""); got != nil {
		t.Errorf("a container that never ran has %+v", got)
	}
	must(t, s.Begin("c", "one"))
	if got := s.Load("c", ""); got == nil || got.Lost == "" {
		t.Errorf("killed in its first start: %+v", got)
	}
	must(t, s.Save(sample()))
	if got := s.Load("c", ""); !reflect.DeepEqual(got, sample()) {
		t.Errorf("%+v", got)
	}
	must(t, s.Begin("c", "two"), s.Cancel("c")) // its program did not run
	if got := s.Load("c", ""); !reflect.DeepEqual(got, sample()) {
		t.Errorf("after a start that failed: %+v", got)
	}
	must(t, s.Begin("c", "two"))
	if got := s.Load("c", ""); got.Lost == "" || len(got.Files) != 0 || got.Sequence != 9 || got.Counters.Denied != 3 {
		t.Errorf("killed in its second start: %+v", got)
	}
	// Killed between the two steps of saving: what was saved is of this start.
	saved := sample()
	saved.Run = "two"
	must(t, s.Save(saved), s.Begin("c", "two"))
	if got := s.Load("c", ""); got.Lost != "" {
		t.Errorf("%+v", got)
	}
	must(t, s.Cancel("c"))
	for _, path := range []string{s.dir, s.statePath("c")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	advance(Retention)
	if s.Load("c", "") == nil {
		t.Error("forgotten too early")
	}
	advance(time.Second)
	if got := s.Load("c", ""); got != nil {
		t.Errorf("its time is up: %+v", got)
	}
	must(t, s.Sweep(func(string) bool { return false }))
	if left, _ := os.ReadDir(s.dir); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

func TestStoreSpoilt(t *testing.T) {
	s, _ := store(t)
	must(t, os.WriteFile(s.statePath("c"), []byte("actplane-state 1 nonsense\n{}"), 0o600))
	if got := s.Load("c", ""); got == nil || !strings.Contains(got.Lost, "spoilt") {
		t.Errorf("%+v", got)
	}
	list, err := s.List()
	if err != nil || len(list) != 1 || list[0].Lost == "" {
		t.Errorf("%+v %v", list, err)
	}
	must(t, s.Reset("c"))
	if got := s.Load("c", ""); got == nil || got.Lost != "" {
		t.Errorf("after a reset: %+v", got)
	}
	if err := s.Reset("none"); err == nil {
		t.Error("what is not there is reset")
	}
	// Another container's file under this one's name.
	text, err := os.ReadFile(s.statePath("c"))
	must(t, err, os.WriteFile(s.statePath("d"), text, 0o600))
	if got := s.Load("d", ""); got == nil || got.Lost == "" {
		t.Errorf("%+v", got)
	}
}

func TestSweep(t *testing.T) {
	s, advance := store(t)
	home := t.TempDir()
	for _, id := range []string{"live", "lost", "kept"} {
		saved := sample()
		saved.ID, saved.Home = id, home
		must(t, s.Save(saved))
	}
	must(t, s.Begin("live", "two"), s.Begin("lost", "two"))
	advance(time.Hour)
	live := func(id string) bool { return id == "live" }
	must(t, s.Sweep(live), s.Sweep(live))
	if got := s.Load("lost", ""); got.Lost == "" || got.Saved != sample().Saved.Add(time.Hour) {
		t.Errorf("the time of what is lost begins when it is found: %+v", got)
	}
	if _, err := os.Stat(s.runPath("live")); err != nil {
		t.Error(err)
	}
	if got := s.Load("kept", ""); got == nil || got.Lost != "" {
		t.Errorf("%+v", got)
	}
	must(t, os.Remove(home), s.Sweep(live))
	if entries, _ := s.List(); len(entries) != 1 || entries[0].ID != "live" {
		t.Errorf("the containers are removed, and left are %+v", entries)
	}
}

// Of a container that is removed nothing comes to another of the same id, and what is lost
// of that one is not taken for the first one's.
func TestSameID(t *testing.T) {
	s, _ := store(t)
	saved := sample()
	saved.ID, saved.Home = "x", t.TempDir()
	must(t, s.Save(saved))
	if got := s.Load("x", ""); got == nil || got.Lost != "" {
		t.Fatalf("%+v", got)
	}
	if got := s.Load("x", saved.Home); got == nil || got.Lost != "" {
		t.Fatalf("%+v", got)
	}
	if got := s.Load("x", t.TempDir()); got != nil {
		t.Errorf("before the first one's home is removed: %+v", got)
	}
	must(t, s.Save(saved))
	must(t, os.Remove(saved.Home))
	if got := s.Load("x", ""); got != nil {
		t.Errorf("%+v", got)
	}
	must(t, s.Begin("x", "two"))
	if got := s.Load("x", ""); got == nil || got.Lost == "" || got.Counters.Denied != 0 {
		t.Errorf("%+v", got)
	}
}

// A full store keeps that something was lost.
func TestStoreFull(t *testing.T) {
	s, _ := store(t)
	s.total = 100
	other := sample()
	must(t, s.Save(other))
	got := s.Load("c", "")
	if got == nil || !strings.Contains(got.Lost, "MiB") || len(got.Files) != 0 || got.Sequence != 9 {
		t.Errorf("%+v", got)
	}
}

const (
	dockerMounts = `31 20 8:1 / / rw - ext4 /dev/sda1 rw
40 31 0:50 / /docker/merged rw - overlay overlay rw,lowerdir=/l/A:/l/B,upperdir=/docker/diff,workdir=/docker/work
41 40 0:51 / /docker/merged/proc rw - proc proc rw
42 40 0:52 / /docker/merged/dev rw - tmpfs tmpfs rw
43 40 8:1 /home/me/src /docker/merged/workspace rw - ext4 /dev/sda1 rw
44 40 0:33 /v /docker/merged/data rw - fuse.sshfs me@host:/ rw
`
	hostMounts = `31 20 8:1 / / rw - ext4 /dev/sda1 rw
40 31 0:50 / /docker/merged rw - overlay overlay rw,upperdir=/docker/diff
45 31 0:33 / /mnt rw - fuse.sshfs me@host:/ rw
`
)

func TestFilesystems(t *testing.T) {
	first, err := Filesystems([]byte(dockerMounts), []byte(hostMounts), "/docker/merged")
	must(t, err)
	var kinds []string
	for _, f := range first {
		kind := f.Type + " " + f.Places[0].At + " " + f.Places[0].Root
		if f.Fresh {
			kind += " fresh"
		}
		kinds = append(kinds, kind)
	}
	want := []string{"overlay / /", "proc /proc / fresh", "tmpfs /dev / fresh", "ext4 /workspace /home/me/src", "fuse.sshfs /data /v"}
	if !slices.Equal(kinds, want) {
		t.Errorf("%q", kinds)
	}
	at := func(device uint32, inode uint64) Placed { return Placed{device, File{Inode: inode}} }
	fs, files, missed, err := Sort([]Placed{at(50, 1), at(8<<20|1, 2), at(52, 3), at(99, 4), at(33, 5)}, first, []byte(hostMounts))
	must(t, err)
	if len(fs) != 3 || len(files) != 3 || missed {
		t.Errorf("%+v %+v %v", fs, files, missed)
	}
	if _, _, missed, _ := Sort([]Placed{at(8<<20|2, 1)}, first, []byte(hostMounts)); !missed {
		t.Error("a disk that was mounted later counts as gone")
	}
	// The next start: other numbers.
	saved := &Saved{Boot: "boot", Filesystems: fs, Files: files}
	again := strings.NewReplacer("0:50", "0:60", "0:52", "0:50", "8:1", "254:3", "sda1", "vda3").Replace(dockerMounts)
	second, err := Filesystems([]byte(again), []byte(strings.ReplaceAll(hostMounts, "0:50", "0:60")), "/docker/merged")
	must(t, err)
	placed, lost := saved.Place(second, "boot")
	var devices []uint32
	for _, p := range placed {
		devices = append(devices, p.Device)
	}
	if !slices.Equal(devices, []uint32{60, 254<<20 | 3, 33}) || lost != "" {
		t.Errorf("%v %q", devices, lost)
	}
	if _, lost := saved.Place(second, "another"); !strings.Contains(lost, "/data") {
		t.Errorf("a fuse server may number files otherwise after a boot: %q", lost)
	}
}

func TestTranslate(t *testing.T) {
	gate := ir.Gate{After: ir.Event{Op: ir.Exec, Pattern: ir.Pattern{Text: "make"}}, Exit: 0, Text: "as written"}
	other := gate
	other.Exit = -1
	saved := &Saved{Labels: []string{"A", "B", "GONE"}, Kept: []string{"A"}, Open: []string{Key(gate)}}
	now := &ir.Program{
		Labels: []ir.Label{{Name: "NEW"}, {Name: "B"}, {Name: "A"}, {Name: "A", Layer: 1}}, Gates: []ir.Gate{other, gate},
	}
	translate := saved.Translate(now)
	for from, to := range map[uint64]uint64{0: 0, 1: 1<<2 | 1<<3, 2: 2, 4: 0, 7: 2 | 1<<2 | 1<<3, 1 << 63: 0} {
		if got := translate(from); got != to {
			t.Errorf("%b becomes %b, want %b", from, got, to)
		}
	}
	if got := saved.Gates(now); !slices.Equal(got, []int{1}) {
		t.Errorf("open are %v", got)
	}
	if got := saved.Unkept(now, 1<<2, false); got != "" {
		t.Error(got)
	}
	if got := saved.Unkept(now, 1<<0|1<<2, true); !strings.Contains(got, "label NEW, whether it was changed") {
		t.Error(got)
	}
}
