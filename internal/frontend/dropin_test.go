// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDropIns: CRI-O and podman get files of their own, which go with their folders.
func TestDropIns(t *testing.T) {
	for _, test := range []struct {
		name, theirs, standard, want, foreign string
		make                                  func(config string) FrontEnd
	}{
		{
			name: "podman", theirs: "# theirs\n[engine]\nruntime = \"crun\"\n[engine.runtimes]\ncrun = [\"/usr/bin/crun\"]\n",
			standard: "[engine]\nruntime = \"actplane\"\n",
			want:     "[engine.runtimes]\nactplane = [\"/p/actplane-runtime\"]\n",
			foreign:  "[engine.runtimes]\nactplane = [\"/usr/bin/other\"]\n",
			make:     func(config string) FrontEnd { return &Podman{Programs: Programs{Directory: "/p"}, Config: config} },
		},
		{
			name: "CRI-O", theirs: "[crio.runtime]\ndefault_runtime = \"crun\"\n[crio.runtime.runtimes.crun]\nruntime_path = \"/usr/bin/crun\"\n",
			standard: "[crio.runtime]\ndefault_runtime = \"actplane\"\n",
			want:     "[crio.runtime.runtimes.actplane]\nruntime_path = \"/p/actplane-runtime\"\nruntime_root = \"/run/actplane-crio\"\nruntime_type = \"oci\"\n",
			foreign:  "[crio.runtime.runtimes.actplane]\nruntime_path = \"/usr/bin/other\"\n",
			make:     func(config string) FrontEnd { return &CRIO{Programs: Programs{Directory: "/p"}, Config: config} },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			config := filepath.Join(dir, "main.conf")
			f := test.make(config)
			if f.Name() != test.name {
				t.Errorf("it is called %s", f.Name())
			}
			write(t, config, test.theirs)
			do(t, f, false)
			ours := filepath.Join(config+".d", dropInConf)
			if got := read(t, ours); got != blockBegin+folderMade+test.want+blockEnd {
				t.Errorf("installed:\n%s", got)
			}
			do(t, f, false)
			do(t, f, true)
			if got := tree(t, dir); got != "main.conf" || read(t, config) != test.theirs {
				t.Errorf("left are %s", got)
			}

			// A folder that was there stays.
			write(t, filepath.Join(config+".d", "x"), "")
			if err := os.Remove(filepath.Join(config+".d", "x")); err != nil {
				t.Fatal(err)
			}
			do(t, f, false)
			do(t, f, true)
			if got := tree(t, dir); got != "main.conf main.conf.d" {
				t.Errorf("left are %s", got)
			}

			// What the user added to our file stays.
			do(t, f, false)
			write(t, ours, read(t, ours)+"[other]\nkey = 1\n")
			do(t, f, true)
			if got := read(t, ours); got != "[other]\nkey = 1\n" {
				t.Errorf("left are %q", got)
			}

			write(t, config, test.standard)
			if _, err := f.Plan(t.Context(), true); err == nil || !strings.Contains(err.Error(), "change that first") {
				t.Errorf("removing the default: %v", err)
			}
			for _, path := range []string{config, ours} {
				write(t, config, test.theirs)
				write(t, path, test.foreign)
				if _, err := f.Plan(t.Context(), false); err == nil || !strings.Contains(err.Error(), "is not ActPlane's") {
					t.Errorf("another's runtime in %s: %v", path, err)
				}
			}
		})
	}
}

func TestCRIOVersion(t *testing.T) {
	for text, want := range map[string]string{
		"crio version 1.24.6\nVersion:          1.24.6\n": "1.24.6",
		"time=x level=info\nVersion:  1.30.0\n":           "1.30.0",
		"":                                                "",
	} {
		if got := crioVersion(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestHookFile: the hook's file has this installation's path; what was changed in it stays.
func TestHookFile(t *testing.T) {
	dir := t.TempDir()
	const content = "{\n  \"version\": \"1.0.0\",\n  \"hook\": {\"path\": \"/usr/local/bin/actplane-hook\", \"timeout\": 60},\n  \"when\": {}\n}\n"
	step := func(bin string, remove bool) error {
		edits, err := Programs{Directory: bin, Hook: content}.planHook(filepath.Join(dir, "hooks.d"), remove)
		if err == nil {
			err = applyAll(edits)
		}
		return err
	}
	path := filepath.Join(dir, "hooks.d", hookName)
	if err := step("/p", false); err != nil || read(t, path) != strings.Replace(content, "/usr/local/bin", "/p", 1) {
		t.Fatalf("%v\n%s", err, read(t, path))
	}
	changed := strings.Replace(read(t, path), `"when": {}`, `"when": {"always": true}`, 1)
	write(t, path, changed)
	if err := step("/p", false); err != nil || read(t, path) != changed {
		t.Errorf("%v\n%s", err, read(t, path))
	}
	if err := step("/q", false); err != nil || !strings.Contains(read(t, path), `"/q/actplane-hook"`) {
		t.Errorf("%v\n%s", err, read(t, path))
	}
	for range 2 { // podman's and CRI-O's
		if err := step("/q", true); err != nil || exists(path) {
			t.Errorf("removed: %v", err)
		}
	}
	const foreign = `{"hook":{"path":"/bin/other"}}`
	write(t, path, foreign)
	if err := step("/p", false); err == nil || !strings.Contains(err.Error(), "is not ActPlane's") {
		t.Errorf("another's: %v", err)
	}
	if err := step("/p", true); err != nil || read(t, path) != foreign {
		t.Errorf("another's, removed: %v", err)
	}
}
