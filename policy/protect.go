// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"path"
	"strings"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// BuiltIn names the layer of the rules that no document wrote.
const BuiltIn = "(built in)"

// protect adds rules that keep policy files as they are: a container that could
// change what it is started with next time could widen its policy. The folder is
// kept as well, as far as it is there for the policy alone. The directories above
// them and above the workspace keep their names: moving one would give everything
// in it paths that no pattern has. A path that ends in / is a folder, of which only
// that is asked.
func protect(program *ir.Program, paths []string) {
	if len(paths) == 0 {
		return
	}
	layer := len(program.Layers)
	program.Layers = append(program.Layers, ir.Layer{Name: BuiltIn})
	seen := map[string]bool{}
	keep := func(op ir.Op, word, name string) {
		if seen[word+name] {
			return
		}
		seen[word+name] = true
		program.Clauses = append(program.Clauses, ir.Clause{
			Rule:    len(program.Rules) - 1,
			Effect:  ir.Block,
			Op:      op,
			Pattern: ir.Pattern{Kind: ir.File, Text: pattern.Literal(name)},
			Pos:     BuiltIn,
			Text:    "block " + word + " file " + name,
		})
	}
	program.Rules = append(program.Rules, ir.Rule{
		Name:    "policy-files",
		Because: "Policy files stay as they are while a container runs under them; ask the person who runs it to change the policy.",
		Layer:   layer,
		Pos:     BuiltIn,
	})
	for _, name := range paths {
		if strings.HasSuffix(name, "/") {
			continue
		}
		keep(ir.Write, "write", name)
		keep(ir.Append, "append", name) // to append is not to write
		if path.Base(path.Dir(name)) == ".actplane" {
			keep(ir.Write, "write", path.Dir(name))
		}
	}
	program.Rules = append(program.Rules, ir.Rule{
		Name:    "policy-folders",
		Because: "The folders that lead to the workspace and to policy files keep their names while a container runs under a policy, since its patterns are about paths.",
		Layer:   layer,
		Pos:     BuiltIn,
	})
	for _, name := range append([]string{path.Join(program.Workspace, "x")}, paths...) {
		for name = path.Dir(name); name != "/"; name = path.Dir(name) {
			keep(ir.Unlink, "unlink", name)
		}
	}
}
