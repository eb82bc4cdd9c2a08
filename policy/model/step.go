// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strconv"

	"github.com/actplane/actplane/policy/ir"
)

// Do acts out one step of a trace: SUBJECT OP OBJECT [ARGS…], or what a person
// says. An error is a step that makes no sense, not one that is denied.
func (s *Scope) Do(words []string) (Decision, error) {
	if err := checkStep(words); err != nil {
		return Decision{}, err
	}
	if words[0] == "human" {
		return Decision{}, s.human(words[1:])
	}
	p, op, args := s.Process(words[0]), words[1], words[2:]
	if p.ended {
		return Decision{}, stepErrorf("the process %s has ended", p.Name)
	}
	switch op {
	case "fork":
		return Decision{}, s.fork(p, args[0])
	case "exit", "killed":
		status, _ := strconv.Atoi(args[0])
		s.exit(p, status, op == "exit")
		return Decision{}, nil
	case "pipe", "pipewrite", "piperead":
		s.pipe(p, op, args[0])
		return Decision{}, nil
	}
	o, err := s.operation(p, op, args)
	if err != nil {
		return Decision{}, err
	}
	return s.perform(o), nil
}

// operation makes what a step asks for.
func (s *Scope) operation(p *Process, op string, args []string) (*operation, error) {
	switch op {
	case "exec", "execfails":
		return s.run(p, args, op == "execfails")
	case "connect":
		return s.network(p, ir.Connect, args[0])
	case "send":
		return s.network(p, ir.Send, args[0])
	case "recv":
		return s.network(p, ir.Recv, args[0])
	case "bind":
		return s.network(p, ir.Bind, args[0])
	case "unlink", "rmdir", "mkdir":
		return s.name(p, op, args[0])
	case "rename", "exchange":
		return s.rename(p, args[0], args[1], op == "exchange")
	case "link":
		return s.link(p, args[0], args[1])
	case "symlink":
		return s.symlink(p, args[0], args[1])
	}
	return s.access(p, op, args[0])
}

// objects is how many words an operation has after it, 0 for none that is known.
func objects(op string) int {
	switch op {
	case "rename", "exchange", "link", "symlink", "truncate":
		return 2
	case "exec", "execfails", "open", "read", "write", "append", "unlink", "rmdir", "mkdir", "chmod", "chown", "mmapshared",
		"connect", "send", "recv", "bind", "fork", "exit", "killed", "pipe", "pipewrite", "piperead":
		return 1
	}
	return 0
}

// paths is how many of them are absolute paths.
func paths(op string) int {
	switch op {
	case "rename", "exchange", "link":
		return 2
	case "connect", "send", "recv", "bind", "fork", "exit", "killed", "pipe", "pipewrite", "piperead", "symlink":
		return 0
	}
	return 1
}

func (s *Scope) human(words []string) error {
	if words[0] == "deny" {
		return s.Deny()
	}
	return s.Approve(words[1] == "once")
}
