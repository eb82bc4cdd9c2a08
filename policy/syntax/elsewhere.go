// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"fmt"
	"net/netip"
	"strings"
)

// The hints of this file are about words of other languages behind a clause's object.

// elsewhere says what is meant by a word that says it elsewhere, "" for others.
func (p *parser) elsewhere(word string) string {
	if p.part == afterBecause || p.part == afterSource || p.part == afterDefault {
		return ""
	}
	next := p.peek(1)
	switch strings.ToLower(word) {
	case "port", "ports":
		if p.part == afterObject && endpointOp(p.op) && (next.kind == tokNumber || next.kind == tokString) {
			return p.portHint(next.text)
		}
	case "until", "before", "without":
		return "what has to come first stands behind unless after: unless after " + p.eventMeant()
	case "except", "excluding", "but":
		if next.kind == tokString {
			return fmt.Sprintf("what is excepted stands behind unless: unless target %q", next.text)
		}
		if !contains(condWords, next.text) {
			return `what is excepted stands behind unless: unless target "pattern"`
		}
	case "when", "where", "while":
		if next.kind == tokWord && !reserved(next.text) {
			return "labels are tested by if: if " + next.text
		}
	}
	return ""
}

// eventMeant is the event behind the present word, with its operation if it has none.
func (p *parser) eventMeant() string {
	switch next := p.peek(1); {
	case next.kind == tokString:
		return fmt.Sprintf("exec %q", next.text)
	case next.kind == tokWord && contains(opWords, next.text):
		return next.text + p.peekedAt(2, " %q") + p.peekedAt(3, " %q")
	}
	return `exec "program"`
}

// portHint puts a port where it belongs.
func (p *parser) portHint(port string) string {
	line := p.line(p.stringAt)
	address, _, ok := strings.Cut(strings.TrimPrefix(line, `"`), `"`)
	if p.prev != tokString || !ok {
		address = "*"
	}
	if a, _, _ := strings.Cut(address, "/"); strings.Contains(address, ":") {
		if _, err := netip.ParseAddr(a); err == nil {
			address = "[" + address + "]"
		}
	}
	return fmt.Sprintf("the port stands behind the address: %q", address+":"+port)
}

func endpointOp(op string) bool { return kindWordOf(op) == "endpoint" }
