// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"fmt"
	"strconv"
	"strings"
)

// The hints of this file say what is mostly meant where something cannot be read:
// the text that the reader looks for. They decide nothing.

// part is what the parser has read last.
type part uint8

const (
	afterNothing part = iota
	afterObject       // a clause's pattern and tokens
	afterIf
	afterCond // target or lineage-includes
	afterGate // after, with exits and since
	afterBecause
	afterSource // a source or transform
	afterDefault
)

// end says what should follow a part that is complete.
func (p part) end() string {
	switch p {
	case afterBecause:
		return "the end of the rule"
	case afterSource, afterDefault:
		return "the end of the line"
	}
	return "the end of the clause"
}

// trailingHint is about what stands behind a complete part on its line.
func (p *parser) trailingHint() string {
	if p.tok.first {
		return ""
	}
	switch t := p.tok; t.kind {
	case tokString:
		return p.trailingString()
	case tokWord:
		return p.trailingWord()
	case tokNumber:
		if p.part == afterGate {
			return "the status stands behind exits: exits " + t.text
		}
		if endpointOp(p.op) {
			return p.portHint(t.text)
		}
		return fmt.Sprintf("arguments stand in double quotes: %q", t.text)
	case tokEqual:
		if p.part == afterIf {
			return "a label holds when the process has it: if LABEL, or if not LABEL"
		}
	case tokRight:
		return "no ( is open here"
	case tokBad:
		if t.text == "," {
			return p.commaHint()
		}
		if t.text == "[" && p.part == afterObject && p.op == "exec" && p.peek(1).kind == tokString {
			return "arguments stand one after another, without brackets:" + p.peeked(" %q")
		}
	}
	return ""
}

// commaHint is about a comma.
func (p *parser) commaHint() string {
	if next := p.peek(1); next.text == "since" || next.text == "if" || next.text == "unless" {
		return "leave it out"
	}
	switch p.part {
	case afterObject:
		if p.op == "exec" {
			return `arguments are separated by blanks: "git" "push"; another program is another clause`
		}
		return `another pattern is another clause, or one with braces: "{/a/**,/b/**}"`
	case afterIf:
		return "labels are joined with and, or"
	case afterCond, afterGate:
		return p.condComma()
	case afterSource:
		return `a second pattern is another source of the same label, or one with braces: "{a,b}"`
	}
	return "leave it out"
}

// condComma is about a comma behind a condition.
func (p *parser) condComma() string {
	next := p.peek(1)
	switch {
	case next.kind == tokString && p.again != "":
		return "write: or " + p.fill(next.text)
	case next.kind == tokWord && (contains(opWords, next.text) || contains(condWords, next.text)):
		return "write or in its place: or " + next.text + p.peekedAt(2, " %q")
	case p.again == "":
		return "conditions are joined with or, and each begins with its word"
	}
	return "conditions are joined with or, and each begins with its word: or " + p.again
}

func (p *parser) trailingString() string {
	quoted := strconv.Quote(p.tok.text)
	switch p.part {
	case afterIf:
		return "the pattern and the arguments stand before if"
	case afterCond, afterGate:
		if p.again == "" {
			return "another pattern is another alternative of the first, with braces: target not \"{a,b}\""
		}
		return "another pattern is another condition: or " + p.fill(p.tok.text)
	case afterBecause:
		return `the reason is one string, on one line; a quote inside is written \"`
	case afterSource:
		return `a source has no arguments; a second pattern is another source of the same label, or one with braces: "{a,b}"`
	case afterDefault:
		return "a default is about every object; a rule is about some: block exec " + quoted
	}
	return ""
}

// trailingWord is about a word behind a complete part.
func (p *parser) trailingWord() string {
	word := p.tok.text
	if p.prev == tokString && p.tok.span.Start == p.last {
		return p.innerQuote()
	}
	if p.part == afterBecause && (word == "if" || word == "unless") {
		return "because comes last, behind the conditions: move it to the end of the rule"
	}
	if s := p.joining(word); s != "" {
		return s
	}
	if s := p.elsewhere(word); s != "" {
		return s
	}
	known := []string{"if", "unless", "because"}
	if p.part == afterGate {
		if s := outcome(word); s != "" {
			return s
		}
		known = append(known, "exits", "since")
	}
	if s := meant(word, known); s != "" {
		return fmt.Sprintf("did you mean %q?", s)
	}
	switch label := p.labelLike(word); {
	case p.part == afterBecause:
		return `a quote is missing, or one too many: the reason is one string, and a quote inside is written \"`
	case p.part == afterSource:
		return "leave it out: a declaration ends behind its pattern"
	case label && p.part == afterObject:
		return fmt.Sprintf("a label stands behind if: if %s", word)
	case p.part == afterIf:
		return "labels are joined with and, or"
	case label:
		return fmt.Sprintf("labels are tested by if, which stands before unless: if not %s", word)
	case p.part == afterObject && p.op == "exec":
		return fmt.Sprintf("arguments stand in double quotes, each in its own: %q", word)
	}
	return "a quote is missing, or one too many"
}

// joining is about the words that join things, where they join nothing.
func (p *parser) joining(word string) string {
	switch word {
	case "and", "or":
		return p.joined(word)
	case "if":
		if p.part == afterIf {
			return "labels are joined with and, or"
		}
		return "if stands before unless"
	case "unless":
		return "conditions are joined with or: unless A or B"
	case "not":
		return "not stands in if, before a label, and behind target"
	case "any":
		if p.peek(1).kind != tokString {
			return "leave it out: other arguments may follow in any case"
		}
		return `an argument that can be anything is "*"`
	case "target", "after", "lineage-includes":
		if p.part == afterCond || p.part == afterGate {
			return "conditions are joined with or: or " + word
		}
		return fmt.Sprintf("%s stands behind unless: unless %[1]s …", word)
	case "since":
		if p.part == afterGate {
			return `events are joined with or: since write "a" or write "b"`
		}
		return `since follows after: unless after exec "program" since write "file"`
	case "exits":
		if p.part == afterGate {
			return "there is one exits for each after, right behind the program and before since"
		}
		return `exits follows after: unless after exec "program" exits 0`
	}
	return ""
}

// joined is about and, or where there is nothing that they join.
func (p *parser) joined(word string) string {
	switch p.part {
	case afterObject:
		if word == "and" && p.op == "exec" {
			return `arguments are separated by blanks: "git" "push"; another program is another clause`
		}
		return `another pattern is another clause, or one with braces: "{a,b}"`
	case afterCond, afterGate:
		if next := p.peek(1).text; next == "since" || next == "exits" {
			return "leave it out: " + next + " follows directly"
		}
		if what := p.peek(1); p.part == afterGate && !strings.HasPrefix(p.again, "after ") && (what.kind == tokString || contains(opWords, what.text)) {
			return "any of the events after since makes it stale, and they are joined with or" + p.another(": or ", 1)
		}
		return "unless excuses when one of its conditions holds, and joins them with or; where all must hold, write the clause once with each"
	case afterSource:
		return `a second pattern is another source of the same label, or one with braces: "{a,b}"`
	}
	return ""
}

// outcome is about words for how a program ended.
func outcome(word string) string {
	switch strings.ToLower(word) {
	case "succeeds", "succeeded", "success", "passes", "passed", "passing", "ok", "green", "successfully":
		return "write: exits 0"
	case "fails", "failed", "failure", "failing":
		return "write the status: exits 1"
	case "returns", "returned", "status", "code", "exited", "exitcode":
		return "write: exits, and the status: exits 0"
	}
	return ""
}

// innerQuote is about a quote inside a string. The string of a reason goes to the
// last quote of its line.
func (p *parser) innerQuote() string {
	const general = `a quote inside a string is written \"; arguments are strings of their own, with a blank between`
	if p.part != afterBecause {
		return general
	}
	line := p.line(p.stringAt)
	end := strings.LastIndexByte(line, '"')
	if end < 1 || strings.Contains(line, `\`) {
		return general
	}
	return `a quote inside a string is written \": because "` + strings.ReplaceAll(line[1:end], `"`, `\"`) + `"`
}

func (p *parser) reasonHint() string {
	rest := strings.TrimSpace(p.line(p.tok.span.Start))
	if p.tok.kind == tokWord && !p.tok.first && !strings.ContainsAny(rest, `"\`) {
		return fmt.Sprintf("write: because %q", rest)
	}
	return `write: because "the reason"`
}

// itemHint is about a word that begins no clause.
func (p *parser) itemHint() string {
	word := p.tok.text
	switch strings.ToLower(word) {
	case "end", "endif", "done", "fi", "pass":
		return "a rule ends where the next one begins: leave it out"
	case "effect":
		return "the effect begins each clause: block exec \"git\""
	}
	var words []string
	for _, list := range [][]string{effectWords, opWords, {"because", "if", "unless"}, declWords} {
		words = append(words, list...)
	}
	if s := meant(word, words); s != "" {
		return fmt.Sprintf("did you mean %q?", s)
	}
	if s := p.fileKey(); s != "" {
		return s
	}
	if p.tok.first && p.peek(1).kind == tokColon && !p.peek(1).first && p.peek(2).kind == tokWord && p.peek(2).first {
		return fmt.Sprintf("where another rule begins, write: rule %s:", word)
	}
	return `a clause is [effect] operation "pattern", such as: block exec "git" "push"`
}

func (p *parser) declarationHint() string {
	if s := p.fileKey(); s != "" {
		return s
	}
	if p.tok.kind == tokWord && p.peek(1).kind == tokColon && !p.peek(1).first && !reserved(p.tok.text) {
		return fmt.Sprintf("write: rule %s:", p.tok.text)
	}
	if p.tok.kind == tokWord {
		return "" // the words that are possible
	}
	return "write a source or a rule: rule NAME:"
}

// fileKey is about a key of the file that stands in the policy text.
func (p *parser) fileKey() string {
	switch word := p.tok.text; word {
	case "version", "workspace", "policy", "ifc", "rules", "domains", "protect", "feedback", "limits":
		return fmt.Sprintf("%s is a key of the file: it begins its line, outside of the policy text", word)
	}
	return ""
}

// nameLike tells whether a text could be a label.
func nameLike(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && (i == 0 || (c < '0' || c > '9') && c != '-' && c != '.') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// labelLike tells whether a word is a label that has been declared so far, or is
// written as labels mostly are.
func (p *parser) labelLike(word string) bool {
	for _, s := range p.file.Sources {
		if s.Label.Text == word {
			return true
		}
	}
	for _, n := range p.file.Misread {
		if n.Text == word {
			return true
		}
	}
	return !reserved(word) && word == strings.ToUpper(word)
}
