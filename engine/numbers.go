// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/policy/ir"
)

// numbers are a policy and what the numbers of its image stand for in it: those that the
// kernel reports.
type numbers struct {
	program                     *ir.Program
	clauses, defaults, protects []int
}

// numbers gives those that a record of the kernel's has.
func (s *scope) numbers(rec kernel.Record) numbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rec.Former && s.former.program != nil {
		return s.former
	}
	return s.present()
}

// present are those of the policy in force. mu is held.
func (s *scope) present() numbers {
	r := &s.record
	return numbers{program: s.program, clauses: r.Clauses, defaults: r.Defaults, protects: r.Protects}
}

// clause finds the rule and clause that an image's clause number stands for.
func (n *numbers) clause(number int) (ir.Rule, ir.Clause, bool) {
	if number < 0 || number >= len(n.clauses) {
		return ir.Rule{}, ir.Clause{}, false
	}
	number = n.clauses[number]
	if number < 0 || number >= len(n.program.Clauses) {
		return ir.Rule{}, ir.Clause{}, false
	}
	clause := n.program.Clauses[number]
	return n.program.Rules[clause.Rule], clause, true
}

// defaultOf is a default of the program, by the image's number.
func (n *numbers) defaultOf(number int) (ir.Default, bool) {
	if number < 0 || number >= len(n.defaults) {
		return ir.Default{}, false
	}
	number = n.defaults[number]
	if number < 0 || number >= len(n.program.Defaults) {
		return ir.Default{}, false
	}
	return n.program.Defaults[number], true
}

// protected is what a program protects, by the image's number, which comes behind
// those of its clauses.
func (n *numbers) protected(number int) (ir.Protect, bool) {
	number -= len(n.clauses)
	if number < 0 || number >= len(n.protects) {
		return ir.Protect{}, false
	}
	number = n.protects[number]
	if number < 0 || number >= len(n.program.Protects) {
		return ir.Protect{}, false
	}
	return n.program.Protects[number], true
}

// fileSource is the first source of a label that names files.
func (n *numbers) fileSource(label int) (ir.Source, bool) {
	for _, source := range n.program.Sources {
		if source.Label == label && source.Pattern.Kind == ir.File {
			return source, true
		}
	}
	return ir.Source{}, false
}

// labelNames lists the names of a label set, but for those that only tell for whom rules
// were added.
func (n *numbers) labelNames(set uint64) []string {
	var names []string
	for bit, label := range n.program.Labels {
		if bit < ir.MaxLabels && set&(1<<bit) != 0 && !label.Confines {
			names = append(names, label.Name)
		}
	}
	return names
}

// hold is how long the clause or default of a record stops a process.
func (n *numbers) hold(rec kernel.Record) time.Duration {
	if d, ok := n.defaultOf(rec.Default); ok {
		return d.Hold
	}
	_, clause, _ := n.clause(rec.Clause)
	return clause.Hold
}
