// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
)

// command runs a program in the repository's root and gives what it prints.
func command(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = ".."
	c.Env = append(os.Environ(), env...)
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out.String(), complaint.String())
	}
	return out.String()
}

// TestDeb builds the package twice, in other surroundings: it is the same to the byte. Then
// it looks at what is in it.
func TestDeb(t *testing.T) {
	testenv.RequireRoot(t) // files of root's, as a user builds it in CI
	for tool, debian := range map[string]string{"dpkg-deb": "dpkg", "make": "make", "git": "git"} {
		testenv.RequireProgram(t, tool, debian)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	command(t, nil, "make", "-s", "build", "BINDIR="+bin, "VERSION=v1.2.3")
	build := func(folder string, env ...string) []byte {
		out := filepath.Join(dir, folder)
		deb := strings.TrimSpace(command(t, append(env, "DEB_LEVEL=1"), "sh", "-c", "umask 077; packaging/deb/build '"+bin+"' '"+out+"' 1.2.3"))
		content, err := os.ReadFile(deb)
		if err != nil || filepath.Dir(deb) != out {
			t.Fatalf("%q: %v", deb, err)
		}
		return content
	}
	one := build("one")
	if two := build("two", "TZ=Asia/Tokyo", "LC_ALL=C"); !bytes.Equal(one, two) {
		t.Error("a second build gives other bytes")
	}
	deb := filepath.Join(dir, "one", "actplane_1.2.3_"+strings.TrimSpace(command(t, nil, "dpkg", "--print-architecture"))+".deb")
	checkContents(t, deb, dir)
	t.Run("lintian", func(t *testing.T) {
		testenv.RequireProgram(t, "lintian", "lintian")
		// What it says of being run by root is not about the package.
		out := command(t, nil, "lintian", "--allow-root", "--fail-on", "error,warning", deb)
		if strings.TrimSpace(out) != "" {
			t.Error(out)
		}
	})
	t.Run("manual pages", func(t *testing.T) {
		testenv.RequireProgram(t, "man", "man-db")
		pages, _ := filepath.Glob(filepath.Join(dir, "root/usr/share/man/man?/*.gz"))
		if len(pages) != 6 {
			t.Errorf("there are %d", len(pages))
		}
		for _, page := range pages {
			c := exec.Command("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", page)
			c.Env = append(os.Environ(), "MANROFFSEQ=", "MANWIDTH=100", "LC_ALL=C.UTF-8", "MANPAGER=cat")
			var out, complaint bytes.Buffer
			c.Stdout, c.Stderr = &out, &complaint
			if err := c.Run(); err != nil || complaint.Len() > 0 {
				t.Errorf("%s: %v\n%s", filepath.Base(page), err, complaint.String())
			}
			text := command(t, nil, "gzip", "-dc", page)
			for _, section := range []string{"NAME", "SYNOPSIS", "EXIT STATUS", "FILES"} {
				if !strings.Contains(text, "\n.SH "+section+"\n") {
					t.Errorf("%s has no section %s", filepath.Base(page), section)
				}
			}
		}
	})
}

// checkContents unpacks the package into dir/root and compares it with what there is to be.
func checkContents(t *testing.T, deb, dir string) {
	t.Helper()
	root := filepath.Join(dir, "root")
	command(t, nil, "dpkg-deb", "--raw-extract", deb, root)
	for path, want := range map[string]string{
		"DEBIAN/conffiles":                                  "/etc/actplane/config.yaml\n",
		"DEBIAN/control":                                    "Version: 1.2.3\n",
		"lib/systemd/system/actplaned.service":              "ExecStart=/usr/bin/actplaned\n",
		"usr/share/doc/actplane/copyright":                  "License: Apache-2.0",
		"usr/share/zsh/vendor-completions/_actplane":        "#compdef actplane",
		"usr/share/bash-completion/completions/actplane":    "complete",
		"usr/share/fish/vendor_completions.d/actplane.fish": "complete",
	} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q: %v", path, want, err)
		}
	}
	list := command(t, nil, "dpkg-deb", "--contents", deb)
	for line := range strings.Lines(list) {
		mode, _, _ := strings.Cut(line, " ")
		if !strings.Contains(line, " root/root ") || len(mode) != 10 || mode[5] == 'w' || mode[8] == 'w' || strings.Contains(mode, "s") {
			t.Errorf("strange owner or mode: %s", line)
		}
	}
	for _, program := range []string{"actplane", "actplaned", "actplane-runtime", "actplane-hook", "actplane-guest", "containerd-shim-actplane-v2"} {
		if !strings.Contains(list, " ./usr/bin/"+program+"\n") {
			t.Errorf("there is no %s", program)
		}
	}
	command(t, nil, "sh", "-c", "cd '"+root+"' && md5sum --quiet -c DEBIAN/md5sums")
}
