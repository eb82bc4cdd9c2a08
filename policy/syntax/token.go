// SPDX-License-Identifier: Apache-2.0

// Package syntax reads the text of a policy block: scanner, nodes and a parser
// for the whole grammar, also for what later stages refuse.
//
// The parser collects errors and goes on. It knows no meaning: names may be
// undeclared, patterns are plain strings, kinds are as written.
package syntax

import "github.com/actplane/actplane/policy/diag"

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
}

// The words of the language.
var (
	effectWords = []string{"allow", "notify", "ask", "block", "kill"}
	opWords     = []string{"exec", "open", "read", "write", "append", "unlink", "connect", "bind", "send", "recv"}
	kindWords   = []string{"file", "endpoint", "exec"}
	declWords   = []string{"source", "rule", "declassify", "endorse", "default"}
	condWords   = []string{"target", "lineage-includes", "after", "contract", "run"}
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
