// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"
)

// Case is one case of a case file.
type Case struct {
	Name      string
	Line      int    // where it begins
	Policy    string // the text of a `policy: |` block
	Path      string // of a policy file, instead
	YAML      string // a whole file, instead
	Workspace string
	Steps     []Step
}

// Step is one line of a trace.
type Step struct {
	Line    int
	Text    string
	Words   []string // without the verdict
	Verdict string   // ok, notify, ask, block or kill
	Rule    string   // "" if the line names none
}

// Document returns the case as the text of a policy file; of a case with a Path,
// there is none.
func (c *Case) Document() []byte {
	if c.YAML != "" {
		return []byte(c.YAML)
	}
	text := "version: 1\n"
	if c.Workspace != "" {
		text += "workspace: " + c.Workspace + "\n"
	}
	return []byte(text + "policy: |\n" + c.Policy)
}

// Want is the verdict with its rule, as Decision.String writes it.
func (s *Step) Want() string { return strings.TrimSpace(s.Verdict + " " + s.Rule) }

// ParseCases reads a case file: cases that begin with `== NAME`, each with
// `policy:`, `yaml:`, `workspace:` and `trace:`. What stands before the first case
// is a comment, and so is a line of a trace that begins with #.
func ParseCases(name, text string) ([]Case, error) {
	var out []Case
	section := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		fail := func(format string, args ...any) error {
			return fmt.Errorf("%s:%d: %s", name, i+1, fmt.Sprintf(format, args...))
		}
		switch {
		case strings.HasPrefix(line, "=="):
			title := strings.Fields(line[2:])
			if len(title) != 1 {
				return nil, fail("a case begins with == NAME")
			}
			out, section = append(out, Case{Name: title[0], Line: i + 1}), ""
		case len(out) == 0 || line == "":
		case line[0] != ' ' && line[0] != '\t':
			key, rest, _ := strings.Cut(line, ":")
			c, value := &out[len(out)-1], strings.TrimSpace(rest)
			section = key
			switch {
			case key == "workspace":
				c.Workspace = value
			case key == "policy":
				c.Path = value
			case key != "yaml" && key != "trace" || value != "":
				return nil, fail("%q is no part of a case: those are policy:, yaml:, workspace: and trace:", line)
			}
		default:
			if err := addLine(&out[len(out)-1], section, line, i+1); err != nil {
				return nil, fail("%v", err)
			}
		}
	}
	return out, incomplete(name, out)
}

func addLine(c *Case, section, line string, number int) error {
	switch section {
	case "policy":
		c.Policy += line + "\n"
	case "yaml":
		c.YAML += strings.TrimPrefix(line, "  ") + "\n"
	case "trace":
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			return nil
		}
		step, err := parseStep(line)
		step.Line = number
		c.Steps = append(c.Steps, step)
		return err
	default:
		return fmt.Errorf("this line belongs to nothing: write policy:, yaml:, workspace: or trace: before it")
	}
	return nil
}

func incomplete(name string, cases []Case) error {
	if len(cases) == 0 {
		return fmt.Errorf("%s: no case: one begins with == NAME", name)
	}
	for _, c := range cases {
		n := 0
		for _, text := range []string{c.Policy, c.Path, c.YAML} {
			if text != "" {
				n++
			}
		}
		switch {
		case n != 1:
			return fmt.Errorf("%s:%d: case %s has no policy, or more than one", name, c.Line, c.Name)
		case len(c.Steps) == 0:
			return fmt.Errorf("%s:%d: case %s has no trace", name, c.Line, c.Name)
		case c.Workspace != "" && c.Policy == "" && c.Path == "":
			return fmt.Errorf("%s:%d: case %s: the workspace belongs in the yaml", name, c.Line, c.Name)
		}
	}
	return nil
}

// parseStep splits a line of a trace in the step and its verdict with the rule.
func parseStep(line string) (Step, error) {
	words := strings.Fields(line)
	step := Step{Text: strings.Join(words, " "), Words: words, Verdict: "ok"}
	for n := len(words) - 1; n >= 2 && n >= len(words)-2; n-- {
		switch words[n] {
		case "ok", "notify", "ask", "block", "kill":
			step.Words, step.Verdict, step.Rule = words[:n], words[n], strings.Join(words[n+1:], " ")
			return step, nil
		}
	}
	if len(words) > 1 && words[0] != "human" && words[1] != "exit" && words[1] != "killed" {
		return step, fmt.Errorf("the step %q has no verdict: end it with ok, notify, ask, block or kill", step.Text)
	}
	return step, nil
}
