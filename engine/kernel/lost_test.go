// SPDX-License-Identifier: Apache-2.0

package kernel

import "testing"

// Of records that nobody reads in time it is known which clause decided, and how often.
func TestLostRecordsAreCountedByClause(t *testing.T) {
	tiers(t, func(t *testing.T, tier Tier) {
		b := newBench(t, tier, `
rule one:
  block read file "$D/one"
rule two:
  block read file "$D/two"
`)
		one, two := b.file("one"), b.file("two")
		b.stopRecords() // nobody reads
		const many = 20_000
		b.actor().want("EPERM", "repeat", "20000", one)
		b.actor().want("EPERM", "repeat", "20", two)
		stats, err := b.k.Stats(b.slot)
		if err != nil || stats.Denied != many+20 || stats.Lost == 0 {
			t.Fatalf("%+v %v", stats, err)
		}
		lost, err := b.k.TakeLost(b.slot)
		if err != nil {
			t.Fatal(err)
		}
		var sum uint64
		counts := map[string]uint64{}
		for _, l := range lost {
			sum += l.Count
			counts[b.policy.Program.Rules[b.policy.Image.Clauses[l.Clause].Rule].Name] += l.Count
		}
		if sum != stats.Lost || counts["two"] != 20 || counts["one"] != stats.Lost-20 {
			t.Errorf("%d were lost, and told are %v", stats.Lost, counts)
		}
		if again, err := b.k.TakeLost(b.slot); err != nil || len(again) != 0 {
			t.Errorf("told again: %v %v", again, err)
		}
		b.readRecords()
		for range many + 20 - int(stats.Lost) {
			b.record()
		}
	})
}
