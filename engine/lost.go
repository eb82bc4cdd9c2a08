// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/actplane/actplane/engine/kernel"
)

// tellLost puts records that the kernel had no room for among the scope's events: one
// for each rule that decided, with how many there were, so that the agent is told at
// least why. What they were about is not known.
func (e *Engine) tellLost(s *scope) {
	r := s.now()
	if r.Slot == nil {
		return
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	stats, err := e.config.Kernel.Stats(*r.Slot)
	if err != nil || stats.Lost <= s.events.told() {
		return
	}
	lost, err := e.config.Kernel.TakeLost(*r.Slot)
	if err != nil {
		e.log.WithFields(s.fields()).WithError(err).Warn("rules of lost records are not known")
	}
	slices.SortFunc(lost, func(a, b kernel.LostRecord) int { return a.Clause - b.Clause })
	for _, l := range lost {
		l.Time = e.config.now()
		item := s.item(l.Record)
		item.Unrecorded = l.Count
		item, err := s.events.add(item, s.events.told()+l.Count)
		if err != nil {
			e.log.WithFields(s.fields()).WithError(err).Warn("event will not survive a restart")
		}
		// The kernel has not counted it among those that it sent.
		if err := s.change(func(r *record) { r.Base.Sequence++ }); err != nil {
			e.log.WithFields(s.fields()).WithError(err).Warn("save scope")
		}
		e.hub.publish(s, item)
	}
}
