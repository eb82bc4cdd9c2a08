// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/actplane/actplane/engine/kernel"
)

// Bounds of what is kept of one scope. What a process in it chooses is in both: the
// number of passages, and their names.
const (
	maxPassages       = 2048
	maxProvenanceFile = 4 << 20
)

// passage is one record of how a label came to where it is. Earlier ones are of earlier
// starts of the container: their processes are gone, and their files may have other
// numbers of devices.
type passage struct {
	kernel.Gain
	Earlier bool `json:",omitempty"`
}

// provenance is what is known of how the labels of a scope came to its processes and
// files: a graph, of whose passages the newest are kept. When there are too many, it is
// those of which there are most alike that make room, so that a flood of one kind leaves
// the others. It lies in a file as well, from which the next daemon goes on.
type provenance struct {
	mu       sync.Mutex
	passages []passage // oldest first; guarded by mu
	journal  journal   // guarded by mu
	// Indexes into passages, oldest first; guarded by mu.
	processes map[kernel.ProcessID][]int // what came to a process
	objects   map[kernel.FileID][]int    // what came to a file or channel
	before    map[earlierFile][]int      // what came to a file in an earlier start
	actors    map[kernel.ProcessID]int   // the newest passage by which a process is known
	gates     map[int][]int              // what became of a gate
}

// earlierFile is by what a file of an earlier start is known again.
type earlierFile struct {
	inode      uint64
	generation uint32
	name       string
}

// newProvenance goes on with the passages of an earlier start of the container.
func newProvenance(dir string, earlier []passage) (*provenance, error) {
	p := &provenance{journal: journal{path: provenancePath(dir), limit: maxProvenanceFile}}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, old := range earlier {
		if old.Gate == 0 && old.Gives && old.Other == 0 && old.Object != "" { // of a file with a name
			old.Earlier = true
			p.passages = append(p.passages, old)
		}
	}
	p.index()
	return p, p.rewrite()
}

// loadProvenance takes over what an earlier daemon has kept.
func loadProvenance(dir string) (*provenance, error) {
	p := &provenance{journal: journal{path: provenancePath(dir), limit: maxProvenanceFile}}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := readJournal(p.journal.path, func(line []byte) error {
		var next passage
		if err := json.Unmarshal(line, &next); err != nil {
			return err
		}
		p.passages = append(p.passages, next)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load provenance: %w", err)
	}
	p.thin()
	p.index()
	return p, p.rewrite()
}

func provenancePath(dir string) string { return filepath.Join(dir, "provenance.jsonl") }

// list copies what is kept.
func (p *provenance) list() []passage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.passages)
}

// add keeps a gain. An error is of the file: it is kept in memory all the same.
func (p *provenance) add(g kernel.Gain) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passages = append(p.passages, passage{Gain: g})
	if len(p.passages) > maxPassages {
		p.thin()
		p.index()
		return p.rewrite()
	}
	p.note(len(p.passages) - 1)
	line, err := json.Marshal(p.passages[len(p.passages)-1])
	if err != nil {
		return fmt.Errorf("encode provenance: %w", err)
	}
	if full, err := p.journal.append(line); err != nil || !full {
		return err
	}
	return p.rewrite()
}

func (p *provenance) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.journal.close()
}

// rewrite writes the file anew. mu is held.
func (p *provenance) rewrite() error {
	lines := make([][]byte, 0, len(p.passages))
	for _, next := range p.passages {
		line, err := json.Marshal(next)
		if err != nil {
			return fmt.Errorf("encode provenance: %w", err)
		}
		lines = append(lines, line)
	}
	return p.journal.replace(lines)
}

// alike is what passages have in common that make room for one another.
type alike struct {
	gives   bool
	way     kernel.Way
	labels  uint64
	from    kernel.FileID
	name    string // where from has no number
	process kernel.ProcessID
	gate    kernel.GateMove
}

func (p passage) alike() alike {
	kind := alike{gives: p.Gives, way: p.Way, labels: p.Labels, gate: p.Gate}
	switch {
	case p.Gate != 0: // all that do it to one gate
	case p.Gives: // one process that writes everywhere
		kind.process = p.Process.ID
	case p.Other != 0:
		kind.process = p.Other
	default: // all who read one thing
		kind.from = p.Objects[0]
		if kind.from == (kernel.FileID{}) {
			kind.name = p.Object
		}
	}
	return kind
}

// thin makes room when there are too many: of each kind the newest stay, as many as leave
// a quarter free. mu is held.
func (p *provenance) thin() {
	if len(p.passages) <= maxPassages {
		return
	}
	const target = maxPassages * 3 / 4
	sizes := map[alike]int{}
	for _, next := range p.passages {
		sizes[next.alike()]++
	}
	each := target
	for left := len(p.passages); left > target && each > 1; {
		each /= 2
		left = 0
		for _, size := range sizes {
			left += min(size, each)
		}
	}
	kept := p.passages[:0:0]
	for _, next := range p.passages {
		kind := next.alike()
		if sizes[kind] > each {
			sizes[kind]--
			continue
		}
		kept = append(kept, next)
	}
	p.passages = slices.Clone(kept[max(0, len(kept)-target):])
}

// index makes the indexes anew. mu is held.
func (p *provenance) index() {
	p.processes, p.objects = map[kernel.ProcessID][]int{}, map[kernel.FileID][]int{}
	p.before, p.actors = map[earlierFile][]int{}, map[kernel.ProcessID]int{}
	p.gates = map[int][]int{}
	for i := range p.passages {
		p.note(i)
	}
}

// note puts a passage into the indexes. mu is held.
func (p *provenance) note(i int) {
	next := &p.passages[i]
	switch {
	case next.Earlier:
		key := earlierFile{next.Objects[0].Inode, next.Objects[0].Generation, next.Object}
		p.before[key] = append(p.before[key], i)
		return // its processes are others
	case next.Gate != 0:
		p.noteGates(i)
	case !next.Gives:
		p.processes[next.Process.ID] = append(p.processes[next.Process.ID], i)
	case next.Other != 0:
		p.processes[next.Other] = append(p.processes[next.Other], i)
	default:
		p.objects[next.Objects[0]] = append(p.objects[next.Objects[0]], i)
	}
	p.actors[next.Process.ID] = i
}

// newest is the last of passages, given by their indexes, that brought a label and was
// not after a time. mu is held.
func (p *provenance) newest(indexes []int, label uint64, at time.Time) *passage {
	for _, i := range slices.Backward(indexes) {
		if next := &p.passages[i]; next.Labels&label != 0 && !next.Time.After(at) {
			return next
		}
	}
	return nil
}

// toProcess is how a label came to a process, or to the nearest of its ancestors that is
// known to have gained it. mu is held.
func (p *provenance) toProcess(who bearer, label uint64, at time.Time) (found *passage, inherited bool) {
	if found = p.newest(p.processes[who.id], label, at); found != nil {
		return found, false
	}
	at = earliest(at, who.started)
	for _, ancestor := range who.ancestors {
		if found = p.newest(p.processes[ancestor], label, at); found != nil {
			return found, true
		}
	}
	return nil, false
}

// toObject is how a label came to what a process took it from. mu is held.
func (p *provenance) toObject(objects [2]kernel.FileID, name string, label uint64, at time.Time) *passage {
	var found *passage
	for _, object := range objects {
		if object == (kernel.FileID{}) {
			continue
		}
		next := p.newest(p.objects[object], label, at)
		if next == nil {
			next = p.newest(p.before[earlierFile{object.Inode, object.Generation, name}], label, at)
		}
		if next != nil && (found == nil || next.Time.After(found.Time)) {
			found = next
		}
	}
	return found
}

// bearer is a process as far as looking for its labels needs it.
type bearer struct {
	id        kernel.ProcessID
	ancestors []kernel.ProcessID
	started   time.Time // zero is unknown
}

func (p passage) actor() bearer {
	return bearer{p.Process.ID, p.Process.Ancestors, p.Started}
}

// known is what is known of a process by what it has done. mu is held.
func (p *provenance) known(id kernel.ProcessID) (*passage, bearer) {
	i, ok := p.actors[id]
	if !ok {
		return nil, bearer{id: id}
	}
	return &p.passages[i], p.passages[i].actor()
}

// earliest is the earlier of two times, of which zero is unknown.
func earliest(a, b time.Time) time.Time {
	if b.IsZero() || cmp.Compare(a.UnixNano(), b.UnixNano()) < 0 {
		return a
	}
	return b
}
