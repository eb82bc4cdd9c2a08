// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"runtime"
	"testing"
)

// largePolicy has n rules with a glob each: directories, suffixes below
// directories, names that begin anywhere, and a mix of all.
func largePolicy(shape string, n int) []byte {
	glob := map[string]func(i int) string{
		"directories": func(i int) string { return fmt.Sprintf("/srv/app%04d/**", i) },
		"suffixes":    func(i int) string { return fmt.Sprintf("/srv/app%04d/**/*.conf", i) },
		"names":       func(i int) string { return fmt.Sprintf("**/secret%04d.key", i) },
		"mixed": func(i int) string {
			return []string{
				fmt.Sprintf("src/mod%04d/**", i), fmt.Sprintf("**/cred-%04d.json", i),
				fmt.Sprintf("/etc/svc%04d/*.conf", i), fmt.Sprintf("/home/*/.config/tool%04d", i),
				fmt.Sprintf("/var/lib/x%d/{a,b}/*", i), fmt.Sprintf("/opt/t%d/bin/[a-c]?*", i), fmt.Sprintf("src/pkg%d/**/*.go", i),
			}[i%7]
		},
	}[shape]
	lines := []string{`source SECRET = file "**/.env"`, `source AGENT = exec "claude"`}
	for i := range n {
		lines = append(lines, fmt.Sprintf("rule r%d:", i), fmt.Sprintf("  block write %q if AGENT and not SECRET", glob(i)), `  because "no"`)
	}
	return block(lines...)
}

// BenchmarkNames is a policy of 300 names of programs and 300 directories.
func BenchmarkNames(b *testing.B) {
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("rule r%d: block exec \"tool%d\" block write \"/srv/app%d/data/**\"", i, i, i))
	}
	doc := Document{Name: "p", Text: block(lines...)}
	for b.Loop() {
		if _, err := Compile([]Document{doc}, Options{Workspace: "/w", Enforce: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLargePolicies: 4,000 rules with 4,000 globs compile within 300 MiB. What is
// allocated in all bounds what is in use at any time. BenchmarkCompile tells the time.
func TestLargePolicies(t *testing.T) {
	for _, shape := range []string{"directories", "suffixes", "names", "mixed"} {
		t.Run(shape, func(t *testing.T) {
			doc := Document{Name: "p", Text: largePolicy(shape, 4000)}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := cpuTime()
			p := mustCompile(t, doc)
			took := cpuTime() - start
			runtime.ReadMemStats(&after)
			allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
			if took > hangs || allocated > 300 {
				t.Errorf("%v, %d MiB", took, allocated)
			}
			t.Logf("%v, %d MiB allocated, %d states", took, allocated, len(p.Image.RowOf))
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{100, 1000, 4000} {
		for _, shape := range []string{"directories", "suffixes", "names", "mixed"} {
			b.Run(fmt.Sprintf("%d %s", n, shape), func(b *testing.B) {
				doc := Document{Name: "p", Text: largePolicy(shape, n)}
				b.ReportAllocs()
				for b.Loop() {
					p := mustCompile(b, doc)
					b.ReportMetric(float64(len(p.Image.RowOf)), "states")
				}
			})
		}
	}
}
