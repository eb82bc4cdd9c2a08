// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy"
)

// However much there is to compare, it ends: with what was found, and with what was not
// looked at. The same work finds the same.
func TestGivenUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	token := func() string { return fmt.Sprintf(`"*%c*%c*"`, 'a'+r.IntN(8), 'a'+r.IntN(8)) }
	for _, c := range []struct {
		name  string
		rules int
		rule  func(i int) string
	}{
		{"labels", 60, func(int) string {
			return fmt.Sprintf("block connect any if L%d and not L%d and L%d and not L%d", r.IntN(60), r.IntN(60), r.IntN(60), r.IntN(60))
		}},
		{"tokens", 3, func(int) string { return "block exec \"git\" " + token() + " " + token() + " " + token() }},
		{"files", 60, func(i int) string { return fmt.Sprintf(`block write "/%d/%d/**/*.py"`, r.IntN(1000), i) }},
		{"programs", 60, func(i int) string {
			return fmt.Sprintf("block exec \"%d-%d\" \"a\"\n    block exec \"/bin/%[1]d\" \"a\"", r.IntN(1000), i)
		}},
		{"sources", 60, func(i int) string { return fmt.Sprintf(`block write "/%d" if L%d`, i, r.IntN(60)) }},
	} {
		random := func() Policy {
			var b strings.Builder
			b.WriteString("policy: |\n")
			for i := range 60 {
				fmt.Fprintf(&b, "  source L%d = file \"/s/%d\"\n", i, i+r.IntN(2))
			}
			for i := range c.rules {
				fmt.Fprintf(&b, "  rule r%d:\n    %s\n", i, c.rule(i))
			}
			p, err := policy.Compile([]policy.Document{{Name: "p.yaml", Text: []byte(b.String())}}, policy.Options{Workspace: "/w"})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			return Policy{p.Program, p.Image}
		}
		old, changed := random(), random()
		for _, steps := range []int{1, 1 << 10, 1 << 16, 1 << 20, 1 << 23} {
			result := within(old, changed, steps, steps/4)
			if len(result.Missed) == 0 && steps < 1<<20 {
				t.Errorf("%s: nothing is missed with %d steps", c.name, steps)
			}
			if again := within(old, changed, steps, steps/4); !reflect.DeepEqual(again, result) {
				t.Errorf("%s: the same %d steps find something else:\n%+v\n%+v", c.name, steps, result, again)
			}
		}
	}
}
