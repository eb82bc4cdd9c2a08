// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const richContainerd = `# made by the machine's image; do not sort
version = 2
oom_score = -999
disabled_plugins = [ ]  # nothing

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
    BinaryName = '/usr/bin/nvidia-container-runtime' # theirs
    SystemdCgroup = true

[grpc]
  address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.example/pause:3.9"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "nvidia"
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
  endpoint = ["https://mirror.example"]`

// fakes puts programs before all others: containerd of a version, crictl, and others
// that only print.
func fakes(t *testing.T, programs map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+text+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func containerdIn(t *testing.T, version string) (*Containerd, string) {
	dir := t.TempDir()
	fakes(t, map[string]string{"containerd": "containerd github.com/containerd/containerd " + version + " abc"})
	return &Containerd{Programs: Programs{Directory: "/p"}, Config: filepath.Join(dir, "containerd/config.toml"), Named: true}, dir
}

// TestContainerdRich: comments, order, layout and a file without a last line end are
// as they were, in files of every version.
func TestContainerdRich(t *testing.T) {
	v3 := strings.NewReplacer("version = 2", "version = 3", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime").Replace(richContainerd)
	v1 := strings.NewReplacer("version = 2", "root = \"/var/lib/containerd\"", `"io.containerd.grpc.v1.cri"`, "cri").Replace(richContainerd)
	for _, test := range []struct{ name, version, text, table string }{
		{"1.7, version 2", "v1.7.24", richContainerd, `[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.actplane]`},
		{"2.1, version 2", "v2.1.4", richContainerd, `[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.actplane]`},
		{"2.1, version 3", "v2.1.4", v3, `[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.actplane]`},
		{"1.6, version 1", "1.6.20~ds1", v1, `[plugins.cri.containerd.runtimes.actplane]`},
		{"last line end", "v1.7.24", richContainerd + "\n", `[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.actplane]`},
		{"windows", "v1.7.24", strings.ReplaceAll(richContainerd, "\n", "\r\n") + "\r\n", `[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.actplane]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, dir := containerdIn(t, test.version)
			write(t, c.Config, test.text)
			do(t, c, false)
			once := read(t, c.Config)
			rest, ok := strings.CutPrefix(once, test.text+"\n"+blockBegin)
			for _, want := range []string{test.table, "\nBinaryName = \"/p/actplane-runtime\"\n", "\nSystemdCgroup = true\n", "\npod_annotations = [\"dev.actplane.*\"]\n"} {
				ok = ok && strings.Contains(rest, want)
			}
			if !ok || strings.Contains(rest, "version") {
				t.Fatalf("installed:\n%s", once)
			}
			if s := c.Look(t.Context()); len(s.Files) != 1 || s.Unfit+s.Needless != "" {
				t.Errorf("look: %+v", s)
			}
			do(t, c, false)
			if read(t, c.Config) != once {
				t.Errorf("a second time:\n%s", read(t, c.Config))
			}
			do(t, c, true)
			if got := read(t, c.Config); got != test.text {
				t.Errorf("removed:\n%s", got)
			}
			if got := tree(t, dir); got != "containerd containerd/config.toml" {
				t.Errorf("left are %s", got)
			}
		})
	}
}

// TestContainerdMade: a file that install made says its version, is upgraded, and goes.
func TestContainerdMade(t *testing.T) {
	for version, want := range map[string]string{"1.6.20": "version = 2\n[plugins.\"io.containerd.grpc", "v2.1.4": "version = 3\n[plugins.\"io.containerd.cri"} {
		c, dir := containerdIn(t, version)
		do(t, c, false)
		if text := read(t, c.Config); !strings.Contains(text, want) {
			t.Errorf("%s:\n%s", version, text)
		}
		write(t, filepath.Join(dir, "bin", shimProgram), "")
		c.Programs = Programs{Directory: filepath.Join(dir, "bin")}
		do(t, c, false)
		text := read(t, c.Config)
		if !strings.Contains(text, want) || !strings.Contains(text, "io.containerd.actplane.v2") || !strings.Contains(text, "runtime_path = ") || strings.Contains(text, "BinaryName") {
			t.Errorf("%s with a shim:\n%s", version, text)
		}
		do(t, c, true)
		if got := tree(t, dir); strings.Contains(got, "containerd/") {
			t.Errorf("%s: left are %s", version, got)
		}
	}
}

// TestContainerdShimComes: the files are planned before the programs are copied, and are as
// when they were.
func TestContainerdShimComes(t *testing.T) {
	c, dir := containerdIn(t, "1.6.20")
	write(t, filepath.Join(dir, "bin", shimProgram), "")
	c.Programs = Programs{Directory: filepath.Join(dir, "installed"), Source: filepath.Join(dir, "bin")}
	do(t, c, false)
	first := read(t, c.Config)
	write(t, filepath.Join(dir, "installed", shimProgram), "")
	do(t, c, false)
	if second := read(t, c.Config); first != second {
		t.Errorf("first:\n%s\nthen:\n%s", first, second)
	}
}

// TestContainerdImports: containerd 2 adds up the tables of imported files; before that a
// file of ours would take the place of all that the others say of the CRI.
func TestContainerdImports(t *testing.T) {
	imports := "imports = [\"conf.d/*.toml\", \"/nowhere/x.toml\"]\n"
	for _, test := range []struct {
		name, version, text, other string
		dropIn                     bool
	}{
		{"2.x", "v2.1.4", imports + richContainerd, "version = 2\n", true},
		{"1.x and tables in the main file", "v1.7.24", imports + richContainerd, "", false},
		{"1.x and tables in another file", "v1.7.24", imports + "version = 2\n", richContainerd, false},
		{"1.x and no tables", "v1.7.24", imports + "version = 2\noom_score = 1\n", "version = 2\n[debug]\nlevel = \"warn\"\n", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, dir := containerdIn(t, test.version)
			write(t, c.Config, test.text)
			other := filepath.Join(dir, "containerd/conf.d/10-other.toml")
			write(t, other, test.other)
			before := tree(t, dir)
			ours := filepath.Join(dir, "containerd/conf.d", dropInTOML)
			do(t, c, false)
			if got := exists(ours); got != test.dropIn || (read(t, c.Config) == test.text) != test.dropIn {
				t.Fatalf("drop-in %v; main\n%s", got, read(t, c.Config))
			}
			if test.dropIn && !strings.HasPrefix(read(t, ours), blockBegin+"version = 2\n") {
				t.Errorf("drop-in:\n%s", read(t, ours))
			}
			do(t, c, true)
			if read(t, c.Config) != test.text || read(t, other) != test.other || tree(t, dir) != before {
				t.Errorf("removed:\n%s\nleft are %s", read(t, c.Config), tree(t, dir))
			}
		})
	}
}

// TestContainerdMoved: what was in the main file goes to a drop-in when there can be one.
func TestContainerdMoved(t *testing.T) {
	c, dir := containerdIn(t, "v2.1.4")
	write(t, c.Config, "version = 3\n")
	do(t, c, false)
	write(t, c.Config, "imports = [\"/"+strings.TrimPrefix(dir, "/")+"/d/*.toml\"]\n"+read(t, c.Config))
	do(t, c, false)
	if strings.Contains(read(t, c.Config), "actplane.*") || !exists(filepath.Join(dir, "d", dropInTOML)) {
		t.Errorf("main:\n%s\n%s", read(t, c.Config), tree(t, dir))
	}
}

// TestHalfWay: whatever was done when it ended, doing it again does the rest, and so does
// undoing it. At no time is the runtime in none of the files.
func TestHalfWay(t *testing.T) {
	start := func(t *testing.T) (*Containerd, string, string) {
		c, dir := containerdIn(t, "v2.1.4")
		write(t, c.Config, richContainerd)
		do(t, c, false)
		text := "imports = [\"d/*.toml\"]\n" + read(t, c.Config)
		write(t, c.Config, text)
		return c, dir, "imports = [\"d/*.toml\"]\n" + richContainerd
	}
	c, dir, _ := start(t)
	edits, err := c.Plan(t.Context(), false)
	if err != nil || len(edits) != 2 {
		t.Fatalf("%d edits, %v", len(edits), err)
	}
	do(t, c, false)
	want := tree(t, dir) + read(t, c.Config)
	for done := range edits {
		c, dir, original := start(t)
		edits, err := c.Plan(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := applyAll(edits[:done]); err != nil {
			t.Fatal(err)
		}
		// And a writer that was killed.
		write(t, filepath.Join(filepath.Dir(c.Config), ".config.toml.new-7"), "half")
		if s := c.Look(t.Context()); len(s.Files) == 0 {
			t.Errorf("after %d edits it is nowhere", done)
		}
		do(t, c, false)
		if got := tree(t, dir) + read(t, c.Config); got != want {
			t.Errorf("after %d edits and again:\n%s\nwant\n%s", done, got, want)
		}
		do(t, c, true)
		if got := read(t, c.Config); got != original || strings.Contains(tree(t, dir), dropInTOML) {
			t.Errorf("after %d edits and undone: %s\n%s", done, tree(t, dir), got)
		}
	}
}

// TestContainerdChanged: what the user wrote meanwhile, before and behind our lines, stays.
func TestContainerdChanged(t *testing.T) {
	c, _ := containerdIn(t, "v1.7.24")
	write(t, c.Config, "version = 2")
	do(t, c, false)
	write(t, c.Config, "# new\n"+read(t, c.Config)+"[debug]\nlevel = \"info\"\n")
	do(t, c, true)
	if got, want := read(t, c.Config), "# new\nversion = 2\n[debug]\nlevel = \"info\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestContainerdRefused(t *testing.T) {
	table := `[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.actplane]`
	for _, test := range []struct {
		name, text, want string
		remove           bool
	}{
		{"broken", "version = 2\n[a\n", "2:3:", false},
		{"another's", "version = 2\n" + table + "\nruntime_type = \"x\"\n", "is already there and is not ActPlane's", false},
		{"braces", "version = 2\nplugins = {\"io.containerd.grpc.v1.cri\" = {}}\n", "headers of their own", false},
		{"half of the comments", blockBegin + "version = 2\n", "are not whole", false},
		{"half of the comments, removed", "version = 2\n" + blockEnd, "are not whole", true},
		{"default", "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\ndefault_runtime_name = \"actplane\"\n", "change that first", true},
		{"text behind", "version = 2\n" + blockBegin + table + "\nruntime_type = \"x\"\n" + blockEnd + "sandboxer = \"s\"\n", "belongs to it", true},
		{"text behind, again", "version = 2\n[debug]\n\n" + blockBegin + table + "\nruntime_type = \"x\"\n" + blockEnd + "sandboxer = \"s\"\n", "belongs to it", false},
		{"future", "version = 4\n", "does not know", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, dir := containerdIn(t, "v1.7.24")
			write(t, c.Config, test.text)
			_, err := c.Plan(t.Context(), test.remove)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if read(t, c.Config) != test.text || tree(t, dir) != "containerd containerd/config.toml" {
				t.Errorf("changed: %s", tree(t, dir))
			}
		})
	}
}

// TestReadOnly: what cannot be written is told before anything is.
func TestReadOnly(t *testing.T) {
	c, dir := containerdIn(t, "v1.7.24")
	write(t, c.Config, "version = 2\n")
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, filepath.Dir(c.Config): 0o555, c.Config: 0o444} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Chmod(filepath.Dir(c.Config), 0o755) })
	done := make(chan error)
	go func() {
		if os.Geteuid() == 0 {
			// For this thread alone, which ends with the goroutine.
			runtime.LockOSThread()
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
				done <- errno
				return
			}
		}
		edits, err := c.Plan(t.Context(), false)
		if err == nil {
			err = edits[0].Check()
		}
		done <- err
	}()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "change "+c.Config+": permission denied") {
		t.Errorf("got %v", err)
	}
}

// TestContainerdNeedless: where nobody uses the CRI, the file is left alone.
func TestContainerdNeedless(t *testing.T) {
	c, _ := containerdIn(t, "v1.7.24")
	write(t, c.Config, "disabled_plugins = [\"cri\"]\n")
	if s := c.Look(t.Context()); !s.Here || !strings.Contains(s.Needless, "is off") || s.Version != "1.7.24" {
		t.Errorf("CRI off: %+v", s)
	}
	write(t, c.Config, "version = 2\n")
	if s := c.Look(t.Context()); s.Needless != "" {
		t.Errorf("named: %+v", s)
	}
	c.Named = false
	if s := c.Look(t.Context()); !strings.Contains(s.Needless, "nothing here uses") || !strings.Contains(s.Hint, "/p/actplane-runtime") {
		t.Errorf("nobody uses it: %+v", s)
	}
	fakes(t, map[string]string{"kubelet": ""})
	if s := c.Look(t.Context()); s.Needless != "" {
		t.Errorf("with a kubelet: %+v", s)
	}
}

func TestLinks(t *testing.T) {
	c, dir := containerdIn(t, "v1.7.24")
	if err := os.MkdirAll(filepath.Dir(c.Config), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../real.toml", c.Config); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Plan(t.Context(), false); err == nil || !strings.Contains(err.Error(), "a link to what is not there") {
		t.Errorf("to nothing: %v", err)
	}
	write(t, filepath.Join(dir, "real.toml"), "version = 2\n")
	do(t, c, false)
	if link, _ := os.Readlink(c.Config); link != "../real.toml" || !strings.Contains(read(t, filepath.Join(dir, "real.toml")), "actplane") {
		t.Errorf("%s:\n%s", link, read(t, c.Config))
	}
	do(t, c, true)
	if got := tree(t, dir); read(t, c.Config) != "version = 2\n" || got != "containerd containerd/config.toml real.toml" {
		t.Errorf("left are %s", got)
	}
}

// FuzzBlock adds and removes the table in whatever is TOML: what was there is there again.
func FuzzBlock(f *testing.F) {
	for _, seed := range []string{"", "a = 1", "[a]\n", richContainerd, "[plugins]\r\n[plugins.cri]\r\n", "a = {b = {}}", "# c", "[[a]]\nb=1\n", "a = nan"} {
		f.Add(seed)
	}
	ed := (&Containerd{Programs: Programs{Directory: "/p"}}).editor(nil, "v1.7.24")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ed.add([]byte(text))
		if err != nil || strings.Contains(text, blockBegin) {
			return
		}
		if again, err := ed.add(got); err != nil || string(again) != string(got) {
			t.Fatalf("a second time: %v\n%q\n%q", err, got, again)
		}
		back, err := ed.remove(got)
		if err != nil || string(back) != text {
			t.Fatalf("removed: %v\n%q\n%q", err, back, text)
		}
	})
}
