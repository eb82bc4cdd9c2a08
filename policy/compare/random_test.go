// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/compare"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/model"
)

func compiled(t *testing.T, text string) compare.Policy {
	t.Helper()
	p, err := policy.Compile([]policy.Document{{Name: "p.yaml", Text: []byte(text)}}, policy.Options{Workspace: "/w"})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return compare.Policy{Program: p.Program, Image: p.Image}
}

// writer writes random policies out of few words, so that two of them have to do with
// each other.
type writer struct{ *rand.Rand }

func (w writer) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w writer) maybe(n int, text string) string {
	if w.IntN(n) == 0 {
		return text
	}
	return ""
}

func (w writer) file() string {
	return w.pick(`"/w/a"`, `"/w/**"`, `"**/*.py"`, `"/w/{a,b}"`, `any`, `"/w/s/**"`, `"**/.env"`, `"/dev/*"`, `"/dev/null"`, `"/w/*"`)
}

func (w writer) program() string {
	return w.pick(`"git"`, `"g*"`, `"/usr/bin/git"`, `"/usr/bin/*"`, `any`, `"make"`, `"**/make"`)
}

func (w writer) endpoint() string {
	return w.pick(`"10.0.0.0/8"`, `"10.1.0.0/16:443"`, `any`, `"@private"`, `"*:443"`, `"unix:/w/s/*"`, `"unix:@x*"`, `"*.com"`, `"a.com:80"`)
}

func (w writer) tokens() string {
	return w.maybe(2, " "+w.pick(`"push"`, `"p*"`, `"push" "-f"`, `"-f"`, `"*"`, `"-*" "push"`))
}

func (w writer) event() string {
	if w.IntN(2) == 0 {
		return "exec " + w.pick(`"make"`, `"/usr/bin/make"`, `"git"`) + w.maybe(3, ` "push"`)
	}
	return w.pick("write", "read", "unlink", "open") + " " + w.pick(`"/w/a"`, `"/w/**"`, `"/w/s/**"`)
}

func (w writer) conditions(endpoint bool) string {
	out := w.maybe(2, " if "+w.pick("A", "not A", "A and B", "A or B", "B", "not A and B", "A and not C"))
	if w.IntN(3) > 0 {
		return out
	}
	switch w.IntN(5) {
	case 0:
		return out + ` unless lineage-includes exec ` + w.pick(`"make"`, `"/usr/bin/make"`)
	case 1:
		return out + " unless after " + w.event() + w.maybe(2, " since "+w.event()+w.maybe(2, " or "+w.event()))
	case 2:
		return out + ` unless after exec "make" exits 0` + w.maybe(2, " since "+w.event())
	case 3:
		if !endpoint {
			return out + " unless target " + w.maybe(2, "not ") + "modified"
		}
	}
	not := w.maybe(2, "not ")
	if endpoint {
		return out + " unless target " + not + w.endpoint()
	}
	return out + " unless target " + not + w.pick(`"/w/a"`, `"/usr/bin/*"`, `"/w/s/**"`)
}

func (w writer) clause() string {
	effect := w.pick("block", "block", "notify", "kill", "ask", "ask hold 5m", "allow", "allow")
	switch w.IntN(3) {
	case 0:
		return effect + " exec " + w.program() + w.tokens() + w.conditions(false)
	case 1:
		return effect + " " + w.pick("open", "read", "write", "append", "unlink") + " " + w.file() + w.conditions(false)
	}
	return effect + " " + w.pick("connect", "send", "recv", "bind") + " " + w.endpoint() + w.conditions(true)
}

// policy is a policy as its lines.
func (w writer) policy() (lines []string) {
	lines = append(lines, "source A = file "+w.file(), "source B = exec "+w.program(), "source B = endpoint "+w.endpoint())
	if w.IntN(3) == 0 {
		lines = append(lines, `declassify A by exec "make"`)
	}
	if w.IntN(3) == 0 {
		lines = append(lines, `endorse C by exec "/usr/bin/make"`)
	}
	if w.IntN(2) == 0 {
		lines = append(lines, "default "+w.pick("block", "ask", "notify")+" "+w.pick("exec", "write", "read", "connect", "send"))
	}
	for i := range 1 + w.IntN(4) {
		lines = append(lines, fmt.Sprintf("rule r%d: %s", i, w.clause()))
	}
	return lines
}

// change writes one of a policy's statements anew, or leaves it out.
func (w writer) change(lines []string) []string {
	out := slices.Clone(lines)
	other := w.policy()
	switch i := w.IntN(len(out)); {
	case strings.HasPrefix(out[i], "rule") && w.IntN(4) == 0:
		out = slices.Delete(out, i, i+1)
	case strings.HasPrefix(out[i], "rule"):
		name, _, _ := strings.Cut(out[i], ":")
		out[i] = name + ": " + w.clause()
	case i < 3:
		out[i] = other[i]
	default:
		out = slices.Delete(out, i, i+1)
	}
	return out
}

func (w writer) yaml(lines []string) string {
	return w.maybe(3, "protect: ["+w.pick(`"a"`, `"/w/**"`, `{path: "/w/s/**", if: A}`)+"]\n") + "policy: |\n  " + strings.Join(lines, "\n  ") + "\n"
}

// step is a random one; whatever makes no sense is passed over.
func (w writer) step() []string {
	who := w.pick("p", "p", "q")
	file := w.pick("/w/a", "/w/b", "/w/s/x", "/x.py", "/w/.env", "/dev/null", "/w/s/y.py")
	program := w.pick("/usr/bin/git", "/usr/bin/make", "/bin/make", "/opt/git", "/bin/gm", "/w/a")
	peer := w.pick("10.1.0.1:443", "10.2.0.1:80", "93.184.216.34:443", "unix:/w/s/sock", "unix:@xy", "a.com:80", "b.com:443", "[fd00::1]:443")
	switch w.IntN(12) {
	case 0, 1, 2:
		return slices.Concat([]string{who, "exec", program}, [][]string{nil, {"push"}, {"-f", "push"}, {"push", "-f"}, {"pull"}, {""}}[w.IntN(6)])
	case 3, 4, 5, 6:
		return []string{who, w.pick("open", "read", "write", "append", "unlink"), file}
	case 7, 8:
		return []string{who, w.pick("connect", "send", "recv", "bind"), peer}
	case 9:
		return []string{who, "exit", strconv.Itoa(w.IntN(2))}
	case 10:
		return []string{who, "mapexec", program}
	}
	return []string{who, "symlink", program, w.pick("/bin/git", "/bin/make", "/bin/gx")}
}

// wide makes last names have an entry of their own in the automaton of any policy.
var wide = func() string {
	var b strings.Builder
	for i := range 24 {
		fmt.Fprintf(&b, "  rule wide%d: block write \"/x%d/lib%d/**\" block read \"**/.wide%d\" block exec \"wide%d\"\n", i, i, i, i, i)
	}
	return b.String()
}()

// TestRandom compares random policies and acts out random traces under both: whatever
// is decided otherwise there, the comparison has found something of the kind.
func TestRandom(t *testing.T) {
	const pairs = 200
	seed := testenv.Seed(t)
	differ, apart, supposed, all := 0, 0, 0, 0
	for i := range pairs {
		w := writer{rand.New(rand.NewPCG(seed, uint64(i)))}
		lines := w.policy()
		before := w.yaml(lines)
		after := "policy: |\n  " + strings.Join(w.change(lines), "\n  ") + "\n"
		if protect, _, ok := strings.Cut(before, "policy:"); ok && w.IntN(4) > 0 {
			after = protect + after
		}
		if i%10 == 9 {
			before, after = before+wide, after+wide
		}
		old, changed := compiled(t, before), compiled(t, after)
		if i%10 == 9 && old.Image.Start[dfa.Base] == dfa.Dead {
			t.Fatalf("pair %d: last names have no entry of their own", i)
		}
		r := compare.Compare(old, changed)
		if len(r.Missed) > 0 {
			t.Errorf("pair %d: %q\n%s\n%s", i, r.Missed, before, after)
		}
		if len(r.Differences) > 0 {
			differ++
		}
		for _, d := range r.Differences {
			all++
			if len(d.Supposed) > 0 {
				supposed++
			}
		}
		if trace, decided := w.tell(old, changed); trace != nil {
			apart++
			if len(r.Labels) > 0 {
				continue // which differ in the trace, and with them what is decided
			}
			// A step can consist of several events: of one of them the same is so.
			looser := decided[1].Effect < decided[0].Effect
			if !slices.ContainsFunc(r.Differences, func(d compare.Difference) bool { return d.New.Effect < d.Old.Effect == looser }) {
				t.Errorf("pair %d: not found: %q\n%s\n%s\n%s\n%s", i, decided, strings.Join(trace, "\n"), before, after, found(r))
			}
		}
	}
	t.Logf("%d pairs, %d differ, %d of them in a trace; of %d differences %d suppose a state", pairs, differ, apart, all, supposed)
	if differ < pairs/4 || apart < pairs/8 {
		t.Errorf("of %d pairs only %d differ, and %d in a trace", pairs, differ, apart)
	}
}

func found(r *compare.Result) string {
	var b strings.Builder
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "%d %v: %s, now %s: %q %q\n", d.Direction, d.Ops, d.Old, d.New, d.Trace, d.Supposed)
	}
	return b.String()
}

// tell looks for a trace in which two policies decide otherwise.
func (w writer) tell(old, changed compare.Policy) (trace []string, decided [2]model.Decision) {
	for range 40 {
		scopes := [2]*model.Scope{model.New(old.Program), model.New(changed.Program)}
		trace = nil
		for range 15 {
			words := w.step()
			trace = append(trace, model.WriteStep(words))
			a, err := scopes[0].Do(words)
			b, err2 := scopes[1].Do(words)
			if err != nil || err2 != nil {
				break
			}
			if a.Effect != b.Effect {
				return trace, [2]model.Decision{a, b}
			}
		}
	}
	return nil, decided
}
