// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"fmt"
	"strconv"
	"strings"
)

// The hints of this file are about what stands in place of what was expected.

// opHint is about what stands where the operation should.
func (p *parser) opHint() string {
	word := p.tok.text
	switch {
	case p.startsItem():
		return "a clause names an operation and a pattern: block exec \"git\""
	case p.is("if"), p.is("unless"):
		return "conditions come after the pattern: block exec \"program\" if LABEL"
	case p.is("file"):
		return "say what is done with the file: open, read, write, append or unlink"
	case p.is("endpoint"):
		return "say what is done with the endpoint: connect, bind, send or recv"
	case p.prev == tokNumber:
		return "a duration is one word: ask hold 5m"
	case p.isOneOf(effectWords):
		return "a clause has one effect"
	case p.tok.kind == tokString:
		return fmt.Sprintf("say what is done with it: block exec %q", word)
	case p.tok.kind == tokNumber:
		return fmt.Sprintf("a time stands behind ask hold: ask hold %s exec \"program\"", word)
	case p.tok.kind == tokBad && word == "*", everything(word):
		return "a clause names one operation: block exec any, block write any, block connect any"
	}
	return ""
}

func everything(word string) bool {
	switch strings.ToLower(word) {
	case "any", "all", "everything", "anything", "everyone", "everywhere":
		return true
	}
	return false
}

// patternHint is about what stands where the pattern should.
func (p *parser) patternHint() string {
	word := p.tok.text
	switch {
	case p.startsItem():
		return ""
	case p.tok.kind == tokLeft:
		return `no parentheses: exec "git" "push"`
	case p.tok.kind == tokNumber:
		return fmt.Sprintf("patterns stand in double quotes: %q", word)
	case p.tok.kind == tokEqual, p.tok.kind == tokColon:
		return "the pattern follows, without " + word
	case p.tok.kind == tokBad && (word == "[" || word == "{"):
		return `no brackets: exec "git" "push", or one pattern with braces: "{git,hg}"`
	case p.tok.kind == tokBad && word == "*":
		return "for everything write any"
	case p.tok.kind == tokBad && word == "!" && p.peek(1).kind == tokString:
		return "what is excepted stands behind unless: any unless target" + p.peeked(" %q")
	case p.isOneOf(effectWords):
		return fmt.Sprintf("the effect comes first: %s exec \"program\"", word)
	case p.isOneOf(opWords), p.is("and"), p.is("or"), p.tok.kind == tokBad && (word == "," || word == "|"):
		return "a clause has one operation: write another clause for another one"
	case p.is("if"), p.is("unless"):
		return "conditions come after the pattern; the pattern of everything is any"
	case p.is("not"):
		return `what is excepted stands behind unless: any unless target "pattern"`
	case p.tok.kind == tokWord && everything(word):
		return "for everything write any"
	case p.tok.kind == tokWord:
		return fmt.Sprintf("patterns stand in double quotes: %q", word)
	}
	return ""
}

// labelHint is about what stands in an expression where a label should.
func (p *parser) labelHint() string {
	word := p.tok.text
	switch {
	case p.startsItem():
		return "name the label: if LABEL"
	case p.tok.kind == tokString && nameLike(word):
		return "a label stands without quotes: " + word
	case p.tok.kind == tokString:
		return "if tests labels; a source gives a program, file or endpoint one"
	case p.is("target"), p.is("after"), p.is("lineage-includes"):
		return fmt.Sprintf("%s is a condition of unless: unless %[1]s …", word)
	case p.isOneOf(opWords), p.isOneOf(kindWords):
		return fmt.Sprintf("if tests labels; a source gives one: source LABEL = %s \"…\"", kindWordOf(word))
	case p.tok.kind == tokBad:
		return p.trailingHint()
	}
	return ""
}

// sourceMeant is about a kind and a pattern in place of a label: if process "claude".
func (p *parser) sourceMeant() string {
	kind := kindMeant(p.tok.text)
	if kind == "" || p.peek(1).kind != tokString {
		return ""
	}
	return fmt.Sprintf("if tests labels; declare one: source AGENT = %s", kind) + p.peeked(" %q") + ", and write: if AGENT"
}

// kindWordOf returns the word for the kind of an operation's objects.
func kindWordOf(op string) string {
	switch op {
	case "exec":
		return "exec"
	case "connect", "bind", "send", "recv", "endpoint":
		return "endpoint"
	}
	return "file"
}

// condHint is about what stands where a condition should.
func (p *parser) condHint() string {
	word := p.tok.text
	switch {
	case p.startsItem():
		return `name a condition: unless target "pattern"`
	case p.tok.kind == tokString && p.afterOr():
		return p.anotherString(word)
	case p.tok.kind == tokString:
		return fmt.Sprintf("write: target %q", word)
	case p.is("file") && p.part == afterGate && p.afterOr() && p.peek(1).kind == tokString:
		return p.anotherString(p.peek(1).text)
	case p.is("file"), p.is("endpoint"):
		return "write: target, and the pattern" + p.peeked(": target %q")
	case p.is("exec"):
		return "write after exec (it has run in the container), or lineage-includes exec (the process or one above it has run it)" + p.peeked(": after exec %q")
	case p.isOneOf(opWords):
		return fmt.Sprintf("what has to come first stands behind after: after %s", word) + p.peeked(" %q")
	case p.is("since"):
		return `since follows after: after exec "program" since write "file"`
	case p.is("modified"), p.is("signed"):
		return "write: target " + word
	case p.is("not"):
		return p.notHint()
	}
	if p.tok.kind == tokNumber {
		return "another status is another condition: or after exec \"program\" exits " + word
	}
	if p.tok.kind != tokWord {
		return `a condition is target "pattern", after exec "program", or lineage-includes exec "program"`
	}
	switch strings.ToLower(word) {
	case "before", "first":
		return `what has to come first stands behind after: after exec "program"`
	case "lineage", "ancestor", "ancestors", "parent", "includes", "lineage-include":
		return `write: lineage-includes exec "program"`
	case "path", "to", "in", "inside", "under", "within":
		return "write: target, and the pattern" + p.peeked(": target %q")
	}
	if s := meant(word, condWords[:3]); s != "" {
		return fmt.Sprintf("did you mean %q?", s)
	}
	if p.labelLike(word) {
		return fmt.Sprintf("labels are tested by if, which stands before unless: if not %s", word)
	}
	return "possible here: " + strings.Join(condWords[:3], ", ")
}

// afterOr tells whether a condition was read before the one that is missing.
func (p *parser) afterOr() bool { return p.part == afterCond || p.part == afterGate }

// anotherString is about a string where a condition should begin, behind another one:
// what it was meant to repeat is the word of that one. Anything else could excuse what
// was meant to be refused.
func (p *parser) anotherString(s string) string {
	if p.again == "" {
		return "a second pattern is an alternative of the first, with braces: target not \"{a,b}\""
	}
	return "write: or " + p.fill(s)
}

// fill is the condition or event that goes on with what was read last, about s.
func (p *parser) fill(s string) string {
	return strings.Replace(p.again, `"…"`, strconv.Quote(s), 1)
}

// another formats the event that begins n tokens ahead, with its operation if it
// has none; "" where there is none.
func (p *parser) another(before string, n int) string {
	switch t := p.peek(n); {
	case t.kind == tokString:
		return before + p.fill(t.text)
	case t.kind == tokWord:
		return before + t.text + p.peekedAt(n+1, " %q")
	}
	return ""
}

func (p *parser) notHint() string {
	switch next := p.peek(1); {
	case next.kind == tokWord && next.text == "target":
		hint := "not stands behind target: target not"
		if what := p.peek(2); what.kind == tokString {
			hint += fmt.Sprintf(" %q", what.text)
		}
		return hint
	case next.kind == tokWord && !reserved(next.text):
		return fmt.Sprintf("labels are tested by if, which stands before unless: if %s", next.text)
	}
	return "only target has a not: target not \"pattern\""
}

// peeked formats the string that follows the current token, if one does.
func (p *parser) peeked(format string) string { return p.peekedAt(1, format) }

// peekedAt is peeked for the nth token after the current one.
func (p *parser) peekedAt(n int, format string) string {
	if next := p.peek(n); next.kind == tokString {
		return fmt.Sprintf(format, next.text)
	}
	return ""
}

// eventHint is about what stands where an event's operation should.
func (p *parser) eventHint(usual string) string {
	word := p.tok.text
	switch {
	case p.startsItem():
		return fmt.Sprintf("name what has to happen: %s \"…\"", usual)
	case p.tok.kind == tokString:
		return fmt.Sprintf("name the operation: %s %q", usual, word)
	case p.tok.kind == tokWord && contains(opWords, p.peek(1).text):
		return fmt.Sprintf("leave %s out", word)
	case p.tok.kind == tokWord && meant(word, opWords) == "" && p.peek(1).kind != tokString && !reserved(word):
		return fmt.Sprintf("write: %s %q", usual, word)
	}
	return ""
}

func (p *parser) sourceHint(label string) string {
	switch {
	case p.tok.kind == tokString:
		kind := "exec"
		if strings.ContainsAny(p.tok.text, "/.") {
			kind = "file"
		}
		return fmt.Sprintf("say what the pattern is about: source %s = %s %q", label, kind, p.tok.text)
	case p.tok.kind == tokEqual:
		return "one = is enough"
	case p.is("any"):
		return fmt.Sprintf("say what the pattern is about: source %s = file any", label)
	case kindMeant(p.tok.text) != "":
		return fmt.Sprintf("write: source %s = %s", label, kindMeant(p.tok.text)) + p.peeked(" %q")
	case p.isOneOf(opWords):
		return fmt.Sprintf("a source names what gives the label, not what is done: source %s = %s", label, kindWordOf(p.tok.text)) + p.peeked(" %q")
	}
	return ""
}

// kindMeant returns the kind for what others call so.
func kindMeant(word string) string {
	switch strings.ToLower(word) {
	case "process", "program", "command", "binary":
		return "exec"
	case "path", "dir", "directory", "folder", "files":
		return "file"
	case "network", "net", "host", "address", "ip", "url", "domain", "port":
		return "endpoint"
	}
	return ""
}

func (p *parser) defaultHint() string {
	switch {
	case p.isOneOf(opWords):
		return fmt.Sprintf("the effect comes first: default block %s", p.tok.text)
	case p.tok.kind == tokColon:
		return "leave the colon out: default block exec"
	}
	return ""
}

// nameHint is about what stands in place of a name.
func (p *parser) nameHint() string {
	switch p.tok.kind {
	case tokEqual:
		return "name the label: source LABEL = exec \"program\""
	case tokColon:
		return "name the rule: rule NAME:"
	case tokNumber:
		return "names begin with a letter or _"
	}
	return "a name has letters, digits, _, - and ."
}

// colonHint is about what stands behind a rule's name.
func (p *parser) colonHint(name string) string {
	if p.tok.kind == tokBad && p.tok.text != "{" {
		return "a rule has one name, with letters, digits, _, - and ."
	}
	if p.tok.kind == tokWord && !p.tok.first {
		return fmt.Sprintf("a name has no blanks: rule %s-%s:", name, p.tok.text)
	}
	return fmt.Sprintf("write: rule %s:", name)
}

// execHint says how a pattern of a program is written behind a word.
func (p *parser) execHint(word string) string {
	if p.tok.kind == tokString {
		return fmt.Sprintf("write: %s exec %q", word, p.tok.text)
	}
	return ""
}
