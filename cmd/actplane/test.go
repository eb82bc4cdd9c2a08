// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

func testCommand() *cli.Command {
	return &cli.Command{
		Name:      "test",
		Usage:     "run tests of policies, without a kernel",
		ArgsUsage: "FILE…",
		Description: "Acts out the cases of each FILE on the reference model and compares the verdicts with those\n" +
			"that the cases state. A case is a policy and a trace:\n\n" +
			"   == secrets-stay\n" +
			"   policy: actplane.yaml\n" +
			"   trace:\n" +
			"     a read /workspace/.env         ok\n" +
			"     a connect 93.184.216.34:443    block secrets-stay\n\n" +
			"The policy's path is relative to the FILE. docs/policy-tests.md tells the whole format. A FILE\n" +
			"that is called - is standard input. The exit status is 0 when all cases pass, 1 when one fails,\n" +
			"2 for a wrong command line and for a file that cannot be read or is not valid, be it a test or\n" +
			"a policy, and 3 when a result cannot be written.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "run", Usage: "only the cases whose names match `REGEX`"},
			&cli.StringFlag{Name: "junit", Usage: "write the results as JUnit XML to `FILE` as well"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "name the cases that pass, too"},
			&cli.StringFlag{Name: "workspace", Value: "/", Usage: "the `DIRECTORY` in the container where relative patterns begin, when neither policy nor case name one"},
		},
		Action: testPolicies,
	}
}

// tested is the outcome for one case. It passed if invalid and failure are nil.
type tested struct {
	file    string // as it is shown
	test    *model.Case
	invalid error // the policy cannot be read or has errors, or the trace makes no sense
	failure *model.Failure
	doubts  []model.Doubt
	took    time.Duration
}

func testPolicies(c *cli.Context) error {
	if !c.Args().Present() {
		return usageError("test: name a file with tests")
	}
	if w := c.String("workspace"); w == "" || w[0] != '/' {
		return usageError("test: --workspace is an absolute path in the container, not %q", w)
	}
	names, err := regexp.Compile(c.String("run"))
	if err != nil {
		return usageError("test: --run: %s", clean(err.Error()))
	}
	if err := inputOnce(c); err != nil {
		return err
	}
	file := c.String("junit")
	if name := sameFile(file, c.Args().Slice()); name != "" {
		return usageError("test: --junit %s would write over the tests in %s", file, name)
	}
	r := testRunner{context: c, names: names, compiled: map[[2]string]compiled{}}
	for _, name := range c.Args().Slice() {
		if err := r.file(name); err != nil {
			r.broken = append(r.broken, brokenFile{inputName(name), err})
		}
	}
	if len(r.results) == 0 && len(r.broken) == 0 {
		return usageError("test: no case has a name that matches %q", c.String("run"))
	}
	if err := r.report(); err != nil {
		return environmentError("print results: %v", err)
	}
	if name := sameFile(file, r.policies()); name != "" {
		return usageError("test: --junit %s would write over the policy %s, and was not written", file, name)
	}
	if file != "" {
		if err := writeJUnit(file, r.results, r.broken); err != nil {
			return environmentError("write results: %v", err)
		}
	}
	return r.outcome()
}

// sameFile finds the file among names that a file is, by whatever name; "" for none.
func sameFile(file string, names []string) string {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	for _, name := range names {
		if name == standardInput {
			name = "/dev/stdin"
		}
		if other, err := os.Stat(name); err == nil && os.SameFile(info, other) {
			return name
		}
	}
	return ""
}

// testRunner runs the cases of files.
type testRunner struct {
	context  *cli.Context
	names    *regexp.Regexp
	compiled map[[2]string]compiled // of policy files, by path and workspace
	work     int                    // of the cases of the present file, as model.MaxWork counts it
	results  []tested
	broken   []brokenFile // those that hold no tests to run
}

type brokenFile struct {
	name string
	err  error
}

type compiled struct {
	program *ir.Program
	err     error
}

// file runs the cases of a file; an error is one of the file.
func (r *testRunner) file(name string) error {
	text, err := readTests(r.context, name)
	if err != nil {
		return fmt.Errorf("read tests: %w", err)
	}
	if len(text) > policy.MaxFileSize {
		return fmt.Errorf("%s: the file has more than %d bytes", inputName(name), policy.MaxFileSize)
	}
	cases, err := model.ParseCases(inputName(name), string(text))
	if len(cases) == 0 {
		return err
	}
	r.work = 0
	for i := range cases {
		if r.names.MatchString(cases[i].Name) || cases[i].Err != nil { // whose name may be what is wrong
			r.results = append(r.results, r.run(name, &cases[i]))
		}
	}
	return nil
}

func readTests(c *cli.Context, name string) ([]byte, error) {
	if name == standardInput {
		return policy.ReadDocument(c.App.Reader)
	}
	return readPolicy(name)
}

func (r *testRunner) run(file string, test *model.Case) tested {
	start := time.Now()
	out := tested{file: inputName(file), test: test}
	if test.Err != nil {
		out.invalid = test.Err
		return out
	}
	program, err := r.program(file, test)
	if err != nil {
		out.invalid = err
	} else if err := r.afford(out.file, test, program); err != nil {
		out.invalid = err
	} else if f := model.Run(program, test); f != nil && f.Err != nil {
		out.invalid = fmt.Errorf("%s:%d: %s: %w", out.file, test.Steps[f.Step].Line, test.Steps[f.Step].Text, f.Err)
	} else {
		out.failure, out.doubts = f, model.Doubts(program, test)
	}
	out.took = time.Since(start)
	return out
}

// afford refuses a case with which a file's would take very long.
func (r *testRunner) afford(file string, test *model.Case, program *ir.Program) error {
	weight := model.Weight(program)
	if r.work += weight * len(test.Steps); r.work <= model.MaxWork {
		return nil
	}
	return fmt.Errorf("%s:%d: case %s: this would take too long: %s, each held against %s of the policy, come to more than %d with the cases before; split the case or the file",
		file, test.Line, test.Name, count(len(test.Steps), "step"), count(weight, "pattern"), model.MaxWork)
}

// program compiles the policy of a case. The same file is compiled once.
func (r *testRunner) program(file string, test *model.Case) (*ir.Program, error) {
	opts := policy.Options{Workspace: r.context.String("workspace"), DocumentFirst: true}
	if test.Workspace != "" {
		opts.Workspace = test.Workspace
	}
	if test.Path == "" {
		text, above := test.Part()
		p, err := policy.Compile([]policy.Document{{Name: inputName(file), Text: text, Above: above, Layer: policy.Container}}, opts)
		if err != nil {
			return nil, err
		}
		return p.Program, nil
	}
	name := test.Path
	if !filepath.IsAbs(name) && file != standardInput {
		name = filepath.Join(filepath.Dir(file), name)
	}
	key := [2]string{name, opts.Workspace}
	known, ok := r.compiled[key]
	if !ok {
		known = compilePolicyFile(name, opts)
		r.compiled[key] = known
	}
	if known.err != nil && !errors.As(known.err, new(diag.List)) {
		return nil, fmt.Errorf("%s:%d: case %s: %w", inputName(file), test.Line, test.Name, known.err)
	}
	return known.program, known.err
}

// policies are the files that cases have named.
func (r *testRunner) policies() (names []string) {
	for key := range r.compiled {
		names = append(names, key[0])
	}
	slices.Sort(names)
	return names
}

func compilePolicyFile(name string, opts policy.Options) compiled {
	text, err := readPolicy(name)
	if err != nil {
		return compiled{err: fmt.Errorf("read policy: %w", err)}
	}
	p, err := policy.Compile([]policy.Document{{Name: name, Text: text, Layer: policy.Container}}, opts)
	if err != nil {
		return compiled{err: err}
	}
	return compiled{program: p.Program}
}

// outcome is the exit status: what is not valid says nothing about the policy, so
// it comes first.
func (r *testRunner) outcome() error {
	if len(r.broken) > 0 {
		return &failure{code: exitUsage}
	}
	code := 0
	for _, t := range r.results {
		switch {
		case t.invalid != nil:
			return &failure{code: exitUsage}
		case t.failure != nil:
			code = exitDiagnostics
		}
	}
	if code != 0 {
		return &failure{code: code}
	}
	return nil
}

// report prints what failed and how many passed, and on standard error what is not
// valid: the diagnostics of a policy file once.
func (r *testRunner) report() error {
	var out, invalid strings.Builder
	shown := map[string]bool{}
	tell := func(err error) {
		if text := invalidText(err); !shown[text] {
			shown[text] = true
			invalid.WriteString(text)
		}
	}
	for _, b := range r.broken {
		tell(b.err)
	}
	n := map[string]int{}
	for _, t := range r.results {
		for _, d := range t.doubts {
			tell(fmt.Errorf("%s:%d: note: %s: %s", t.file, t.test.Steps[d.Step].Line, t.test.Steps[d.Step].Text, d.Text))
		}
		word, line, more := "passed", t.test.Line, ""
		switch {
		case t.invalid != nil:
			word = "INVALID"
			tell(t.invalid)
		case t.failure != nil:
			word, line, more = "FAILED", t.test.Steps[t.failure.Step].Line, failureText(t)
		}
		if n[word]++; word != "passed" || r.context.Bool("verbose") {
			fmt.Fprintf(&out, "%s %s:%d: %s\n%s", word, clean(t.file), line, clean(t.test.Name), more)
		}
	}
	if len(r.results) > 0 {
		fmt.Fprintf(&out, "%s: %d passed, %d failed", count(len(r.results), "case"), n["passed"], n["FAILED"])
		if n["INVALID"] > 0 {
			fmt.Fprintf(&out, ", %d not valid", n["INVALID"])
		}
		fmt.Fprintln(&out)
	}
	if _, err := fmt.Fprint(r.context.App.ErrWriter, invalid.String()); err != nil {
		return err
	}
	_, err := fmt.Fprint(r.context.App.Writer, out.String())
	return err
}

func invalidText(err error) string {
	var list diag.List
	if !errors.As(err, &list) {
		return cleanLines(errorText(err)) + "\n"
	}
	var b strings.Builder
	_ = list.WriteText(&b) // a Builder takes everything
	return b.String()
}

// failureText shows a step that failed below those before it: what was expected of
// it with a minus, what happened with a plus, and then why.
func failureText(t tested) string {
	const before = 3
	f, steps := t.failure, t.test.Steps[:t.failure.Step+1]
	steps = steps[max(0, len(steps)-1-before):]
	width := 0
	for _, s := range steps {
		width = max(width, len([]rune(clean(s.Text))))
	}
	width = min(width, 60)
	var b strings.Builder
	line := func(mark, step, verdict string) {
		fmt.Fprintf(&b, "    %s %-*s  %s\n", mark, width, clean(step), clean(verdict))
	}
	for i := range steps {
		if i < len(steps)-1 {
			line(" ", steps[i].Text, steps[i].Want())
			continue
		}
		line("-", steps[i].Text, steps[i].Want())
		line("+", steps[i].Text, f.Got.String())
	}
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "    %s\n", clean(n))
	}
	return b.String()
}
