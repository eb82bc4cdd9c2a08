// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"path"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// BuiltIn names the layer of the rules that no document wrote.
const BuiltIn = "(built in)"

// protect adds a rule that keeps policy files as they are: a container that could
// change what it is started with next time could widen its policy. The folder is
// kept as well, as far as it is there for the policy alone.
func protect(program *ir.Program, paths []string) {
	if len(paths) == 0 {
		return
	}
	rule := len(program.Rules)
	program.Rules = append(program.Rules, ir.Rule{
		Name:    "policy-files",
		Because: "Policy files stay as they are while a container runs under them; ask the person who runs it to change the policy.",
		Layer:   len(program.Layers),
		Pos:     BuiltIn,
	})
	program.Layers = append(program.Layers, ir.Layer{Name: BuiltIn})
	seen := map[string]bool{}
	for _, name := range paths {
		for _, kept := range []string{name, path.Dir(name)} {
			if seen[kept] || kept != name && path.Base(kept) != ".actplane" {
				continue
			}
			seen[kept] = true
			program.Clauses = append(program.Clauses, ir.Clause{
				Rule:    rule,
				Effect:  ir.Block,
				Op:      ir.Write,
				Pattern: ir.Pattern{Kind: ir.File, Text: pattern.Literal(kept)},
				Pos:     BuiltIn,
				Text:    "block write file " + kept,
			})
		}
	}
}
