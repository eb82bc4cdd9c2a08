// SPDX-License-Identifier: Apache-2.0

// Package syntax reads the text of a policy block: scanner, nodes and a parser
// for the whole grammar, also for what later stages refuse.
//
// The parser collects errors and goes on. It knows no meaning: names may be
// undeclared, patterns are plain strings, kinds are as written.
package syntax

import (
	"strings"

	"github.com/actplane/actplane/policy/diag"
)

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokWord             // identifier or keyword
	tokNumber           // digits, and what letters follow them
	tokString
	tokColon
	tokEqual
	tokLeft
	tokRight
	tokBad // already reported by the scanner
)

type token struct {
	kind  tokenKind
	span  diag.Span
	text  string // as written; of a string its value
	first bool   // the first token on its line
	clear bool   // of tokBad: what was meant does not depend on what is before it
}

// The words of the language.
var (
	effectWords = []string{"allow", "notify", "ask", "block", "kill"}
	opWords     = []string{"exec", "open", "read", "write", "append", "unlink", "connect", "bind", "send", "recv"}
	kindWords   = []string{"file", "endpoint", "exec"}
	declWords   = []string{"source", "rule", "declassify", "endorse", "default"}
	condWords   = []string{"target", "after", "lineage-includes", "contract", "run"}
	otherWords  = []string{"if", "unless", "because", "and", "or", "not", "true", "any", "by", "since", "exits", "hold", "modified", "signed", "unsteered"}
)

func reserved(word string) bool {
	for _, words := range [][]string{effectWords, opWords, kindWords, declWords, condWords, otherWords} {
		if contains(words, word) {
			return true
		}
	}
	return false
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

// meant returns the one of words that was most likely meant: by another name, or
// by a misspelling.
func meant(word string, words []string) string {
	if s := synonym(word); s != "" && contains(words, s) {
		return s
	}
	return diag.Suggest(word, words)
}

// synonym returns the language's word for what others call so.
func synonym(word string) string {
	switch strings.ToLower(word) {
	case "deny", "forbid", "disallow", "prevent", "reject", "refuse", "prohibit":
		return "block"
	case "permit", "accept", "grant":
		return "allow"
	case "warn", "log", "audit", "report", "observe":
		return "notify"
	case "confirm", "approve", "prompt":
		return "ask"
	case "terminate", "abort":
		return "kill"
	case "run", "execute", "spawn", "command":
		return "exec"
	case "delete", "remove", "rm", "rmdir":
		return "unlink"
	case "edit", "modify", "create", "change", "truncate", "rename":
		return "write"
	case "listen", "serve":
		return "bind"
	case "net", "network", "dial", "http", "https", "tcp", "internet":
		return "connect"
	case "receive":
		return "recv"
	case "when", "where":
		return "if"
	case "except", "unless:":
		return "unless"
	case "reason", "message", "remediation", "why":
		return "because"
	case "label", "taint":
		return "source"
	}
	return ""
}

// Begins tells whether a word can begin a declaration or a clause.
func Begins(word string) bool {
	return contains(declWords, word) || contains(effectWords, word) || contains(opWords, word) || word == "because"
}
