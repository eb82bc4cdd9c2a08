// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Case is one case of a case file.
type Case struct {
	Name      string
	Line      int    // where it begins
	Policy    string // of what is written in the case: a policy text
	YAML      string // or a whole policy file
	Path      string // or the path of one
	Workspace string // root of relative patterns, for a policy that names none
	Steps     []Step
	// Err is what is wrong in the case: it cannot be acted out.
	Err error

	policyLine    int // of the key
	workspaceLine int
}

// Step is one line of a trace.
type Step struct {
	Line    int
	Text    string   // as written, without the verdict
	Words   []string // of Text, without quotes
	Verdict string   // ok, notify, ask, block or kill
	Rule    string   // "" if the line names none
}

// Want is the verdict with its rule, as Decision.String writes it.
func (s *Step) Want() string { return strings.TrimSpace(s.Verdict + " " + s.Rule) }

// Document returns the policy that is written in the case as the text of a policy
// file; there is none when the case has a Path. Each of its lines is the line of
// the case file with the same number, so that what is said of the one is true of
// the other; a workspace that stands before the first case comes last.
func (c *Case) Document() []byte {
	text, above := c.Part()
	if text == nil {
		return nil
	}
	return append(bytes.Repeat([]byte{'\n'}, above), text...)
}

// Part is Document without the empty lines at its beginning, and their number.
func (c *Case) Part() (text []byte, above int) {
	if c.Path != "" {
		return nil, 0
	}
	if c.YAML != "" {
		return []byte(c.YAML), c.policyLine
	}
	const key = "policy: |\n"
	workspace := "workspace: " + c.Workspace + "\n"
	gap := func(lines int) string { return strings.Repeat("\n", max(0, lines)) }
	switch first := c.workspaceLine; {
	case c.Workspace == "":
		return []byte(key + c.Policy), c.policyLine - 1
	case first < c.Line: // of all cases
		return []byte(key + c.Policy + workspace), c.policyLine - 1
	case first < c.policyLine:
		return []byte(workspace + gap(c.policyLine-first-1) + key + c.Policy), first - 1
	default:
		return []byte(key + c.Policy + gap(first-c.policyLine-1-strings.Count(c.Policy, "\n")) + workspace), c.policyLine - 1
	}
}

// ParseCases reads a case file: cases that begin with `== NAME`, each with
// `policy:` or `yaml:`, with `workspace:` if need be, and with `trace:`. What
// stands before the first case is a comment, but for lines `policy: PATH` and
// `workspace: DIRECTORY`: they are for all cases that have none of their own. So
// is a line that begins with #, and the rest of a line of a trace from a word
// that does. An error has a line for each mistake, that begins with name:line. The
// cases come with it, and those without an Err can be acted out; unless a mistake
// is about all of them.
func ParseCases(name, text string) ([]Case, error) {
	p := caseParser{name: name, common: Case{Name: "what stands before the first case"}, names: map[string]int{}}
	for i, line := range strings.Split(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		p.number = i + 1
		if !utf8.ValidString(line) {
			p.fail("this line is not UTF-8")
			continue
		}
		p.line(strings.TrimRight(line, " \t\r"))
	}
	p.finish()
	if p.broken {
		return nil, errors.Join(p.errs...)
	}
	return p.cases, errors.Join(p.errs...)
}

// mostErrors ends the reading of a file that is something else altogether.
const mostErrors = 20

// unread is the section of lines below what was wrong already.
const unread = "?"

type caseParser struct {
	name    string
	number  int
	common  Case
	cases   []Case
	names   map[string]int  // the lines where cases begin
	section string          // "" outside, or unread
	text    strings.Builder // of the section that is a policy
	errs    []error
	broken  bool // a mistake is about all cases
}

// fail notes a mistake of the case that is read; what stands before the first is of
// all.
func (p *caseParser) fail(format string, args ...any) {
	if len(p.cases) == 0 {
		p.broken = true
		_ = p.add(p.number, format, args...)
		return
	}
	p.failIn(&p.cases[len(p.cases)-1], p.number, format, args...)
}

func (p *caseParser) failIn(c *Case, line int, format string, args ...any) {
	if err := p.add(line, format, args...); err != nil {
		c.Err = errors.Join(c.Err, err)
	} else if c.Err == nil {
		c.Err = fmt.Errorf("%s: more than %d mistakes; the others are not shown", p.name, mostErrors)
	}
}

// add returns the mistake that it notes, nil if there are too many.
func (p *caseParser) add(line int, format string, args ...any) error {
	if len(p.errs) == mostErrors {
		return nil
	}
	err := fmt.Errorf("%s:%d: %s", p.name, line, fmt.Sprintf(format, args...))
	p.errs = append(p.errs, err)
	return err
}

func (p *caseParser) line(line string) {
	switch {
	case strings.HasPrefix(line, "=="):
		p.title(strings.Fields(line[2:]))
	case len(p.cases) == 0:
		if key, value, _ := strings.Cut(line, ":"); key == "policy" || key == "workspace" {
			p.key(&p.common, key, strings.TrimSpace(value))
			if p.section == "policy" {
				p.fail("before the first case write policy: PATH; a policy text belongs in a case")
			}
			p.section = ""
		}
	case line == "" || line[0] == '#':
		p.inside("") // an empty line of a policy keeps the numbers of the others
	case line[0] != ' ' && line[0] != '\t':
		key, value, colon := strings.Cut(line, ":")
		if !colon {
			key = line
		}
		p.key(&p.cases[len(p.cases)-1], key, strings.TrimSpace(value))
	default:
		p.inside(line)
	}
}

// title begins a case.
func (p *caseParser) title(words []string) {
	name := "?"
	if len(words) == 1 {
		name = words[0]
	}
	p.endSection()
	p.cases = append(p.cases, Case{Name: name, Line: p.number})
	switch line, same := p.names[name]; {
	case len(words) != 1:
		p.fail("a case begins with == NAME, one word")
	case same:
		p.fail("there is a case %s already, at line %d", name, line)
	default:
		p.names[name] = p.number
	}
}

// endSection gives the text of a policy that has been read to its case.
func (p *caseParser) endSection() {
	if len(p.cases) > 0 {
		switch c := &p.cases[len(p.cases)-1]; p.section {
		case "policy":
			c.Policy = p.text.String()
		case "yaml":
			c.YAML = p.text.String()
		}
	}
	p.text.Reset()
	p.section = ""
}

// key begins a section, or takes a value.
func (p *caseParser) key(c *Case, key, value string) {
	p.endSection()
	p.section = unread
	if value == "|" {
		value = ""
	}
	switch {
	case key == "workspace" && c.workspaceLine > 0, (key == "policy" || key == "yaml") && c.policyLine > 0:
		p.fail("case %s has a second policy or workspace", c.Name)
	case key == "workspace" && (value == "" || value[0] != '/' || strings.ContainsAny(value, "\"'#:{}[]\\&*!|>%@`")):
		p.fail("a workspace is an absolute path, such as /w")
	case key == "workspace":
		p.section = ""
		c.Workspace, c.workspaceLine = value, p.number
	case key == "policy":
		c.Path, c.policyLine, p.section = value, p.number, ""
		if value == "" {
			p.section = key
		}
	case key == "yaml" && value == "":
		p.section, c.policyLine = key, p.number
	case key == "trace" && value == "":
		p.section = key
	case key == "yaml" || key == "trace":
		p.fail("what belongs to %s: stands on the lines below it, indented", key)
	default:
		p.fail("%q is no part of a case: those are policy:, yaml:, workspace: and trace:", key)
	}
}

// inside takes a line of a section.
func (p *caseParser) inside(line string) {
	c := &p.cases[len(p.cases)-1]
	switch p.section {
	case "policy", "yaml":
		p.text.WriteString(line + "\n")
	case "trace":
		step, err := parseStep(line)
		if err != nil {
			p.fail("%v", err)
		} else if len(step.Words) > 0 {
			step.Line = p.number
			c.Steps = append(c.Steps, step)
		}
	case "":
		if line != "" {
			p.fail("this line belongs to nothing: write policy:, yaml:, workspace: or trace: before it")
			p.section = unread
		}
	}
}

// finish looks at what the cases lack.
func (p *caseParser) finish() {
	p.endSection()
	if len(p.cases) == 0 {
		p.broken = true
		_ = p.add(1, "no case: one begins with == NAME")
	}
	for i := range p.cases {
		c := &p.cases[i]
		if c.policyLine == 0 {
			c.Path, c.policyLine = p.common.Path, p.common.policyLine
		}
		if c.Workspace == "" && c.YAML == "" {
			c.Workspace, c.workspaceLine = p.common.Workspace, p.common.workspaceLine
		}
		switch empty := strings.TrimSpace(c.Path+c.Policy+c.YAML) == ""; {
		case c.Err != nil || p.broken: // what is missing may be what could not be read
		case empty:
			p.failIn(c, c.Line, "case %s has no policy", c.Name)
		case len(c.Steps) == 0:
			p.failIn(c, c.Line, "case %s has no trace", c.Name)
		case c.Workspace != "" && c.YAML != "":
			p.failIn(c, c.Line, "case %s: the workspace belongs in the yaml", c.Name)
		}
	}
}
