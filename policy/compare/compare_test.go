// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/actplane/actplane/policy/compare"
)

var update = flag.Bool("update", false, "write the golden files anew")

// text is a result for golden files.
func text(r *compare.Result) string {
	var b strings.Builder
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "%s %v: %s, and now %s\n", [...]string{"allows", "denies", "otherwise", "told"}[d.Direction], d.Ops, d.Old, d.New)
		if d.Direction == compare.Told {
			fmt.Fprintf(&b, "  %q, and now %q\n", d.Old.Because, d.New.Because)
		}
		for _, step := range d.Trace {
			fmt.Fprintf(&b, "  %s\n", step)
		}
		for _, s := range d.Supposed {
			fmt.Fprintf(&b, "  if %s\n", s)
		}
		if d.Note != "" {
			fmt.Fprintf(&b, "  note: %s\n", d.Note)
		}
	}
	for _, l := range r.Labels {
		fmt.Fprintf(&b, "label %s: new %v, %s by %q\n", l.Label, l.New, l.Verb, l.Trace)
	}
	for _, s := range append(r.Beside, r.Missed...) {
		fmt.Fprintln(&b, s)
	}
	if b.Len() == 0 {
		return "same\n"
	}
	return b.String()
}

func TestCompare(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil || len(archive.Files) != 3 {
				t.Fatalf("%v, %d files", err, len(archive.Files))
			}
			old, changed := compiled(t, string(archive.Files[0].Data)), compiled(t, string(archive.Files[1].Data))
			got := text(compare.Compare(old, changed))
			if *update {
				archive.Files[2].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if d := cmp.Diff(string(archive.Files[2].Data), got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if same := text(compare.Compare(old, old)); same != "same\n" {
				t.Errorf("a policy differs from itself: %s", same)
			}
			there, back := compare.Compare(old, changed), compare.Compare(changed, old)
			if a, b := directions(there), directions(back); a[0] != b[1] || a[1] != b[0] || a[2] != b[2] || a[3] != b[3] {
				t.Errorf("allowed, denied, otherwise, told otherwise: %v, and the other way round %v", a, b)
			}
		})
	}
}

func directions(r *compare.Result) (n [4]int) {
	for _, d := range r.Differences {
		n[d.Direction]++
	}
	return n
}
