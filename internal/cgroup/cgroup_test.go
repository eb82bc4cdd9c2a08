// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const hybrid = `31 23 0:28 / %/cg rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / %/cg/memory rw,relatime shared:9 - cgroup cgroup rw,memory
38 31 0:35 / %/cg/unified rw,relatime shared:10 master:3 - cgroup2 cgroup2 rw,nsdelegate
`

// tree makes a host: a proc with mountinfo and processes, and cgroups.
func tree(t *testing.T, mountinfo string, processes map[string]string, cgroups ...string) (proc, root string) {
	t.Helper()
	root = t.TempDir()
	proc = filepath.Join(root, "proc")
	files := map[string]string{"self/mountinfo": strings.ReplaceAll(mountinfo, "%", root)}
	for pid, text := range processes {
		files[pid+"/cgroup"] = text
	}
	for name, text := range files {
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, directory := range cgroups {
		if err := os.MkdirAll(filepath.Join(root, directory), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return proc, root
}

func TestOf(t *testing.T) {
	const pure = "30 23 0:27 / %/cg rw - cgroup2 cgroup2 rw\n"
	tests := []struct {
		name, mountinfo, cgroup, make string
		want, err                     string
	}{
		{"pure", pure, "0::/docker/abc\n", "cg/docker/abc", "cg/docker/abc", ""},
		{"hybrid", hybrid, "8:memory:/other\n0::/docker/abc\n", "cg/unified/docker/abc", "cg/unified/docker/abc", ""},
		{"root", pure, "0::/\n", "cg", "", "root cgroup"},
		{"hybrid, only in v1", hybrid, "8:memory:/docker/abc\n0::/\n", "cg/memory/docker/abc", "", "root cgroup"},
		{"no v2 line", hybrid, "8:memory:/docker/abc\n", "cg", "", "in no cgroup v2"},
		{"deleted", pure, "0::/docker/abc (deleted)\n", "cg", "", "gone"},
		{"outside the namespace", pure, "0::/../other\n", "other", "", "outside"},
		{"dots", pure, "0::/a/../../b\n", "b", "", "outside"},
		{"directory missing", pure, "0::/docker/abc\n", "cg", "", "no such file"},
		{"a part is mounted", "30 23 0:27 /part %/cg rw - cgroup2 cgroup2 rw\n", "0::/part/abc\n", "cg/abc", "cg/abc", ""},
		{"another part", "30 23 0:27 /part %/cg rw - cgroup2 cgroup2 rw\n", "0::/partial/abc\n", "cg/abc", "", `only "/part"`},
		{"the part itself", "30 23 0:27 /part %/cg rw - cgroup2 cgroup2 rw\n", "0::/part\n", "cg", "", "root cgroup"},
		{"the whole is better", "29 23 0:27 /part %/p rw - cgroup2 c rw\n30 23 0:27 / %/cg rw - cgroup2 c rw\n", "0::/abc\n", "cg/abc", "cg/abc", ""},
		{"escaped", "30 23 0:27 / %/c\\040g rw - cgroup2 cgroup2 rw\n", "0::/abc\n", "c g/abc", "c g/abc", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			proc, root := tree(t, test.mountinfo, map[string]string{"42": test.cgroup}, test.make)
			mounts, err := Find(proc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := mounts.Of(42)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %q, error %v instead of %q", got, err, test.err)
				}
				return
			}
			if err != nil || got != filepath.Join(root, test.want) {
				t.Fatalf("got %q, error %v", got, err)
			}
			id, err := ID(got)
			if err != nil || id == 0 {
				t.Errorf("id %d, error %v", id, err)
			}
		})
	}
}

func TestFind(t *testing.T) {
	proc, root := tree(t, hybrid, nil)
	mounts, err := Find(proc)
	if err != nil {
		t.Fatal(err)
	}
	if len(mounts.Legacy) != 1 || mounts.Legacy[0] != root+"/cg/memory" {
		t.Errorf("v1 mounts: %q", mounts.Legacy)
	}
	proc, _ = tree(t, "31 23 0:28 / / rw - ext4 /dev/vda rw\nnonsense\n", nil)
	if _, err := Find(proc); !errors.Is(err, ErrNoMount) {
		t.Errorf("no mount: %v", err)
	}
}
