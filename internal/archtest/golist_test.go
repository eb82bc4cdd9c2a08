// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A pack is what "go list" tells of a package.
type pack struct {
	ImportPath string
	Name       string
	Doc        string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
	Module     struct{ Path, Dir string }
	Error      *struct{ Err string }

	name string // ImportPath without the module's
}

// packages lists the packages of the module that have code, for Linux.
func packages(t *testing.T) []pack {
	t.Helper()
	list := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Doc,Dir,GoFiles,Imports,Deps,Module,Error", "./...")
	list.Dir = root(t)
	list.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packs []pack
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pack
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if p.Error != nil {
			t.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		if len(p.GoFiles) == 0 {
			continue
		}
		p.name = strings.TrimPrefix(p.ImportPath, p.Module.Path+"/")
		packs = append(packs, p)
	}
	if len(packs) == 0 {
		t.Fatal("go list found no package")
	}
	return packs
}

// root is the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}
