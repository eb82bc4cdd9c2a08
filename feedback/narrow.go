// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// For whom rules are added.
const (
	ForProcess   = "process"   // who asks, and what it starts from then on
	ForContainer = "container" // everything in it, also after it has been started again
)

// MaxRules bounds the text of rules that are added, in bytes.
const MaxRules = 64 << 10

// NarrowRequest is the body of POST /v1/policy/rules: rules that are to hold beside the
// policy. They can refuse more, and never less.
type NarrowRequest struct {
	// Policy is a policy file, or the text of its policy alone.
	Policy string `json:"policy"`
	// For is ForProcess, which is the default, or ForContainer.
	For string `json:"for,omitempty"`
	// Depth, of ForProcess, asks for an ancestor of who asks: so many above it. What that
	// one has started already is not meant.
	Depth int `json:"depth,omitempty"`
}

// Narrowed is its answer: the rules are in force.
type Narrowed struct {
	PolicyLayer
	// Known tells that the same rules had been added before.
	Known    bool         `json:"known,omitempty"`
	Warnings []Diagnostic `json:"warnings"`
	// Notes are sentences on what the rules cannot know of what was before.
	Notes []string `json:"notes"`
}

// Diagnostic is one fact about one place in a text of rules.
type Diagnostic struct {
	Line     int    `json:"line"`
	Col      int    `json:"col"`
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
	Source   string `json:"source,omitempty"`
}

// Refusal is an error that is told to who asked.
type Refusal struct {
	Status      int // of HTTP
	Sentence    string
	Diagnostics []Diagnostic
}

// Error implements error.
func (r *Refusal) Error() string {
	text := r.Sentence
	for _, d := range r.Diagnostics {
		text += "\n" + d.String()
	}
	return text
}

// String returns a diagnostic as one line, and a second for its hint.
func (d Diagnostic) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d:%d: %s[%s]: %s", d.Line, d.Col, plain(d.Severity, maxNameShown), plain(d.Code, maxNameShown), plain(d.Message, maxBecauseShown))
	if d.Hint != "" {
		b.WriteString("\n  hint: " + plain(d.Hint, maxBecauseShown))
	}
	return b.String()
}

func (s *Server) serveNarrow(w http.ResponseWriter, r *http.Request, peer Process) {
	const escaped = 6 // bytes that one byte can take in JSON
	var request NarrowRequest
	if !s.read(w, r, escaped*MaxRules, &request, `{"policy":"RULES","for":"process"}`) {
		return
	}
	switch {
	case request.For == "":
		request.For = ForProcess
	case request.For != ForProcess && request.For != ForContainer:
		s.fail(w, http.StatusBadRequest, `for is neither "process" nor "container"`)
		return
	}
	switch {
	case len(request.Policy) > MaxRules:
		s.refuse(w, tooLong())
		return
	case request.Depth < 0 || request.Depth > len(peer.Ancestors):
		s.fail(w, http.StatusBadRequest, "so far above who asks no ancestor is known")
		return
	case request.For == ForContainer && request.Depth != 0:
		s.fail(w, http.StatusBadRequest, `depth is for "process" only`)
		return
	case request.For == ForProcess && peer.ID == 0:
		s.fail(w, http.StatusConflict, "the process that asks is not known; rules for it alone cannot be added")
		return
	}
	s.bucket.charge(narrowTokens)
	answer, err := s.scope.Narrow(r.Context(), peer, request)
	if err != nil {
		s.refuse(w, err)
		return
	}
	answer.Warnings, answer.Notes = append([]Diagnostic{}, answer.Warnings...), append([]string{}, answer.Notes...)
	s.answer(w, http.StatusOK, answer)
}

// narrowTokens is what a policy that is compiled weighs in the bucket.
const narrowTokens = 100

func tooLong() error {
	return &Refusal{Status: http.StatusRequestEntityTooLarge, Sentence: "the rules are longer than 64 KiB"}
}

// read takes a request's body, or answers that it is none.
func (s *Server) read(w http.ResponseWriter, r *http.Request, limit int64, into any, form string) bool {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		s.fail(w, http.StatusRequestEntityTooLarge, "the body is too long")
		return false
	}
	if err == nil {
		err = strict(text, into)
	}
	if err != nil {
		s.fail(w, http.StatusBadRequest, "the body is not of the form "+form)
	}
	return err == nil
}

// strict decodes one JSON value, and refuses what it does not know: to leave out what was
// meant to narrow would be to allow.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// refuse answers with an error of the scope's.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		s.log.Print(err)
		refusal = &Refusal{Status: http.StatusInternalServerError, Sentence: "the engine could not do it; its log tells why"}
	}
	if refusal.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	s.answer(w, refusal.Status, Failure{Error: refusal.Sentence, Diagnostics: refusal.Diagnostics})
}
