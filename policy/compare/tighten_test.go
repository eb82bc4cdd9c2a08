// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy/compare"
)

// gate is one of which more can be asked.
type gate struct {
	program string
	tokens  string
	exits   string
	since   []string
}

func (g gate) String() string {
	out := "after exec " + g.program + g.tokens + g.exits
	for i, e := range g.since {
		out += map[bool]string{true: " since ", false: " or "}[i == 0] + e
	}
	return out
}

func (w writer) gate() gate {
	g := gate{program: w.program(), tokens: w.tokens()}
	g.exits = w.maybe(2, " exits "+w.pick("0", "1"))
	for range w.IntN(3) {
		g.since = append(g.since, w.event())
	}
	return g
}

// asksMore is the gate with one thing more that it asks for.
func (w writer) asksMore(g gate) gate {
	switch w.IntN(4) {
	case 0:
		if g.exits == "" {
			g.exits = " exits 0"
		}
	case 1:
		g.tokens += ` "` + w.pick("push", "-f", "x") + `"`
	case 2:
		narrower := map[string]string{
			`any`: `"g*"`, `"g*"`: `"git"`, `"git"`: `"/usr/bin/git"`, `"/usr/bin/*"`: `"/usr/bin/git"`, `"make"`: `"/usr/bin/make"`, `"**/make"`: `"make"`,
		}
		if p, ok := narrower[g.program]; ok {
			g.program = p
		}
	default:
		g.since = append(append([]string(nil), g.since...), w.event())
	}
	return g
}

// TestTightened: what only asks for more of a gate allows nothing that was denied, and is
// not said to; the reverse denies nothing.
func TestTightened(t *testing.T) {
	seed := testenv.Seed(t)
	differ := 0
	for i := range 300 {
		w := writer{rand.New(rand.NewPCG(seed, uint64(i)))}
		text := func(g gate) string {
			return fmt.Sprintf("workspace: /w\npolicy: |\n  rule a: block exec \"git\" \"commit\" unless %s or lineage-includes exec \"tox\"\n", g)
		}
		g := w.gate()
		more := g
		for range 1 + w.IntN(3) {
			more = w.asksMore(more)
		}
		old, changed := compiled(t, text(g)), compiled(t, text(more))
		for j, r := range []*compare.Result{compare.Compare(old, changed), compare.Compare(changed, old)} {
			wrong := []compare.Direction{compare.Allows, compare.Denies}[j]
			for _, d := range r.Differences {
				differ++
				if d.Direction == wrong {
					t.Errorf("pair %d: %s: %q %q\n%s%s", i, []string{"allowed by more", "denied by less"}[j], d.Trace, d.Supposed, text(g), text(more))
				}
			}
			if len(r.Missed) > 0 {
				t.Errorf("pair %d: %q", i, r.Missed)
			}
		}
	}
	if differ < 300 {
		t.Errorf("only %d differences of 600 comparisons", differ)
	}
}
