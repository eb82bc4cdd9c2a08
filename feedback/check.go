// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
)

// Allow is the effect of what is not refused; nothing is fed back of it.
const Allow Effect = "allow"

// Bounds of what can be asked.
const (
	maxCheckArgs = 256
	maxCheckBody = 128 << 10
	checkTokens  = 20 // what it weighs in the bucket
)

// CheckRequest is the body of POST /v1/check: would this be allowed to who asks, now?
type CheckRequest struct {
	Operation string `json:"operation"` // as the policy language names it
	// Object is an absolute path, links resolved, or ADDRESS:PORT or unix:PATH.
	Object string   `json:"object"`
	Args   []string `json:"args,omitempty"` // of an exec, without the program's own name
	// Depth asks for an ancestor of who asks: so many above it.
	Depth int `json:"depth,omitempty"`
}

// Checked is its answer. The operation itself is decided on afresh.
type Checked struct {
	Allowed  bool   `json:"allowed"`
	Effect   Effect `json:"effect"`
	Rule     string `json:"rule,omitempty"`
	Because  string `json:"because,omitempty"`
	Clause   string `json:"clause,omitempty"`
	Position string `json:"position,omitempty"`
	Message  string `json:"message"`
	// Unseen tells what was not looked at.
	Unseen string `json:"unseen"`
}

const unseen = "Decided by the reference model of the policy, with the labels, the gates and the lineage that the kernel has of the process now; " +
	"not looked at: labels and changes that the file itself carries, and what people granted."

// NewChecked puts a decision into words. Its Item is the operation as if it had happened.
func NewChecked(request CheckRequest, item Item) Checked {
	out := Checked{
		Allowed: item.Effect == Allow || item.Effect == Notify, Effect: item.Effect, Rule: item.Rule,
		Because: cut(item.Because, maxRawText), Clause: cut(item.Clause, maxRawText), Position: item.ClausePosition, Unseen: unseen,
	}
	var b strings.Builder
	b.WriteString("ActPlane policy: ")
	item.writeOperation(&b)
	switch item.Effect {
	case Allow:
		b.WriteString(" would be allowed: no rule refuses it.")
	case Notify:
		b.WriteString(" would be allowed and noted, by " + item.reason())
	case Ask:
		b.WriteString(" would need a person's approval, by " + item.reason())
	case Kill:
		b.WriteString(" would be blocked and its process killed, by " + item.reason())
	default:
		b.WriteString(" would be blocked, by " + item.reason() + item.others())
	}
	out.Message = b.String()
	return out
}

func (s *Server) serveCheck(w http.ResponseWriter, r *http.Request, peer Process) {
	var request CheckRequest
	if !s.read(w, r, maxCheckBody, &request, `{"operation":"write","object":"/path"}`) {
		return
	}
	switch {
	case len(request.Args) > maxCheckArgs:
		s.fail(w, http.StatusBadRequest, "there are too many args")
		return
	case request.Depth < 0 || request.Depth > len(peer.Ancestors):
		s.fail(w, http.StatusBadRequest, "so far above who asks no ancestor is known")
		return
	}
	s.bucket.charge(checkTokens)
	answer, err := s.scope.Check(r.Context(), peer, request)
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.answer(w, http.StatusOK, answer)
}

// ResolveObject makes the object of an operation that a person or a model would name the
// one that the kernel would see: a program is looked for, a path made absolute, and its links
// are resolved as far as it is there. Addresses stay.
func ResolveObject(operation, object string) string {
	switch operation {
	case "connect", "bind", "send", "recv":
		return object
	case "exec":
		if found, err := exec.LookPath(object); err == nil {
			object = found
		}
	}
	object, err := filepath.Abs(object)
	if err != nil {
		return object
	}
	if operation != "unlink" { // which takes the name itself
		if real, err := filepath.EvalSymlinks(object); err == nil {
			return real
		}
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(object)); err == nil {
		return filepath.Join(folder, filepath.Base(object))
	}
	return object
}
