# SPDX-License-Identifier: Apache-2.0
#
# An approver for the Open Policy Agent, at http://127.0.0.1:8181/v1/data/actplane/decision
# with `format: opa`. Where no rule says anything, a person is asked.

package actplane

decision := {"decision": "deny", "because": "Nothing is installed from outside of the registry."} if {
	input.rule == "install"
	some word in input.args
	contains(word, "://")
} else := {"decision": "grant", "for": "1h"} if {
	input.rule == "install"
	not input.args_cut
	not input.inexact
	input.object == "/usr/bin/npm"
	input.args == ["npm", "ci"]
}
