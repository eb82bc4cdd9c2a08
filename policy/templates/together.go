// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// together makes a case of several templates that let the same happen after tests of
// their own: once all of them have passed. Their own cases, in which one does, do not
// hold then. names are those of the templates; none, and no text, where there are no two.
func together(program *ir.Program, list []Template, workspace string) (text string, names []string, err error) {
	var lines []string
	var last *model.Step
	for i := range list {
		steps, err := list[i].opens()
		if err != nil {
			return "", nil, err
		}
		if steps == nil || last != nil && !slices.Equal(last.Words, steps[len(steps)-1].Words) {
			continue
		}
		last = &steps[len(steps)-1]
		names = append(names, list[i].Name)
		for _, s := range steps[:len(steps)-1] {
			words := slices.Clone(s.Words)
			for j, w := range words { // the processes of each template are its own
				if w == "t" && (j == 0 || words[1] == "fork") {
					words[j] = fmt.Sprintf("t%d", len(names))
				}
			}
			verdict := s.Want()
			if words[1] == "exit" {
				verdict = ""
			}
			lines = append(lines, strings.TrimRight(fmt.Sprintf("  %-46s %s", model.WriteStep(words), verdict), " "))
		}
	}
	if len(names) < 2 {
		return "", nil, nil
	}
	lines = append(lines, fmt.Sprintf("  %-46s ok", last.Text))
	text = "== " + strings.Join(names, "-and-") + "-come-before-a-commit\ntrace:\n" + strings.Join(lines, "\n") + "\n"
	text = strings.ReplaceAll(text, Workspace, workspace)
	settled, failure, err := settle(program, text, names)
	if failure != nil { // another rule refuses it whatever has passed
		return "", nil, nil
	}
	return settled, names, err
}

// opens returns the steps of a template's first case, where that begins with what is
// refused and ends with the same, allowed; nil for others.
func (t *Template) opens() ([]model.Step, error) {
	if !strings.HasPrefix(t.Name, "tests-") || len(t.cases) == 0 {
		return nil, nil
	}
	cases, err := model.ParseCases(t.Name, "policy: "+PolicyFile+"\n"+t.cases[0].text)
	if err != nil {
		return nil, err
	}
	steps := cases[0].Steps
	first, last := steps[0], steps[len(steps)-1]
	if first.Verdict != ir.Block.String() || last.Verdict != "ok" || !slices.Equal(first.Words, last.Words) {
		return nil, nil
	}
	return steps, nil
}
