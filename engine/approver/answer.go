// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of what an approver can say.
const (
	maxText = 4096
	maxTime = 366 * 24 * time.Hour
)

// answer is what one approver says.
type answer struct {
	Decision Decision `json:"decision"`
	Warning  string   `json:"warning"`
	Because  string   `json:"because"`
	For      string   `json:"for"`
	Once     bool     `json:"once"`

	during time.Duration // For, or the default
}

// readAnswer reads an answer. What it does not know, it does not guess at: a word that is
// written wrong is no answer, and so a denial.
func readAnswer(text []byte) (answer, error) {
	var a answer
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return answer{}, errors.New("read answer: something follows it")
	}
	return a, a.check()
}

func (a *answer) check() error {
	switch a.Decision {
	case Grant, Deny, Pass:
	case "":
		return errors.New(`read answer: it has no "decision"`)
	default:
		return fmt.Errorf(`read answer: decision %.20q is none of "grant", "deny" and "pass"`, a.Decision)
	}
	if len(a.Because) > maxText || len(a.Warning) > maxText {
		return fmt.Errorf("read answer: a text has more than %d bytes", maxText)
	}
	a.during = defaultTime
	if a.For == "" {
		return nil
	}
	var err error
	if a.during, err = time.ParseDuration(a.For); err != nil {
		return fmt.Errorf(`read answer: for: %.20q is no time such as "10m"`, a.For)
	}
	if a.during < time.Second || a.during > maxTime {
		return fmt.Errorf("read answer: for: %.20s is not between a second and a year", a.For)
	}
	return nil
}

// readOPA reads what the Open Policy Agent's data API answers: a document as our own, or
// true (grant) and false (deny). It leaves the result out where no rule says anything,
// which passes.
func readOPA(text []byte) (answer, error) {
	var envelope struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	said := answer{during: defaultTime}
	switch result := bytes.TrimSpace(envelope.Result); {
	case len(result) == 0:
		said.Decision = Pass
	case string(result) == "true":
		said.Decision = Grant
	case string(result) == "false":
		said.Decision = Deny
	default:
		return readAnswer(result)
	}
	return said, nil
}
