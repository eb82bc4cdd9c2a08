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
	why := ""
	for _, candidate := range initCandidates {
		s := model.New(c.Program)
		d, err := s.Do([]string{"init", "exec", candidate})
		switch first := s.Process("init"); {
		case err != nil:
			return "", err
		case slices.ContainsFunc(c.Files, func(f model.Found) bool { return f.Path == candidate }):
			why = "it uses " + candidate
		case d.Effect != ir.Allow:
			why = fmt.Sprintf("running it is %s", d)
		case first.Labels != 0 || first.Lineage != 0:
			why = "running it leaves " + s.LabelNames(first.Labels)
		default:
			return candidate, nil
		}
	}
	return "", fmt.Errorf("every process of a container comes from its first program, and %s", why)
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
	s := model.New(c.Program)
	parents := map[string]string{}
	dead := map[string]bool{}
	for _, step := range c.Steps {
		if why := impossibleStep(step.Words); why != "" {
			return fmt.Sprintf("%s: %s", step.Text, why)
		}
		subject := step.Words[0]
		if dead[subject] {
			// It starts again from its parent.
			from, now := s.Process(parents[subject]), s.Process(subject)
			if parents[subject] == "" {
				from = &model.Process{}
			}
			if from.Labels != now.Labels || from.Lineage != now.Lineage {
				return step.Text + ": who was killed comes from its parent again, which has other labels"
			}
			dead[subject] = false
		}
		if step.Words[1] == "fork" {
			parents[step.Words[2]] = subject
		}
		d, err := s.Do(step.Words)
		if err != nil {
			return err.Error()
		}
		if isRestart(step.Words) {
			// All come from the first program again.
			clear(parents)
			clear(dead)
			if d, err := s.Do([]string{"init", "exec", first}); err != nil || d.Effect != ir.Allow {
				return fmt.Sprintf("%s: every process comes from the first program again, and running it is %s", step.Text, d)
			}
			continue
		}
		dead[subject] = d.Effect == ir.Kill
	}
	return ""
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
