// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy/diag"
)

// TestReference keeps docs/language.md true: it explains every code and no
// other, and its examples compile.
func TestReference(t *testing.T) {
	text, err := os.ReadFile("../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range diag.Codes() {
		known[string(c.Code)] = true
		if !strings.Contains(string(text), "\n| "+string(c.Code)+" |") {
			t.Errorf("%s is not explained", c.Code)
		}
	}
	for _, code := range regexp.MustCompile(`\bP\d\d\d\b`).FindAllString(string(text), -1) {
		if !known[code] {
			t.Errorf("%s does not exist", code)
		}
	}
	for _, key := range fileKeys {
		if !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("the key %s is not explained", key)
		}
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) == 0 {
		t.Error("no examples")
	}
	for _, e := range examples {
		p, err := Compile([]Document{{Name: "example", Text: []byte(e[1])}}, Options{})
		if err != nil {
			t.Error(err)
		} else if len(p.Warnings) > 0 {
			t.Error(p.Warnings.First())
		}
	}
}

// TestPages: the policies on all other pages compile, and nothing in them is hardly
// meant.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	policies := 0
	for _, page := range append(pages, "../README.md", "../examples/quickstart/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range regexp.MustCompile("(?s)```yaml\n(version: .*?)```").FindAllStringSubmatch(string(text), -1) {
			policies++
			switch p, err := Compile([]Document{{Name: filepath.Base(page), Text: []byte(e[1])}}, Options{}); {
			case err != nil:
				t.Error(err)
			case len(p.Warnings) > 0 && filepath.Base(page) != "tutorial.md": // which makes mistakes, and corrects them
				t.Error(p.Warnings.First())
			}
		}
	}
	if policies < 5 {
		t.Errorf("only %d policies", policies)
	}
}
