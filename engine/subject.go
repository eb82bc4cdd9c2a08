// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/actplane/actplane/engine/kernel"

// maxAncestors bounds how many processes above one that asks are told of.
const maxAncestors = 16

// subject is what the engine sees of who asks, beside what the kernel reports.
type subject struct {
	// Directory is the working directory, as the container sees it. It is looked up a
	// moment later, and left out if it is not the one that the kernel reports.
	Directory string `json:",omitempty"`
	// Ancestors are the processes above in the container, nearest first, as they were
	// that moment later: no answer is bound to them.
	Ancestors []ancestor `json:",omitempty"`
}

type ancestor struct {
	PID  int
	Comm string
}

// subjectOf looks at who asks. What cannot be seen is left out.
func (e *Engine) subjectOf(s *scope, rec kernel.Record) subject {
	var out subject
	h, pid := e.config.host, rec.PID
	dir, file, err := h.WorkingDirectory(pid)
	if file.Generation = rec.Directory.Generation; err == nil && file == rec.Directory {
		out.Directory = dir
	}
	cgroup := s.now().Cgroup
	for range maxAncestors {
		parent, err := h.Parent(pid)
		if err != nil || parent <= 1 {
			break
		}
		if dir, err := h.Cgroup(parent); err != nil || cgroup == "" || !within(dir, cgroup) {
			break
		}
		comm, err := h.Comm(parent)
		if err != nil {
			break
		}
		out.Ancestors = append(out.Ancestors, ancestor{PID: parent, Comm: comm})
		pid = parent
	}
	return out
}
