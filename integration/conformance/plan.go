// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/diag"
	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// plan are the cases of files, with all that is needed to act them out elsewhere.
type plan struct{ Cases []planned }

// planned is one case.
type planned struct {
	model.Case
	File      string
	Document  string // the text of its policy file
	Workspace string // root of relative patterns
	Program   *ir.Program
	Files     []model.Found
	// Unenforced is what the engine of this version refuses it for; "" for nothing.
	Unenforced string
	// folders has for each step of a random case what of the names that it moves counts as
	// a folder's.
	folders [][]bool
}

// pack reads files of cases and writes their plan. Whatever is wrong with a file or
// with a policy is told here.
func pack(files []string, out io.Writer) error {
	p, names := plan{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return usageError{fmt.Errorf("read cases: %w", err)}
		}
		cases, err := model.ParseCases(file, string(text))
		if err != nil {
			return usageError{err}
		}
		for i := range cases {
			c, err := planCase(file, &cases[i])
			if err == nil && names[c.Name] {
				err = errors.New("another file has a case of this name")
			}
			if err != nil {
				return usageError{fmt.Errorf("%s:%d: case %s: %w", file, cases[i].Line, cases[i].Name, err)}
			}
			names[c.Name] = true
			p.Cases = append(p.Cases, *c)
		}
	}
	return json.NewEncoder(out).Encode(p)
}

func planCase(file string, c *model.Case) (*planned, error) {
	out := &planned{Case: *c, File: file, Workspace: c.Workspace}
	if out.Workspace == "" {
		out.Workspace = "/"
	}
	name, text := file, c.Document()
	if c.Path != "" {
		if name = c.Path; !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(file), name)
		}
		var err error
		if text, err = os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("read policy: %w", err)
		}
	}
	compiled, err := policy.Compile([]policy.Document{{Name: name, Text: text, Layer: policy.Operator}}, policy.Options{Workspace: out.Workspace})
	if err != nil {
		return nil, err
	}
	if f := model.Run(compiled.Program, c); f != nil {
		step := c.Steps[f.Step]
		if f.Err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", step.Line, step.Text, f.Err)
		}
		return nil, fmt.Errorf("line %d: %s: the case says %s, and the model %s: run \"actplane test %s\"", step.Line, step.Text, step.Want(), f.Got, file)
	}
	out.Document, out.Program = string(text), compiled.Program
	out.Unenforced = refusal(compiled.Unenforced)
	out.Files, err = model.Outside(compiled.Program, c)
	return out, err
}

// notSupported is how the compiler begins to refuse what is not enforced.
const notSupported = "not supported by this version: "

// refusal says in a line what an engine does not enforce.
func refusal(list diag.List) string {
	var what []string
	for _, d := range list {
		text := strings.TrimPrefix(d.Message, notSupported)
		if !slices.Contains(what, text) {
			what = append(what, text)
		}
	}
	if len(what) == 0 {
		return ""
	}
	return notSupported + strings.Join(what, ", ")
}

func readPlan(name string) (*plan, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, usageError{fmt.Errorf("read plan: %w", err)}
	}
	p := &plan{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, usageError{fmt.Errorf("read plan %q: %w", name, err)}
	}
	if len(p.Cases) == 0 {
		return nil, usageError{errors.New("the plan has no cases")}
	}
	return p, nil
}
