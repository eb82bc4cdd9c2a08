// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
)

// What is kept of a container goes with the directory that its writes go to.
func TestHome(t *testing.T) {
	room, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testenv.MountTmpfs(t, room, 1<<20)
	for _, name := range []string{"lower", "upper", "work", "root", "plain"} {
		if err := os.Mkdir(filepath.Join(room, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(room, "root")
	testenv.MountOverlay(t, root, fmt.Sprintf("lowerdir=%s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", room))
	for rootfs, want := range map[string]string{root: room + "/upper", root + "/": room + "/upper", room + "/plain": "", "/none": ""} {
		if got := homeOf(&spec{rootfs: rootfs}, nil); got != want {
			t.Errorf("%s: home %q, not %q", rootfs, got, want)
		}
	}
	if got := homeOf(&spec{rootfs: root}, &dockerFile{home: "/docker"}); got != "/docker" {
		t.Errorf("home %q beside Docker", got)
	}
}
