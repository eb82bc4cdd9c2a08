// SPDX-License-Identifier: Apache-2.0

package agentfiles

import "strings"

// script is an agent's plugin: what all of them share, and its own part.
func script(agent, own string) string {
	return strings.NewReplacer("GUEST", Guest, "AGENT", agent).Replace(askSource) + own
}
