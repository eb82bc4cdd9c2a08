// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/actplane/actplane/feedback"
)

// maxJournal bounds a scope's journal, which lies in memory (/run is a tmpfs):
// the newest half stays when it is full.
const maxJournal = 4 << 20

// history keeps a scope's newest events, in memory and in a journal from which
// the next daemon continues: numbers go on and nobody is told twice.
type history struct {
	*feedback.Log

	mu      sync.Mutex
	journal journal // guarded by mu
	// fault is why a journal that was taken over is not continued.
	fault error
	lost  uint64 // guarded by mu; the slot's lost records told of so far
}

// entry is a line of the journal.
type entry struct {
	Item feedback.Item
	// Lost is the slot's count of lost records up to here.
	Lost uint64
}

func journalOf(dir string) journal {
	return journal{path: filepath.Join(dir, "events.jsonl"), limit: maxJournal}
}

// newHistory starts a journal in dir that goes on after items, or, without any, after
// the number last.
func newHistory(dir string, items []feedback.Item, last uint64) (*history, error) {
	h := &history{journal: journalOf(dir), Log: logOf(items, last)}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h, h.rewrite()
}

// loadHistory takes over the journal of an earlier daemon; an empty one goes on after
// the number last.
func loadHistory(dir string, last uint64) (*history, error) {
	h := &history{journal: journalOf(dir)}
	var items []feedback.Item
	err := readJournal(h.journal.path, func(line []byte) error {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err // it was never shown
		}
		items = append(items, e.Item)
		h.lost = e.Lost
		return nil
	})
	if err != nil {
		return nil, err
	}
	h.Log = logOf(items, last)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = h.rewrite()
	return h, nil
}

// logOf keeps items under the numbers they have; without any, the next is last+1.
func logOf(items []feedback.Item, last uint64) *feedback.Log {
	items = items[max(0, len(items)-feedback.LogSize):]
	if len(items) == 0 {
		return feedback.NewLog(feedback.LogSize, last)
	}
	log := feedback.NewLog(feedback.LogSize, items[0].Sequence-1)
	for _, item := range items {
		log.Append(item)
	}
	return log
}

// add numbers and keeps an item. lost is the slot's count of lost records; what
// is new in it is told with the item. An error is of the journal: the item is
// kept in memory all the same.
func (h *history) add(item feedback.Item, lost uint64) (feedback.Item, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if lost < h.lost {
		h.lost = 0 // another slot
	}
	if item.Lost = lost - h.lost; item.Unrecorded > 0 {
		item.Lost = 0 // it tells itself
	}
	h.lost = lost
	item.Sequence = h.Last() + 1
	err := h.write(entry{Item: item, Lost: lost})
	return h.Append(item), err
}

// told is up to which of the slot's lost records all is told.
func (h *history) told() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

func (h *history) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	full, err := h.journal.append(line)
	if err != nil || !full {
		return err
	}
	if err := h.rewrite(); err != nil {
		return err
	}
	_, err = h.journal.append(line)
	return err
}

// rewrite writes the journal anew, with as many of the newest items as fill
// half of it, and opens it. mu is held.
func (h *history) rewrite() error {
	var lines [][]byte
	size := 0
	items := h.Items(0)
	for i := len(items) - 1; i >= 0; i-- {
		line, err := json.Marshal(entry{Item: items[i], Lost: h.lost})
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		if size += len(line) + 1; size > maxJournal/2 && len(lines) > 0 {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return h.journal.replace(lines)
}

// close ends the journal; the items stay in memory.
func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.journal.close()
}
