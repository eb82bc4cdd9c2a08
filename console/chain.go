// SPDX-License-Identifier: Apache-2.0

package console

import (
	"time"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/feedback"
)

// Chain is how the labels of an event came to its process.
func Chain(e *api.Event) []feedback.Origin {
	var chain []feedback.Origin
	for _, o := range e.Chain {
		origin := feedback.Origin{Label: o.Label, Gate: o.Gate, Unrecorded: o.Unrecorded, Left: int(o.Left), Steps: []feedback.Step{}}
		for _, s := range o.Steps {
			step := feedback.Step{
				Way: feedback.Way(s.Way), Source: s.Source, Object: s.Object, Cut: s.ObjectCut, Program: s.Program, Process: s.Process,
				PID: int(s.PidInside), HostPID: int(s.Pid), Self: s.Self, Earlier: s.Earlier, Thing: s.Thing, Signal: int(s.Signal),
			}
			if s.Status != nil {
				status := int(*s.Status)
				step.Status = &status
			}
			if s.TimeUnixMs != 0 {
				step.Time = time.UnixMilli(s.TimeUnixMs).UTC()
			}
			origin.Steps = append(origin.Steps, step)
		}
		chain = append(chain, origin)
	}
	return chain
}

// Parents are the processes above that of an event, nearest first.
func Parents(e *api.Event) []feedback.Parent {
	var parents []feedback.Parent
	for _, p := range e.Parents {
		parents = append(parents, feedback.Parent{Program: p.Program, PID: int(p.PidInside), HostPID: int(p.Pid)})
	}
	return parents
}
