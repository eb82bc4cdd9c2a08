// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strconv"
	"time"

	"github.com/actplane/actplane/policy/ir"
)

// Do acts out one step of a trace: SUBJECT OP OBJECT [ARGS…], what a person says,
// or time that goes by. An error is a step that makes no sense, not one that is
// denied.
func (s *Scope) Do(words []string) (Decision, error) {
	if err := checkStep(words); err != nil {
		return Decision{}, err
	}
	switch {
	case isHuman(words):
		return Decision{}, s.human(words[1:])
	case isTime(words):
		d, _ := time.ParseDuration(words[1])
		s.Wait(d)
		return Decision{}, nil
	case isScope(words):
		if words[1] == "lost" {
			s.Lose()
		} else {
			s.Restart()
		}
		return Decision{}, nil
	case words[1] == "enter":
		return Decision{}, s.enter(words[0])
	}
	p := s.Process(words[0])
	if p.ended {
		return Decision{}, stepErrorf("the process %s has ended", p.Name)
	}
	if p.held != nil && words[1] != "killed" {
		return Decision{}, stepErrorf("the process %s is held until its request is answered", p.Name)
	}
	if !decided(words[1]) {
		return Decision{}, s.happen(p, words[1], words[2:])
	}
	o, err := s.operation(p, words[1], words[2:])
	if err != nil {
		return Decision{}, err
	}
	return s.perform(o, words), nil
}

// happen is what a process does and no policy decides.
func (s *Scope) happen(p *Process, op string, args []string) error {
	switch op {
	case "fork":
		return s.fork(p, args[0])
	case "exit", "killed":
		status, _ := strconv.Atoi(args[0])
		s.exit(p, status, op == "exit")
	case "pipe", "pipewrite", "piperead":
		s.pipe(p, op, args[0])
	case "shm":
		return s.share(p, args[0])
	case "fdpass":
		q, err := s.other(p, args[1])
		if err != nil {
			return err
		}
		return s.pass(p, args[0], q)
	case "chdir":
		p.dir, _ = s.files.resolve(args[0], true)
	case "setuid":
		p.user = args[0]
	case "setenv":
		p.env = p.env.with(args[0], args[1])
	}
	return nil
}

// operation makes what a step asks for, of what a policy decides.
func (s *Scope) operation(p *Process, op string, args []string) (*operation, error) {
	switch op {
	case "exec", "execfails", "execscript":
		return s.run(p, op, args)
	case "mapexec":
		return s.load(p, args[0])
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
	case "fdopen":
		return s.openAs(p, args[0], args[1], args[2])
	case "fdread", "fdwrite":
		return s.through(p, op, args[0])
	case "ptrace", "memread", "memwrite":
		q, err := s.other(p, args[0])
		if err == nil && op == "ptrace" {
			err = s.mappable(2)
		}
		if err != nil {
			return nil, err
		}
		return s.debug(p, op, q), nil
	}
	return s.access(p, op, args[0])
}

// other is another process that still runs.
func (s *Scope) other(p *Process, name string) (*Process, error) {
	if q := s.Process(name); q != p && !q.ended {
		return q, nil
	}
	return nil, stepErrorf("the process %s is no other one that runs", name)
}

func (s *Scope) human(words []string) error {
	rest, during := words[1:], DefaultGrant
	if words[0] == "deny" {
		during = ScopeLifetime
	}
	if len(rest) > 0 && rest[0] != "because" && rest[0] != "once" {
		if during = ScopeLifetime; rest[0] != "scope" {
			during, _ = time.ParseDuration(rest[0])
		}
		rest = rest[1:]
	}
	switch {
	case words[0] == "approve" && len(rest) > 0:
		return s.ApproveOnce()
	case words[0] == "approve":
		return s.Approve(during)
	case len(rest) > 0:
		return s.Deny(during, rest[1])
	}
	return s.Deny(during, "")
}
