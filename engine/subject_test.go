// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/kernel"
)

// withDirectory is a host whose processes are where this one is.
type withDirectory struct{ host }

func (h withDirectory) WorkingDirectory(int) (string, kernel.FileID, error) {
	return realHost{}.WorkingDirectory(os.Getpid())
}

func TestSubject(t *testing.T) {
	b := newAskBench(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err := unix.Stat(here, &stat); err != nil {
		t.Fatal(err)
	}
	e := &Engine{config: b.e.config}
	e.config.host = withDirectory{e.config.host}
	b.process(300, 299, "/c")
	b.mkdir("cgroup/c/below")
	b.process(299, 298, "/c/below")
	b.process(298, 1, "/elsewhere") // not the container's: a runtime
	b.write("proc/299/comm", "no\nde\n")
	s := b.e.scope("c")
	rec := kernel.Record{PID: 300, Directory: kernel.FileID{Device: unix.Major(stat.Dev)<<20 | unix.Minor(stat.Dev), Inode: stat.Ino, Generation: 5}}
	got := e.subjectOf(s, rec)
	if got.Directory != here || len(got.Ancestors) != 1 || got.Ancestors[0] != (ancestor{299, "no\nde"}) {
		t.Errorf("%+v, want %s and one ancestor", got, here)
	}
	// It has moved on: what it was about is not known.
	rec.Directory.Inode++
	if got := e.subjectOf(s, rec); got.Directory != "" {
		t.Errorf("%+v", got)
	}
	if got := e.subjectOf(s, kernel.Record{PID: 4242}); len(got.Ancestors) != 0 {
		t.Errorf("%+v", got)
	}
}
