// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// initCandidates are paths for the container's first program, from which all
// subjects come that nothing forked.
var initCandidates = []string{"/sbin/init", "/usr/bin/first", "/bin/first", "/lib/first", "/opt/start/first"}

// firstProgram chooses one that the policy allows and that leaves no trace, since
// such subjects carry no labels.
func firstProgram(c *planned) (string, error) {
	if rooted(c.Steps) {
		return c.Steps[0].Words[2], nil
	}
	why := ""
	for _, candidate := range initCandidates {
		s := model.New(c.Program)
		d, err := s.Do([]string{root, "exec", candidate})
		switch first := s.Process(root); {
		case err != nil:
			return "", err
		case slices.ContainsFunc(c.Files, func(f model.Found) bool { return f.Path == candidate }):
			why = "it uses " + candidate
		case d.Effect != ir.Allow:
			why = fmt.Sprintf("running it is %s", d)
		case first.Labels != 0 || first.Lineage != 0:
			why = "running it leaves " + s.LabelNames(first.Labels)
		case opensGate(s, c.Program):
			why = "running it opens what the policy closes"
		default:
			return candidate, nil
		}
	}
	return "", fmt.Errorf("every process of a container comes from its first program, and %s", why)
}

func opensGate(s *model.Scope, p *ir.Program) bool {
	for i := range p.Gates {
		if s.Fresh(i) {
			return true
		}
	}
	return false
}

// impossible says why a case cannot be acted out in a real container, "" if it can.
func impossible(c *planned) string {
	if c.Unenforced != "" {
		return c.Unenforced
	}
	first, err := firstProgram(c)
	if err != nil {
		return err.Error()
	}
	for _, f := range c.Files {
		for _, of := range []string{"/proc", "/sys", "/run/actplane"} {
			if f.Path == of || strings.HasPrefix(f.Path, of+"/") {
				return "what is in " + of + " is the container's own"
			}
		}
	}
	if slices.ContainsFunc(c.Program.Clauses, func(x ir.Clause) bool { return x.Hold != 0 }) {
		return "who is held gives no answer"
	}
	w := newCrew(c.Program, first, rooted(c.Steps))
	for _, step := range c.Steps {
		if why := w.impossible(step.Words); why != "" {
			return fmt.Sprintf("%s: %s", step.Text, why)
		}
		if _, err := w.do(step.Words); err != nil {
			return err.Error()
		}
	}
	return ""
}

// root is the subject that is a container's first program itself, in a case that begins
// with what it runs. All others are to come from it, with what it has; else they come from
// a first program that has nothing, without a word.
const root = "init"

func rooted(steps []model.Step) bool { return len(steps) > 0 && isRoot(steps[0].Words) }

func isRoot(words []string) bool {
	return len(words) == 3 && words[0] == root && words[1] == "exec"
}

// crew knows, while the model acts out a case, from where the processes of a container
// would come.
type crew struct {
	model   *model.Scope
	first   string // the path of the first program
	rooted  bool
	started bool // the first program runs, as far as a case tells
	parents map[string]string
	dead    map[string]bool // killed by a decision: it comes from its parent again
	known   map[string]bool
}

func newCrew(p *ir.Program, first string, rooted bool) *crew {
	w := &crew{model: model.New(p), first: first, rooted: rooted}
	w.restarted()
	return w
}

func (w *crew) restarted() {
	w.started, w.parents, w.dead, w.known = !w.rooted, map[string]string{}, map[string]bool{}, map[string]bool{}
}

// impossible says why a step cannot be acted out where it stands, "" if it can.
func (w *crew) impossible(words []string) string {
	if why := impossibleStep(words); why != "" {
		return why
	}
	if words[0] == "human" {
		return ""
	}
	if isRestart(words) && w.started {
		return ""
	}
	if !w.started && (!isRoot(words) || words[2] != w.first) {
		return "a container starts with its first program"
	}
	if w.rooted && words[0] == root && (words[1] == "exit" || words[1] == "killed") {
		return "a container ends with its first program"
	}
	for i, name := range processes(words) {
		switch {
		case w.rooted && name != root && !w.known[name] && !(words[1] == "fork" && i == 1):
			return "in a case that begins with the first program, all others come from it"
		case w.dead[name] && !w.same(name):
			return "who was killed comes from its parent again, which has other labels"
		}
	}
	return ""
}

// same tells whether a process that comes from its parent again is what it was.
func (w *crew) same(name string) bool {
	from, now := &model.Process{}, w.model.Process(name)
	if parent := w.parents[name]; parent != "" {
		from = w.model.Process(parent)
	}
	return from.Labels == now.Labels && from.Lineage == now.Lineage
}

// do acts out a step on the model.
func (w *crew) do(words []string) (model.Decision, error) {
	d, err := w.model.Do(words)
	if err != nil {
		return d, err
	}
	if isRestart(words) {
		w.restarted()
		if w.rooted {
			return d, nil
		}
		// All come from the first program again.
		if d, err := w.model.Do([]string{root, "exec", w.first}); err != nil || d.Effect != ir.Allow {
			return d, &unreachableError{fmt.Sprintf("%s: every process comes from the first program again, and running it is %s", strings.Join(words, " "), d)}
		}
		return d, nil
	}
	if words[0] == "human" {
		return d, nil
	}
	w.started = true
	for _, name := range processes(words) {
		w.known[name], w.dead[name] = true, false
	}
	if words[1] == "fork" {
		w.parents[words[2]] = words[0]
	}
	w.dead[words[0]] = d.Effect == ir.Kill
	return d, nil
}

// processes are those that a step is about, its subject first.
func processes(words []string) []string {
	switch {
	case isRestart(words) || words[0] == "human" || words[0] == "time":
		return nil
	case words[1] == "fork" || words[1] == "ptrace" || words[1] == "memread" || words[1] == "memwrite":
		return []string{words[0], words[2]}
	case words[1] == "fdpass":
		return []string{words[0], words[3]}
	}
	return words[:1]
}

// impossibleStep says why a step cannot be acted out, whatever its case.
func impossibleStep(words []string) string {
	switch {
	case words[0] == "time" && words[1][0] >= '0' && words[1][0] <= '9':
		return "the kernel's clock goes its own way"
	case words[1] == "enter":
		return "what runs in a container's setup is runc's"
	case words[1] == "setuid":
		if _, err := strconv.ParseUint(words[2], 10, 31); err != nil {
			return "no number"
		}
	case words[1] == "connect" || words[1] == "send" || words[1] == "recv" || words[1] == "bind":
		if _, err := parsePeer(words[2]); err != nil {
			return err.Error()
		}
	}
	return ""
}

// peer is an endpoint as a socket names it.
type peer struct {
	text string // as written
	unix string // a path, or @ and a name; or else:
	addr netip.AddrPort
	udp  bool
}

func parsePeer(text string) (peer, error) {
	p := peer{text: text}
	if name, ok := strings.CutPrefix(text, "unix:"); ok {
		p.unix = name
		return p, nil
	}
	plain, udp := strings.CutSuffix(text, "/udp")
	var err error
	if p.addr, err = netip.ParseAddrPort(strings.TrimSuffix(plain, "/tcp")); err != nil {
		return p, fmt.Errorf("%s is known by its name only", text)
	}
	p.udp = udp
	return p, nil
}

// words name the endpoint to an actor.
func (p peer) words() []string {
	if p.unix != "" {
		return []string{"unix", p.unix, "0"}
	}
	return []string{"inet", p.addr.Addr().String(), strconv.Itoa(int(p.addr.Port()))}
}

func (p peer) kind() string {
	if p.udp {
		return "udp"
	}
	return "tcp"
}
