// SPDX-License-Identifier: Apache-2.0

package compare

// budget bounds the work of a whole comparison, whatever the policies are: in steps and
// not in time, so that the same policies have the same result everywhere. A step is
// a few nanoseconds.
type budget struct{ left int }

// The work of the search, and that of finding traces for what it found.
const (
	searchSteps = 3 << 28
	showSteps   = 1 << 28
	// decideSteps is what holding a clause against an event costs in package model.
	decideSteps = 32
)

// spend takes steps; it returns false when there are none left.
func (b *budget) spend(steps int) bool {
	b.left -= steps
	return b.left > 0
}

// spent tells whether there are no steps left.
func (b *budget) spent() bool { return b.left <= 0 }
