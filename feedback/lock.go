// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"time"
)

// lock says that the scope was locked, or is not any more.
func (i Item) lock() string {
	if i.Outcome == Locked {
		return "an operator locked this container: everything that its programs do is refused until it is unlocked, whatever the policy says" + i.said()
	}
	text := "an operator unlocked this container"
	if !i.Since.IsZero() {
		text += ", which was locked since " + i.Since.UTC().Format(time.RFC3339)
	}
	return text + fmt.Sprintf("; %d operations were refused meanwhile, and can be tried again", i.Refused) + i.said()
}
