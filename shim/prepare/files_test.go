// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// The container's files are hostile: no name may lead out of a mount, hang, or
// give something other than a small regular file.
func TestContainerFiles(t *testing.T) {
	root := t.TempDir()
	make := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	make("secret", "secret")
	make("src/plain", "plain")
	make("src/sub/plain", "hidden by a mount")
	make("sub/plain", "mounted below")
	make("src/big", strings.Repeat("x", maxPolicy+1))
	make("src/file/x", "x")
	make("rootfs/etc/actplane/policy.yaml", "image")
	make("rootfs/secret", "the image's own")
	link("plain", "src/inside")
	link("../secret", "src/up")
	link(filepath.Join(root, "secret"), "src/absolute")
	link("..", "src/parent")
	link("loop", "src/loop")
	link("none", "src/dangling")
	link("/proc/self/root/etc/passwd", "src/magic")
	link("../../secret", "rootfs/etc/up")
	link("/secret", "rootfs/etc/absolute")
	if err := unix.Mkfifo(filepath.Join(root, "src/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(root, "src/socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	bind := func(source, destination string) specs.Mount {
		return specs.Mount{Type: "bind", Source: filepath.Join(root, source), Destination: destination}
	}
	files := containerFiles{spec: &spec{rootfs: filepath.Join(root, "rootfs"), bundle: root, mounts: []specs.Mount{
		{Type: "tmpfs", Destination: "/tmp"}, bind("sub", "/covered/deep"), bind("src", "/covered"),
		bind("src", "/src"), bind("sub", "/src/sub"), bind("src/plain", "/one/file"), bind("src/fifo", "/one/fifo"),
		{Destination: "/relative", Source: "sub", Options: []string{"rbind"}}, bind("none", "/none"),
		{Type: "bind", Source: "/dev/null", Destination: "/null"},
	}}}
	tests := []struct {
		path, want string
		err        string // "none": fs.ErrNotExist
		layer      layer
	}{
		{"/src/plain", "plain", "", operator},
		{"/src/inside", "plain", "", operator},
		{"/src/sub/plain", "mounted below", "", operator},
		{"/covered/deep/plain", "", "none", 0},
		{"/one/file", "plain", "", operator},
		{"/relative/plain", "mounted below", "", operator},
		{"/etc/actplane/policy.yaml", "image", "", inside},
		{"/etc/up", "the image's own", "", inside},
		{"/etc/absolute", "the image's own", "", inside},
		{"/src/up", "", "out of the mount", 0},
		{"/src/absolute", "", "out of the mount", 0},
		{"/src/parent/secret", "", "out of the mount", 0},
		{"/src/magic", "", "out of the mount", 0},
		{"/src/loop", "", "cannot be followed", 0},
		{"/src/dangling", "", "none", 0},
		{"/src/plain/x", "", "none", 0},
		{"/src/missing", "", "none", 0},
		{"/none/x", "", "none", 0},
		{"/tmp/x", "", "none", 0},
		{"/src/file", "", "not a regular file", 0},
		{"/src/fifo", "", "not a regular file", 0},
		{"/one/fifo", "", "not a regular file", 0},
		{"/src/socket", "", "not a regular file", 0},
		{"/null", "", "not a regular file", 0},
		{"/src", "", "not a regular file", 0},
		{"/src/big", "", "larger than 1 MiB", 0},
		{"/src/a\x00", "", "NUL", 0},
		{"/src/" + strings.Repeat("x", 5000), "", "too long", 0},
	}
	for _, test := range tests {
		began := time.Now()
		document, err := files.read(test.path, operator)
		if time.Since(began) > 5*time.Second {
			t.Errorf("%.40q took long", test.path)
		}
		switch {
		case test.err == "none":
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%.40q: error %v instead of no file", test.path, err)
			}
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%.40q: error %v instead of %q", test.path, err, test.err)
			}
		case err != nil || string(document.text) != test.want || document.layer != test.layer:
			t.Errorf("%.40q: %q of layer %d, error %v", test.path, document.text, document.layer, err)
		}
	}
}

// A symbolic link of the image on the way to a mount gives everything in it other
// paths than the policy names.
func TestStraight(t *testing.T) {
	root := t.TempDir()
	for _, directory := range []string{"rootfs/real", "rootfs/var", "src/real", "other"} {
		if err := os.MkdirAll(filepath.Join(root, directory), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"rootfs/src": "real", "rootfs/abs": "/real", "rootfs/real/deep": "..", "rootfs/var/run": "../run", "src/link": "real", "rootfs/dangling": "none",
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	bind := func(source, destination string) specs.Mount {
		return specs.Mount{Type: "bind", Source: filepath.Join(root, source), Destination: destination}
	}
	files := containerFiles{spec: &spec{rootfs: filepath.Join(root, "rootfs"), bundle: root, mounts: []specs.Mount{
		bind("src", "/src"), bind("src", "/plain"), bind("other", "/plain/link/below"), bind("src", "/real/deep/x"),
		bind("src", "/var/run/secrets/"), {Type: "tmpfs", Destination: "/tmp"}, bind("src", "/missing/x"), bind("none", "/none"),
	}}}
	for name, link := range map[string]string{
		"/src": "/src", "/src/a": "/src", "/abs": "/abs", "/plain": "", "/plain/real": "", "/plain/link": "/plain/link",
		"/plain/link/below": "/plain/link", "/real/deep/x": "/real/deep", "/var/run/secrets": "/var/run", "/tmp/x": "",
		"/missing/x": "", "/missing/x/link": "/missing/x/link", "/none/x": "", "/dangling/x": "/dangling", "/": "", "/real": "",
	} {
		err := files.straight(name)
		if (err == nil) != (link == "") || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q is a symbolic link", link)) {
			t.Errorf("%q: error %v, want the link %q", name, err, link)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "src/real/p.yaml"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	document, err := files.read("/plain/link/p.yaml", operator)
	if err != nil || document.behind != "/plain/real/p.yaml" {
		t.Errorf("the file behind a link is %q, error %v", document.behind, err)
	}
	if _, err := files.read("/src/real/p.yaml", operator); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a policy on a mount behind a link: %v", err)
	}
}

// A directory that turns into a link out and back must never give what is outside.
func TestRacingLinks(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"src/real/policy": "inside", "out/policy": "outside"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../out", filepath.Join(root, "src/link")); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "src/real"), unix.AT_FDCWD, filepath.Join(root, "src/link"), unix.RENAME_EXCHANGE)
			}
		}
	}()
	read := 0
	for range 5000 {
		text, _, err := readBeneath(filepath.Join(root, "src"), "real/policy", unix.RESOLVE_BENEATH)
		if string(text) == "outside" {
			t.Fatal("read a file outside of the mount")
		}
		if err == nil {
			read++
		}
	}
	close(done)
	<-stopped
	if read == 0 {
		t.Error("never read the file inside")
	}
}
