// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"strings"
	"testing"
)

// A container whose policy says what the engine cannot enforce is refused, and
// never started under less than its policy.
func TestUnenforcedPolicyIsRefused(t *testing.T) {
	for text, code := range map[string]string{
		"rule r:\n    block send \"*.github.com\"":  "P501",
		"rule r:\n    block connect \"github.com\"": "P501",
	} {
		_, err := compile([]document{{name: "p.yaml", check: "p.yaml", text: []byte("version: 1\npolicy: |\n  " + text + "\n"), layer: operator}}, "/w", nil)
		if err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: err = %v", text, err)
		}
	}
}
