// SPDX-License-Identifier: Apache-2.0

// Package approver asks the programs and endpoints of the host's configuration about
// requests, before a person is asked.
//
// Each of them may grant, deny, pass on or warn. They are asked in order, and the
// strictest wins: one denial is a denial, whoever else grants, and nobody is asked after
// it; a grant is one only when nobody denies; if all pass, a person is asked. Whatever is
// no answer (a failure, a time-out, an answer that nobody understands) is a denial.
package approver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/approval"
	"github.com/actplane/actplane/internal/hostcall"
)

// For how long an answer holds where an approver does not say. Failures pass: what was
// denied for one may be asked about again soon.
const (
	defaultTime = 10 * time.Minute
	failureTime = time.Minute
)

// concurrency is how many requests one approver is asked about at a time.
const concurrency = 8

// Decision is what an approver says.
type Decision string

// The decisions, the least strict first.
const (
	Pass  Decision = "pass"
	Grant Decision = "grant"
	Deny  Decision = "deny"
)

// Verdict is what all approvers together say.
type Verdict struct {
	Decision Decision
	By       string // who grants or denies; of several their names with commas
	Because  string // of a denial: for the agent
	Warnings []Warning
	// For is how long a grant or denial holds. Once: a grant for one operation in it.
	For  time.Duration
	Once bool
}

// Warning is what an approver warns of.
type Warning struct{ Approver, Text string }

// Chain is the approvers of a host, in order. Its methods may be called concurrently.
type Chain struct {
	links atomic.Pointer[[]link]
	peer  hostcall.Peer
	log   *logrus.Entry
}

type link struct {
	approval.Approver
	caller *hostcall.Caller
	room   chan struct{}
}

// New makes a chain of approvers that were checked. Without any it asks nobody. Who answers
// at a URL or socket is looked at by peer, if that is not nil.
func New(approvers []approval.Approver, peer hostcall.Peer, log *logrus.Entry) (*Chain, error) {
	c := &Chain{peer: peer, log: log}
	return c, c.Replace(approvers)
}

// Replace puts other approvers, which were checked, in the place of those that there are.
// Those who are being asked at this moment are heard to the end. After an error all is as
// it was.
func (c *Chain) Replace(approvers []approval.Approver) error {
	links := make([]link, 0, len(approvers))
	for _, a := range approvers {
		caller, err := hostcall.New(a.Target, c.peer)
		if err != nil {
			return fmt.Errorf("approver %q: %w", a.Name, err)
		}
		links = append(links, link{a, caller, make(chan struct{}, concurrency)})
	}
	c.links.Store(&links)
	return nil
}

// now are the links that there are; a nil chain has none.
func (c *Chain) now() []link {
	if c == nil || c.links.Load() == nil {
		return nil
	}
	return *c.links.Load()
}

// Asks tells whether any approver is asked about an operation under a rule in a
// container. A nil chain asks about nothing.
func (c *Chain) Asks(rule, operation, container string) bool {
	links := c.now()
	return slices.ContainsFunc(links, func(l link) bool { return l.Asks(rule, operation, container) })
}

// Ask asks about a request. When ctx ends before they have answered, the verdict says
// nothing and the error is the context's.
func (c *Chain) Ask(ctx context.Context, request *api.RequestDocument) (Verdict, error) {
	v := Verdict{Decision: Pass}
	links := c.now()
	for i := range links {
		l := &links[i]
		if !l.Asks(request.Rule, request.Operation, request.Name) {
			continue
		}
		said := l.ask(ctx, request, c.log)
		if err := ctx.Err(); err != nil {
			return Verdict{}, err
		}
		if v.add(l.Name, said); v.Decision == Deny {
			break
		}
	}
	return v, nil
}

// add adds what one approver says. Of several grants the tightest holds.
func (v *Verdict) add(name string, said answer) {
	if said.Warning != "" {
		v.Warnings = append(v.Warnings, Warning{name, said.Warning})
	}
	switch {
	case said.Decision == Deny:
		v.Decision, v.By, v.Because, v.For, v.Once = Deny, name, said.Because, said.during, false
	case said.Decision == Grant && v.Decision != Grant:
		v.Decision, v.By, v.Because, v.For, v.Once = Grant, name, said.Because, said.during, said.Once
	case said.Decision == Grant:
		v.By += ", " + name
		v.For, v.Once = min(v.For, said.during), v.Once || said.Once
		v.Because = strings.TrimSpace(v.Because + " " + said.Because)
	}
}

// ask asks one approver; what goes wrong is a denial.
func (l *link) ask(ctx context.Context, request *api.RequestDocument, log *logrus.Entry) answer {
	said, err := l.call(ctx, request)
	if err == nil {
		return said
	}
	if ctx.Err() == nil {
		log.WithField("request", request.ID).WithField("approver", l.Name).WithError(err).Warn("an approver gave no answer, which denies")
	}
	return answer{Decision: Deny, Because: "an approver on the host gave no answer that it could be granted by; it can be asked again later", during: failureTime}
}

func (l *link) call(ctx context.Context, request *api.RequestDocument) (answer, error) {
	select {
	case l.room <- struct{}{}:
		defer func() { <-l.room }()
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	var input any = request
	if l.Format == approval.OPA {
		input = map[string]any{"input": request}
	}
	text, err := json.Marshal(input)
	if err != nil {
		return answer{}, fmt.Errorf("encode request: %w", err)
	}
	output, err := l.caller.Call(ctx, text, nil)
	if err != nil {
		return answer{}, err
	}
	if l.Format == approval.OPA {
		return readOPA(output)
	}
	return readAnswer(output)
}
