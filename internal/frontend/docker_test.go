// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

// read is the text of a file, or "none" where there is none.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return "none"
	} else if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// do plans and makes the edits of a front end.
func do(t *testing.T, f FrontEnd, remove bool) {
	t.Helper()
	edits, err := f.Plan(t.Context(), remove)
	if err == nil {
		err = applyAll(edits)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tree lists the files below a folder.
func tree(t *testing.T, root string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && path != root {
			name, _ := filepath.Rel(root, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

const richDaemonJSON = `{
	"data-root": "/srv/docker",
	"default-runtime": "nvidia",
	"log-opts": {"max-size": "10m"  , "max-file": "3"},
	"runtimes": {
		"nvidia": { "args": [], "path": "nvidia-container-runtime" },
		"crun":{"path":"/usr/bin/crun"}
	},
	"default-address-pools": [ {"base":"10.200.0.0/16","size":24} ],
	"max-concurrent-downloads": 1e1,
	"exec-opts": ["native.cgroupdriver=systemd"], "live-restore": true
}`

func dockerIn(dir string) *Docker {
	return &Docker{Programs: Programs{Directory: "/p"}, Config: filepath.Join(dir, "docker/daemon.json"), Named: true}
}

// TestDockerRich: what was in a full configuration is there afterwards, to the byte.
func TestDockerRich(t *testing.T) {
	dir := t.TempDir()
	d := dockerIn(dir)
	write(t, d.Config, richDaemonJSON)
	do(t, d, false)
	once := read(t, d.Config)
	if !strings.Contains(once, `"path": "/p/actplane-runtime"`) || read(t, d.Config+BackupSuffix) != richDaemonJSON {
		t.Fatalf("installed:\n%s\nbackup:\n%s", once, read(t, d.Config+BackupSuffix))
	}
	do(t, d, false)
	if read(t, d.Config) != once {
		t.Errorf("a second time:\n%s", read(t, d.Config))
	}
	do(t, d, true)
	if got := read(t, d.Config); got != richDaemonJSON {
		t.Errorf("removed:\n%s", got)
	}
	if got := tree(t, dir); got != "docker docker/daemon.json" {
		t.Errorf("left are %s", got)
	}
}

// TestDockerMade: a file that install made goes with uninstall; a link stays one.
func TestDockerMade(t *testing.T) {
	dir := t.TempDir()
	d := dockerIn(dir)
	do(t, d, false)
	if text := read(t, d.Config); !strings.Contains(text, "/p/actplane-runtime") {
		t.Fatal(text)
	}
	d.Programs = Programs{Directory: "/q"} // an upgrade to another folder
	do(t, d, false)
	if text := read(t, d.Config); !strings.Contains(text, "/q/actplane-runtime") || strings.Contains(text, "/p/") {
		t.Fatal(text)
	}
	do(t, d, true)
	if got := tree(t, dir); got != "docker" {
		t.Errorf("left are %s", got)
	}

	target := filepath.Join(dir, "real.json")
	write(t, target, "{}\n")
	if err := os.Symlink("../real.json", d.Config); err != nil {
		t.Fatal(err)
	}
	do(t, d, false)
	do(t, d, true)
	info, err := os.Stat(target)
	if link, _ := os.Readlink(d.Config); err != nil || link != "../real.json" || info.Mode().Perm() != 0o640 {
		t.Errorf("link %q, %v, %v", link, info, err)
	}
	if read(t, target) != "{}\n" || exists(target+BackupSuffix) {
		t.Errorf("left are %q and a backup: %v", read(t, target), exists(target+BackupSuffix))
	}
}

// TestDockerChanged: what the user changed meanwhile stays, and so does the backup, which
// says something else.
func TestDockerChanged(t *testing.T) {
	d := dockerIn(t.TempDir())
	write(t, d.Config, richDaemonJSON)
	do(t, d, false)
	write(t, d.Config, strings.Replace(read(t, d.Config), `"size":24`, `"size":26`, 1))
	edits, err := d.Plan(t.Context(), true)
	if err == nil {
		err = applyAll(edits)
	}
	if err != nil || edits[0].Left() != d.Config+BackupSuffix {
		t.Errorf("left is %q, %v", edits[0].Left(), err)
	}
	if got, want := read(t, d.Config), strings.Replace(richDaemonJSON, `"size":24`, `"size":26`, 1); got != want {
		t.Errorf("got\n%s", got)
	}
	if read(t, d.Config+BackupSuffix) != richDaemonJSON {
		t.Error("the backup is gone")
	}
}

// TestDockerInterrupted: a removal that ended between its steps is gone on with.
func TestDockerInterrupted(t *testing.T) {
	d := dockerIn(t.TempDir())
	const before = `{"debug":true}`
	write(t, d.Config, before)
	do(t, d, false)
	between, err := emptyRuntimes([]byte(read(t, d.Config)))
	if err != nil || string(between) == before {
		t.Fatalf("%s, %v", between, err)
	}
	write(t, d.Config, string(between))
	write(t, filepath.Join(filepath.Dir(d.Config), ".daemon.json.new-123"), "half")
	do(t, d, true)
	if got := read(t, d.Config); got != before {
		t.Errorf("got %s", got)
	}
	if got := tree(t, filepath.Dir(d.Config)); got != "daemon.json" {
		t.Errorf("left are %s", got)
	}
}

func TestDockerUnfit(t *testing.T) {
	for _, test := range []struct{ config, daemon, client, want string }{
		{"/home/a/.config/docker/daemon.json", "", "", rootlessWhy},
		{"/var/snap/docker/current/config/daemon.json", "", "", snapWhy},
		{DockerConfig, "", "/snap/bin/docker", snapWhy},
		{DockerConfig, "/usr/bin/dockerd", "/snap/bin/docker", ""},
		{DockerConfig, "/usr/bin/dockerd", "/usr/bin/docker", ""},
	} {
		d := &Docker{Config: test.config}
		if why, remedy := d.unfit(test.daemon, test.client); why != test.want || (why == "") != (remedy == "") {
			t.Errorf("%+v: %q, %q", test, why, remedy)
		}
	}
	t.Setenv("DOCKER_HOST", "unix:///run/user/1000/docker.sock")
	if why, _ := (&Docker{Config: DockerConfig}).unfit("/usr/bin/dockerd", "/usr/bin/docker"); why != rootlessWhy {
		t.Errorf("with a user's socket: %q", why)
	}
}
