// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
)

func mustCompile(t testing.TB, docs ...Document) *Policy {
	t.Helper()
	p, err := Compile(docs, Options{Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func block(lines ...string) []byte {
	return []byte("version: 1\npolicy: |\n  " + strings.Join(lines, "\n  ") + "\n")
}

// TestLowering shows the whole of a small program.
func TestLowering(t *testing.T) {
	p := mustCompile(t, Document{Name: "p.yaml", Text: []byte(`version: 1
workspace: /w[1]
policy: |
  source AGENT = exec "claude"
  source SECRET = file "**/.env"
  rule push:
    block exec "git" "push" # a comment
      if (AGENT or SECRET) and not (AGENT and SECRET)
      unless after exec "make" exits 0 since write "src/**" or write "./a/../t" or target not "/usr/**"
    because "Ask first."
  rule net:
    connect "10.9.9.9/8:80" unless target "@private"
    kill open any unless lineage-includes exec "./tool"
`), Layer: Container})
	g := p.Program
	want := &ir.Program{
		Workspace: "/w",
		Layers:    g.Layers,
		Labels:    []ir.Label{{Name: "AGENT"}, {Name: "SECRET"}},
		Lineages:  []ir.Pattern{{Kind: ir.ExecProgram, Text: `/w\[1\]/tool`}},
		Gates: []ir.Gate{{
			After: ir.Event{Op: ir.Exec, Pattern: ir.Pattern{Kind: ir.ExecProgram, Text: "make"}},
			Since: []ir.Event{
				{Op: ir.Write, Pattern: ir.Pattern{Text: `/w\[1\]/src/**`}},
				{Op: ir.Write, Pattern: ir.Pattern{Text: `/w\[1\]/t`}},
			},
			Text: `after exec "make" exits 0 since write "src/**" or write "./a/../t"`,
		}},
		Sources: []ir.Source{
			{Label: 0, Pattern: ir.Pattern{Kind: ir.ExecProgram, Text: "claude"}, Pos: "p.yaml:4:3", Text: `source AGENT = exec "claude"`},
			{Label: 1, Pattern: ir.Pattern{Text: "/**/.env"}, Pos: "p.yaml:5:3", Text: `source SECRET = file "**/.env"`},
		},
		Rules: []ir.Rule{{Name: "push", Because: "Ask first.", Pos: "p.yaml:6:8"}, {Name: "net", Pos: "p.yaml:11:8"}},
		Clauses: []ir.Clause{
			{
				Rule: 0, Effect: ir.Block, Op: ir.Exec, Pattern: ir.Pattern{Kind: ir.ExecProgram, Text: "git"}, Args: []string{"push"},
				If: []ir.Term{{All: 1, None: 2}, {All: 2, None: 1}},
				Unless: ir.Unless{
					Targets: []ir.Target{{Not: true, Pattern: ir.Pattern{Kind: ir.ExecProgram, Text: "/usr/**"}}},
					Gates:   []int{0},
				},
				Pos:  "p.yaml:7:5",
				Text: `block exec "git" "push" if (AGENT or SECRET) and not (AGENT and SECRET) unless after exec "make" exits 0 since write "src/**" or write "./a/../t" or target not "/usr/**"`,
			},
			{
				Rule: 1, Effect: ir.Block, Op: ir.Connect, Pattern: ir.Pattern{Kind: ir.Endpoint, Text: "10.0.0.0/8:80"},
				Unless: ir.Unless{Targets: []ir.Target{{Pattern: ir.Pattern{Kind: ir.Endpoint, Text: "@private"}}}},
				Pos:    "p.yaml:12:5", Text: `connect "10.9.9.9/8:80" unless target "@private"`,
			},
			{
				Rule: 1, Effect: ir.Kill, Op: ir.Open, Pattern: ir.Pattern{Any: true}, Unless: ir.Unless{Lineages: []int{0}},
				Pos: "p.yaml:13:5", Text: `kill open any unless lineage-includes exec "./tool"`,
			},
		},
	}
	if d := cmp.Diff(want, g); d != "" {
		t.Errorf("program differs (-want +got):\n%s", d)
	}
}

// TestConditions lowers expressions over A, B and C.
func TestConditions(t *testing.T) {
	for expr, want := range map[string][]ir.Term{
		"A":                         {{All: 1}},
		"not A":                     {{None: 1}},
		"not not A":                 {{All: 1}},
		"true":                      nil,
		"A or true":                 nil,
		"A or not A":                {{All: 1}, {None: 1}},
		"A and not A":               {{All: 1, None: 1}},
		"not true":                  {{All: 1, None: 1}},
		"A and B or C":              {{All: 3}, {All: 4}},
		"A and (B or C)":            {{All: 3}, {All: 5}},
		"not (A and B)":             {{None: 1}, {None: 2}},
		"not (A or B)":              {{None: 3}},
		"A or A and B":              {{All: 1}},
		"(A or B) and (A or not B)": {{All: 1}},
		"NOWHERE":                   {{All: 1, None: 1}},
		"not NOWHERE":               nil,
		"A and not NOWHERE":         {{All: 1}},
		"A or NOWHERE":              {{All: 1}},
	} {
		p := mustCompile(t, Document{Text: block(
			`source A = exec "a"`, `source B = exec "b"`, `source C = exec "c"`, `rule r:`, `  block exec "x" if `+expr)})
		if d := cmp.Diff(want, p.Program.Clauses[0].If); d != "" {
			t.Errorf("%s (-want +got):\n%s", expr, d)
		}
	}
}

func TestLayers(t *testing.T) {
	host := Document{Name: "host", Layer: Host, Text: []byte("version: 1\nlimits: {pids: 100, capabilities: {drop: [ALL], add: [CHOWN, KILL]}}\npolicy: |\n" +
		"  source S = file \"/host\"\n  rule r:\n    block connect any if S\n")}
	operator := Document{Name: "operator", Layer: Operator, Text: []byte("version: 1\nlimits: {pids: 50, memory: 1KiB, no_new_privileges: true}\n")}
	inner := Document{Name: "inner", Layer: Container, Text: []byte("version: 1\nlimits: {pids: 70, capabilities: {drop: [KILL]}}\npolicy: |\n" +
		"  source T = file \"/inner\"\n  rule r:\n    block send any if S\n    block send any if T\n")}
	own := Document{Name: "own", Layer: Container, Text: block(`source S = file "/own"`, `rule r:`, `  block send any if S`)}
	p := mustCompile(t, inner, operator, own, host) // the order of layers is restored
	var layers []string
	for _, l := range p.Program.Layers {
		layers = append(layers, l.Name)
	}
	if d := cmp.Diff([]string{"host", "operator", "inner", "own"}, layers); d != "" {
		t.Errorf("layers (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]ir.Label{{Name: "S"}, {Name: "T", Layer: 2}, {Name: "S", Layer: 3}}, p.Program.Labels); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	var terms []ir.Term
	for _, c := range p.Program.Clauses {
		terms = append(terms, c.If...)
	}
	if d := cmp.Diff([]ir.Term{{All: 1}, {All: 1}, {All: 2}, {All: 4}}, terms); d != "" {
		t.Errorf("conditions (-want +got):\n%s", d)
	}
	limits := ir.Limits{Pids: 50, Memory: 1024, NoNewPrivileges: true, Capabilities: &ir.Capabilities{Drop: []string{"ALL"}, Add: []string{"CAP_CHOWN"}}}
	if d := cmp.Diff(limits, p.Program.Limits); d != "" {
		t.Errorf("limits (-want +got):\n%s", d)
	}
}

func TestMemory(t *testing.T) {
	for s, want := range map[string]int64{
		"1024": 1024, "512MiB": 512 << 20, "2GiB": 2 << 30, "2g": 2 << 30, "1.5Gi": 3 << 29, "1GB": 1e9, "1 kB": 1000, "3b": 3, "7M": 7 << 20,
		"": 0, "0": 0, "-1": 0, "1.5": 0, "2XiB": 0, "GiB": 0, "1e3": 0, "1GBi": 0, "99999999999TiB": 0, "inf": 0, "0x10": 0,
	} {
		if got, ok := parseMemory(s); ok != (want != 0) || ok && got != want {
			t.Errorf("%q: %d, %t, want %d", s, got, ok, want)
		}
	}
}

// TestEqualBytes: equal documents give equal programs and images, and a stored
// program gives the image it gave before.
func TestEqualBytes(t *testing.T) {
	doc := Document{Name: "p", Text: manyRules(60)}
	marshal := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	a, b := mustCompile(t, doc), mustCompile(t, doc)
	if marshal(a) != marshal(b) {
		t.Error("one document gives two policies")
	}
	var stored ir.Program
	if err := json.Unmarshal([]byte(marshal(a.Program)), &stored); err != nil {
		t.Fatal(err)
	}
	image, err := CompileProgram(&stored)
	if err != nil {
		t.Fatal(err)
	}
	if marshal(image) != marshal(a.Image) {
		t.Error("the stored program gives another image")
	}
	if _, err := CompileProgram(nil); err == nil {
		t.Error("no program compiles")
	}
}

func manyRules(n int) []byte {
	lines := []string{`source SECRET = file "**/.env"`}
	for i := range n {
		lines = append(lines, fmt.Sprintf("rule r%d:", i), fmt.Sprintf(`  block write "/srv/d%d/**" if SECRET unless after exec "t%d" "x%d*"`, i, i%20, i%20))
	}
	return block(lines...)
}

// hangs is far above what anything here takes on a busy machine, and far below what
// work that grows without bound would: the figures are in the benchmarks.
const hangs = 2 * time.Minute

func TestHundredRules(t *testing.T) {
	docs := map[string]Document{"plain": {Text: manyRules(100)}}
	for _, shape := range []string{"directories", "suffixes", "names", "mixed"} {
		docs[shape] = Document{Text: largePolicy(shape, 100)}
	}
	for name, doc := range docs {
		mustCompile(t, doc)
		start := cpuTime()
		mustCompile(t, doc)
		took := cpuTime() - start
		if took > hangs {
			t.Errorf("%s: 100 rules take %v", name, took)
		}
		t.Logf("%s: %v", name, took)
	}
}

// TestBombIsCheap: aliases that expand without bound cost neither time nor
// memory.
func TestBombIsCheap(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/diag/p010-bomb.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuTime()
	_, err = Compile([]Document{{Text: archive.Files[0].Data}}, Options{})
	took := cpuTime() - start
	runtime.ReadMemStats(&after)
	var list diag.List
	if !errors.As(err, &list) || list.First().Code != diag.AliasBomb {
		t.Errorf("err = %v", err)
	}
	if took > hangs {
		t.Errorf("took %v", took)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("allocated %d bytes", n)
	}
}

// TestHostileFiles: text that is made to be slow is refused in time.
func TestHostileFiles(t *testing.T) {
	for name, text := range map[string]string{
		"flow":       strings.Repeat("[", MaxFileSize-10),
		"maps":       strings.Repeat("{a: ", MaxFileSize/4-10),
		"dashes":     strings.Repeat("- ", MaxFileSize/2-10),
		"items":      "[" + strings.Repeat("a,", MaxFileSize/2-10) + "]",
		"anchors":    "[" + strings.Repeat("&a a,*a,", MaxFileSize/8-10) + "]",
		"comments":   strings.Repeat("# x\n", MaxFileSize/4-10) + "a: b",
		"keys":       strings.Repeat("k: v\n", MaxFileSize/5-10),
		"strings":    "policy: |\n" + strings.Repeat("  \"\n", MaxFileSize/4-10),
		"words":      "policy: |\n" + strings.Repeat("  x\n", MaxFileSize/4-10),
		"one line":   "policy: |\n  " + strings.Repeat("exec ", MaxFileSize/5-10),
		"not":        "policy: |\n  rule r:\n    exec \"x\" if " + strings.Repeat("not ", MaxFileSize/4-40),
		"ors":        "policy: |\n  source A = exec \"a\"\n  rule r:\n    exec \"x\" if A" + strings.Repeat(" or A", MaxFileSize/5-40),
		"braces":     "policy: |\n  rule r:\n    exec \"" + strings.Repeat("{", MaxFileSize-100) + "\"",
		"brackets":   "policy: |\n  rule r:\n    exec \"" + strings.Repeat("[", MaxFileSize-100) + "\"",
		"open":       "policy: |\n  rule r:\n    exec \"" + strings.Repeat("{a,b", MaxFileSize/4-100) + "\"",
		"pairs":      "policy: |\n  rule r:\n    exec \"" + strings.Repeat("{a}", MaxFileSize/3-100) + "\"",
		"stars":      "policy: |\n  rule r:\n    write \"/" + strings.Repeat("*a", MaxFileSize/2-100) + "\"",
		"deepstars":  "policy: |\n  rule r:\n    write \"" + strings.Repeat("/**", MaxFileSize/3-100) + "\"",
		"args":       "policy: |\n  rule r:\n    exec \"x\"" + strings.Repeat(" \"a\"", MaxFileSize/4-100),
		"15 stars":   "policy: |\n  rule r:\n" + strings.Repeat("    write \"/"+strings.Repeat("*a", 32000)+"\"\n", 15),
		"15 any":     "policy: |\n  rule r:\n" + sequence("    write \"/%d"+strings.Repeat("**a", 21000)+"\"\n", 15),
		"many any":   "policy: |\n  rule r:\n" + sequence("    write \"/**/%d**"+strings.Repeat("[!a]a?", 20)+"\"\n", 4000),
		"expanding":  "policy: |\n  rule r:\n" + sequence("    write \"/"+strings.Repeat("{a,b}", 9)+strings.Repeat("x", 200)+"%d\"\n", 3000),
		"nested":     "policy: |\n  rule r:\n" + strings.Repeat("    write \"/"+strings.Repeat("{a", 15)+strings.Repeat("}", 15)+strings.Repeat("{{a}", 10000)+"\"\n", 15),
		"classes":    "policy: |\n  rule r:\n" + sequence("    write \"/%d"+strings.Repeat("[!é-ü]", 5000)+"\"\n", 15),
		"ranges":     "policy: |\n  rule r:\n" + sequence("    write \"/%d["+strings.Repeat("é-ü", 8000)+"]\"\n", 15),
		"sets":       "policy: |\n  rule r:\n" + sequence("    connect \"@public:%d-60001\"\n", 4000),
		"networks":   "policy: |\n  rule r:\n" + sequence("    connect \"10.0.0.0/8:%d\"\n", 4000),
		"questions":  "policy: |\n  rule r:\n" + sequence("    write \"/"+strings.Repeat("?", 60000)+"%d\"\n", 17),
		"prefixes":   "policy: |\n  rule r:\n" + sequence("    connect \"[2001:%x:%[1]d::/52]:1%[1]d-6%[1]d\"\n", 4000),
		"gaps":       "policy: |\n  rule r:\n" + sequence("    exec \"git\" \"*a"+strings.Repeat("?", 50)+"%d\"\n", 500),
		"programs":   "policy: |\n  rule r:\n" + sequence("    exec \"*%d*x*\"\n", 4000),
		"excuses":    "policy: |\n  rule r:\n" + sequence("    write \"**/%d/*\" unless target not \"**/a%[1]d*\"\n", 4000),
		"commas":     "policy: |\n  rule r:\n" + strings.Repeat("    exec \"x\", \"y\"\n", MaxFileSize/20-10),
		"comments 2": "policy: |\n" + strings.Repeat("  //\n", MaxFileSize/5-10),
		"quotes":     "policy: |\n  rule r:\n" + strings.Repeat("    because \"a \"b\" c\"\n", MaxFileSize/26-10),
		"open line":  "policy: |\n  rule r:\n" + strings.Repeat("    because 'a\n", MaxFileSize/16-10),
		"backslash":  "policy: |\n  rule r:\n" + sequence("    write \"/%d"+strings.Repeat(`\\a`, 20000)+"\"\n", 15),
		"pipes":      "policy: |\n  rule r:\n    exec \"" + strings.Repeat("a|", 30000) + "a\"\n    exec \"" + strings.Repeat("(a|b)", 12000) + "\"\n",
		"any ports":  "policy: |\n  rule r:\n" + sequence("    notify connect any if not A\n    connect \"*:%d\" if not A\n", 2000) + "  source A = exec \"a\"\n",
		"tokens":     "policy: |\n  rule r:\n" + sequence("    exec \"x\" \"**%d*a*b*c*d*e*f*g\"\n", 500),
		"since":      "policy: |\n  rule r:\n    exec \"x\" unless after exec \"y\" since write \"z\"" + strings.Repeat(" or write \"a\"", MaxFileSize/13-100),
		"clauses":    "policy: |\n  rule r:\n" + strings.Repeat("    block write any\n", MaxFileSize/20-100),
		"rules":      "policy: |\n" + strings.Repeat("  rule r: write any\n", MaxFileSize/20-100),
		"domains":    domainChain(256, 2000),
		"folded":     "policy: >\n" + strings.Repeat("  # x\n", MaxFileSize/6-10),
		"protects":   "protect:\n" + sequence("  - \"/x%d*y*z\"\n", 40000),
		"defaults":   "policy: |\n" + strings.Repeat("  default block exec\n", 40000),
		"endorsed":   "policy: |\n" + sequence("  endorse L%05d by exec \"x\"\n", 30000),
		"hosts":      "policy: |\n  rule r:\n" + sequence("    connect \"*a*b*c%d*.example.org:1-6%[1]d\"\n", 4000),
		"regexes":    "policy: |\n  rule r:\n    write \"" + strings.Repeat("(a|b", MaxFileSize/4-100) + "\"\n",
		"labels":     "policy: |\n" + sequence("  source L%05d = exec \"x\"\n", 30000),
		"unknown":    "policy: |\n" + sequence("  source L%05d = exec \"x\"\n", 15000) + "  rule r:\n" + sequence("    exec \"x\" if M%05d\n", 15000),
	} {
		t.Run(name, func(t *testing.T) {
			start := cpuTime()
			_, err := Compile([]Document{{Text: []byte(text)}}, Options{})
			took := cpuTime() - start
			if took > hangs {
				t.Errorf("took %v", took)
			}
			var list diag.List
			errors.As(err, &list)
			t.Logf("%v; %d diagnostics, first: %.200s", took, len(list), list.First())
		})
	}
}

// domainChain has n domains, each the next one's parent, that bind all of m rules.
func domainChain(n, m int) string {
	var b strings.Builder
	b.WriteString("default_domain: d0\nrules:\n" + sequence("  r%[1]d: {ifc: 'rule r%[1]d: exec \"x%[1]d\"'}\n", m) + "domains:\n")
	for i := range n {
		fmt.Fprintf(&b, "  d%d:\n", i)
		if i+1 < n {
			fmt.Fprintf(&b, "    parent: d%d\n", i+1)
		}
		b.WriteString("    bind: [")
		for j := range 100 {
			fmt.Fprintf(&b, "{rule: r%d, mode: default}, ", (i*100+j)%m)
		}
		b.WriteString("]\n")
	}
	return b.String()
}

func sequence(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// compileAny compiles a text and returns all that is said about it.
func compileAny(t *testing.T, text []byte) diag.List {
	t.Helper()
	p, err := Compile([]Document{{Name: "f", Text: text}}, Options{Workspace: "/w"})
	var list diag.List
	switch {
	case errors.As(err, &list):
		if list.Errors() == 0 {
			t.Fatal("an error without errors")
		}
		return list
	case err != nil:
		t.Fatalf("an error that is no diagnostic: %v", err)
	}
	if _, err := CompileProgram(p.Program); (err == nil) != (len(p.Unenforced) == 0) {
		t.Fatalf("not enforced: %v; of the program: %v", p.Unenforced, err)
	}
	_ = p.Dump()
	return append(p.Warnings, p.Unenforced...)
}

// Braces that stand for more than the compiler takes are refused before they are
// expanded, where they begin to be too many.
func TestBraces(t *testing.T) {
	braces := strings.Repeat("{a,b}", 10)
	for rule, want := range map[string]string{
		`block exec "g" "%s%d"`:                       "tokens up to here take more than 1048576 bytes",
		`block exec "%s%d"`:                           "patterns up to here take more than 1048576 bytes",
		`block write "/%s%d"`:                         "patterns up to here take more than 1048576 bytes",
		`block write any unless target "%s%d"`:        "patterns up to here take more than 1048576 bytes",
		`block exec "x" unless after exec "g" "%s%d"`: "tokens up to here take more than 1048576 bytes",
	} {
		text := "policy: |\n"
		for i := range 400 {
			text += fmt.Sprintf("  rule r%d: "+rule+"\n", i, braces, i)
		}
		_, err := Compile([]Document{{Name: "p.yaml", Text: []byte(text)}}, Options{Workspace: "/w"})
		var list diag.List
		if !errors.As(err, &list) || list.Errors() != 1 || list[0].Code != diag.OverLimit || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %.300v", rule, err)
		}
	}
	same := "policy: |\n"
	for i := range 400 { // one token counts once
		same += fmt.Sprintf("  rule r%d: block exec \"g%d\" \"%s\"\n", i, i, braces)
	}
	if _, err := Compile([]Document{{Name: "p.yaml", Text: []byte(same)}}, Options{Workspace: "/w"}); err != nil {
		t.Error(err)
	}
}
