// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/internal/testenv"
)

const messy = "policy: |\n    rule r: block   exec \"git\"\n"

// Whoever formats it, a file keeps its owner, group and mode, also behind links.
func TestFormatKeepsOwner(t *testing.T) {
	testenv.RequireRoot(t)
	for _, c := range []struct {
		uid, gid int
		mode     uint32
	}{{65534, 65533, 0o640}, {0, 65533, 0o2664}, {0, 0, 0o600}, {65534, 0, 0o4755}} {
		dir := t.TempDir()
		file, link, far := filepath.Join(dir, "p.yaml"), filepath.Join(dir, "link"), filepath.Join(dir, "far")
		for _, err := range []error{
			os.WriteFile(file, []byte(messy), 0o600), os.Chown(file, c.uid, c.gid), unix.Chmod(file, c.mode),
			os.Symlink("p.yaml", link), os.Symlink(link, far),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		var errOut strings.Builder
		if code := run([]string{"actplane", "fmt", far}, strings.NewReader(""), io.Discard, &errOut); code != 0 {
			t.Fatalf("%d: %s", code, errOut.String())
		}
		info, err := os.Lstat(file)
		if err != nil {
			t.Fatal(err)
		}
		stat := info.Sys().(*syscall.Stat_t)
		if int(stat.Uid) != c.uid || int(stat.Gid) != c.gid || stat.Mode&0o7777 != c.mode || content(t, file) == messy {
			t.Errorf("%d:%d %o: now %d:%d %o\n%s", c.uid, c.gid, c.mode, stat.Uid, stat.Gid, stat.Mode&0o7777, content(t, file))
		}
		for _, name := range []string{link, far} {
			if info, err := os.Lstat(name); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
	}
}

// A file whose owner cannot be kept stays as it is.
func TestFormatForOthers(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "actplane")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "p.yaml")
	write(t, file, messy)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := asNobody(t, "fmt", file)
	if code != exitEnvironment || out != "" || !strings.Contains(errOut, "operation not permitted (the file is replaced by a new one") || content(t, file) != messy {
		t.Errorf("%d\n%s%s", code, out, errOut)
	}
}
