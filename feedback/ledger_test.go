// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"
)

// newTestLedger hands out pages of a log; now is what the ledger takes for now.
func newTestLedger(items int) (l *ledger, read func(after, upTo uint64) Page, log *Log, now *time.Time) {
	log = NewLog(LogSize, 0)
	for range items {
		log.Append(push())
	}
	now = new(time.Time)
	l = &ledger{cursors: NewMemoryCursors(), leases: map[string][]lease{}, now: func() time.Time { return *now }}
	read = func(after, upTo uint64) Page {
		return newPage(log.Items(after), after, upTo, func(Item) bool { return true })
	}
	return l, read, log, now
}

func mustTake(t *testing.T, l *ledger, consumer string, read func(after, upTo uint64) Page, want ...uint64) Page {
	t.Helper()
	page, err := l.take(consumer, read)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, entry := range page.Items {
		got = append(got, entry.Sequence)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got items %v, want %v", got, want)
	}
	return page
}

func TestLedgerDeliversOnce(t *testing.T) {
	l, read, log, now := newTestLedger(2)
	mustTake(t, l, "a", read, 1, 2)
	mustTake(t, l, "a", read) // on lease
	mustTake(t, l, "b", read, 1, 2)
	if !l.acknowledge("a", 2) {
		t.Fatal("acknowledgement refused")
	}
	*now = now.Add(time.Hour)
	mustTake(t, l, "a", read)
	mustTake(t, l, "b", read, 1, 2) // never acknowledged
	log.Append(push())
	mustTake(t, l, "a", read, 3)
	if !l.acknowledge("a", 1) || l.acknowledge("a", 4) || l.acknowledge("nobody", 1) {
		t.Error("an old acknowledgement is fine, and one of what was not handed out is not")
	}
}

func TestLedgerHandsOutAgainWhatIsNotAcknowledged(t *testing.T) {
	l, read, log, now := newTestLedger(2)
	mustTake(t, l, "a", read, 1, 2)
	log.Append(push())
	mustTake(t, l, "a", read, 3)
	if !l.acknowledge("a", 3) { // the second hook is done, the first one is not
		t.Fatal("acknowledgement refused")
	}
	*now = now.Add(leaseTime)
	mustTake(t, l, "a", read, 1, 2)
	if !l.acknowledge("a", 2) {
		t.Fatal("acknowledgement refused")
	}
	*now = now.Add(leaseTime)
	mustTake(t, l, "a", read)
	if got := l.cursors.Cursor("a"); got != 3 {
		t.Errorf("cursor is %d", got)
	}
	if len(l.leases) != 0 {
		t.Errorf("leases stay: %v", l.leases)
	}
}

func TestLedgerTakesPartialAcknowledgement(t *testing.T) {
	l, read, _, _ := newTestLedger(5)
	mustTake(t, l, "a", read, 1, 2, 3, 4, 5)
	if !l.acknowledge("a", 3) {
		t.Fatal("acknowledgement refused")
	}
	mustTake(t, l, "a", read, 4, 5) // at once: the text had no room for them
	mustTake(t, l, "a", read)
}

func TestLedgerPassesOverOtherTrees(t *testing.T) {
	l, read, _, now := newTestLedger(3)
	mustTake(t, l, "a", read, 1, 2, 3)
	*now = now.Add(leaseTime)
	nothing := func(after, upTo uint64) Page {
		page := read(after, upTo)
		page.Items = nil
		return page
	}
	mustTake(t, l, "a", nothing)
	mustTake(t, l, "a", read)
}

func TestLedgerIsBounded(t *testing.T) {
	l, read, log, now := newTestLedger(0)
	for i := range maxLeases {
		log.Append(push())
		mustTake(t, l, "a", read, uint64(i+1))
	}
	log.Append(push())
	if _, err := l.take("a", read); err == nil {
		t.Error("one lease too many")
	}
	for i := range maxConsumers - 1 {
		if _, err := l.take(fmt.Sprint("b", i), read); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.take("c", read); err == nil {
		t.Error("one consumer too many")
	}
	*now = now.Add(leaseTime)
	if _, err := l.take("c", read); err != nil {
		t.Errorf("room was not made: %v", err)
	}
	// Acknowledgements in odd places do not splinter a lease without end.
	for range 1000 {
		log.Append(push())
	}
	for cursor := uint64(1); cursor < math.MaxInt16; cursor += 2 {
		l.acknowledge("c", cursor)
		if len(l.leases["c"]) > 4*maxLeases {
			t.Fatal("too many leases")
		}
	}
}

func TestMemoryCursorsForgetTheLeastRecentlyUsed(t *testing.T) {
	m := NewMemoryCursors()
	m.SetCursor("kept", 7)
	for i := range 10 * maxConsumers {
		m.SetCursor(fmt.Sprint(i), 1)
		if m.Cursor("kept") != 7 {
			t.Fatal("the consumer in use was forgotten")
		}
	}
	if len(m.cursors) != maxConsumers || len(m.order) != maxConsumers || m.Cursor("0") != 0 {
		t.Errorf("%d cursors, %d in order", len(m.cursors), len(m.order))
	}
}

// Many hooks of one session at once: each item comes to exactly one of them.
func TestLedgerAtOnce(t *testing.T) {
	l, read, log, _ := newTestLedger(0)
	const total = 2000
	counts := make([]int, total+1)
	var mu sync.Mutex
	var hooks sync.WaitGroup
	finished := make(chan struct{})
	for range 8 {
		hooks.Go(func() {
			for {
				page, err := l.take("session", read)
				if err != nil {
					continue
				}
				mu.Lock()
				for _, entry := range page.Items {
					counts[entry.Sequence]++
				}
				mu.Unlock()
				if len(page.Items) > 0 {
					l.acknowledge("session", page.Cursor)
					continue
				}
				select {
				case <-finished:
					if page.Cursor == total {
						return
					}
				default:
				}
			}
		})
	}
	for range total {
		log.Append(push())
	}
	close(finished)
	hooks.Wait()
	for sequence, count := range counts[1:] {
		if count != 1 {
			t.Fatalf("item %d was delivered %d times", sequence+1, count)
		}
	}
}
