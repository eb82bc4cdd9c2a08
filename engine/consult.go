// SPDX-License-Identifier: Apache-2.0

package engine

// viaApprover is how an answer came that a program on the host gave.
const viaApprover = "approver"

// consulted is how far the approvers are with a request.
type consulted string

const (
	notConsulted consulted = ""        // no approver is asked about it
	toConsult    consulted = "pending" // they are to be asked, or are being asked
	wasConsulted consulted = "done"    // they have left it to a person, or answered
)

func (c consulted) busy() bool { return c == toConsult }

// warning is what an approver wants whoever decides to know.
type warning struct{ Approver, Text string }

func (w warning) String() string { return "approver " + w.Approver + ": " + w.Text }

func warningTexts(warnings []warning) (texts []string) {
	for _, w := range warnings {
		texts = append(texts, w.String())
	}
	return texts
}

// consult tells whether approvers are to be asked about a request.
func (e *Engine) consult(s *scope, r *request) consulted {
	return notConsulted
}
