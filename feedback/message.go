// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a message's parts, in bytes as shown. Together they keep what is
// untrusted well within the shortest text that an agent takes.
const (
	maxObjectShown  = 240
	maxArgShown     = 80
	maxArgsShown    = 400
	maxCommShown    = 32
	maxNameShown    = 80
	maxLabelsShown  = 6
	maxAlsoShown    = 3
	maxClauseShown  = 300
	maxBecauseShown = 1000
)

// Message puts the item into words: the same on every path, one line, facts and
// no commands. What the scope's programs chose (object, argv, program name) is
// quoted; what the policy's author wrote stands as it is, but for line breaks
// and characters that cannot be seen.
func (i Item) Message() string {
	var b strings.Builder
	b.WriteString("ActPlane policy: ")
	if i.Unrecorded > 0 {
		// One line as well, but of what is known.
		fmt.Fprintf(&b, "%d times %s ", i.Unrecorded, plain(i.Operation, maxNameShown))
		b.WriteString(outcome(i.Effect, i.Operation) + " (there were too many at once to record on what), by ")
		return b.String() + i.reason()
	}
	if i.Outcome == Added {
		return b.String() + i.added()
	}
	if i.Outcome == Locked || i.Outcome == Unlocked {
		return "ActPlane: " + i.lock()
	}
	i.writeOperation(&b)
	if i.Outcome != "" {
		i.writeAsked(&b)
		return b.String() + i.origins()
	}
	b.WriteByte(' ')
	b.WriteString(outcome(i.Effect, i.Operation))
	b.WriteString(", by ")
	b.WriteString(i.reason())
	b.WriteString(i.again())
	b.WriteString(i.origins())
	return b.String()
}

// added tells of rules that were added to the policy.
func (i Item) added() string {
	text := "rules " + quote(i.Object, maxNameShown) + " were added by program " + quote(i.Process.Comm, maxCommShown)
	if i.Reason == ForContainer {
		return text + ". They hold for the whole container, also after it is started again, and cannot be taken back from inside."
	}
	return text + ". They hold for that process and what it starts from now on, as long as they live."
}

// again says what trying again would bring, as far as the clause tells: another answer
// only where its conditions do not hold any more, or its exceptions do.
func (i Item) again() string {
	if i.Effect == Notify || i.Clause == "" {
		return ""
	}
	condition, exceptions := conditions(i.Clause)
	if exceptions != "" && i.Because == "" {
		return "" // the whole clause has just been shown
	}
	text := " Trying again changes nothing"
	if strings.Contains(" "+condition, " not ") {
		text += " as long as this holds: " + i.words(condition, maxClauseShown)
	}
	if exceptions != "" {
		text += " unless: " + i.words(exceptions, maxClauseShown)
	}
	return text + "." + i.others()
}

// others names the other rules that match: what excuses from one does not from them.
func (i Item) others() string {
	if len(i.Also) == 0 {
		return ""
	}
	shown := i.Also
	if len(shown) > maxAlsoShown {
		shown = shown[:maxAlsoShown]
	}
	names := make([]string, len(shown))
	for n, name := range shown {
		names[n] = quote(name, maxNameShown)
	}
	text := " Another rule matches as well: "
	if len(i.Also) > 1 {
		text = " Other rules match as well: "
	}
	text += strings.Join(names, ", ")
	if len(shown) < len(i.Also) || i.AlsoCut {
		text += " and others"
	}
	return text + "."
}

// conditions are what stands behind the words if and unless in a clause.
func conditions(clause string) (condition, exceptions string) {
	quoted, from := false, -1
	for at := 0; at < len(clause); at++ {
		switch rest := clause[at:]; {
		case quoted && rest[0] == '\\':
			at++
		case rest[0] == '"':
			quoted = !quoted
		case quoted:
		case strings.HasPrefix(rest, " if "):
			from = at + len(" if ")
		case strings.HasPrefix(rest, " unless "):
			if from >= 0 {
				condition = clause[from:at]
			}
			return condition, rest[len(" unless "):]
		}
	}
	if from >= 0 {
		condition = clause[from:]
	}
	return condition, ""
}

// writeOperation tells what was done, and by which program.
func (i Item) writeOperation(b *strings.Builder) {
	b.WriteString(plain(i.Operation, maxNameShown))
	b.WriteByte(' ')
	b.WriteString(quote(i.Object, maxObjectShown))
	if i.Operation == "exec" {
		b.WriteString(argv(i.Object, i.Args, i.ArgsCut))
	} else if i.Process.Comm != "" {
		b.WriteString(" by program " + quote(i.Process.Comm, maxCommShown))
	}
}

// argv shows the arguments of an exec, and the name it was called by where that
// is not the program's: what a multi-call program does depends on it.
func argv(object string, args []string, more bool) string {
	if len(args) == 0 {
		if more {
			return " […]"
		}
		return ""
	}
	var b strings.Builder
	if path.Base(args[0]) != path.Base(object) {
		b.WriteString(" as " + quote(args[0], maxArgShown))
	}
	if len(args) == 1 && !more {
		return b.String()
	}
	shown := ""
	for _, arg := range args[1:] {
		next := quote(arg, maxArgShown)
		if len(shown)+len(next) > maxArgsShown {
			more = true
			break
		}
		shown += next + " "
	}
	if more {
		shown += "…"
	}
	return b.String() + " [" + strings.TrimSuffix(shown, " ") + "]"
}

func before(operation string) string {
	if operation == "exec" {
		return "before it ran"
	}
	return "before it happened"
}

// outcome says what became of the operation.
func outcome(effect Effect, operation string) string {
	before := before(operation)
	switch effect {
	case Notify:
		return "was allowed and noted"
	case Block:
		return "was blocked " + before
	case Kill:
		return "was blocked " + before + " and its process was killed"
	default:
		return "met the effect " + quote(string(effect), maxNameShown)
	}
}

// reason names what decided and gives its because, or, where a rule has none,
// the clause. It ends a sentence.
func (i Item) reason() string {
	because := i.words(i.Because, maxBecauseShown)
	if i.Rule == "" {
		text := "ActPlane itself"
		if i.RuleAdded {
			text += ", for rules that a program in this container added"
		}
		if because == "" {
			return text + "."
		}
		return text + ": " + ended(because)
	}
	text := "rule " + quote(i.Rule, maxNameShown)
	if i.RuleAdded {
		text += ", which a program in this container added,"
	}
	if len(i.Labels) > 0 {
		text += " (the process carries " + i.labels() + ")"
	}
	if because != "" {
		return strings.TrimSuffix(text, ",") + ": " + ended(because)
	}
	if i.Clause != "" {
		return strings.TrimSuffix(text, ",") + ", which says: " + ended(i.words(i.Clause, maxClauseShown))
	}
	return strings.TrimSuffix(text, ",") + "."
}

// words are the policy's own, as they are. What a program in the container has added to the
// policy is quoted: else its rules would speak in our voice.
func (i Item) words(text string, limit int) string {
	if i.RuleAdded && text != "" {
		return quote(text, limit)
	}
	return plain(text, limit)
}

// ended ends a sentence that its author has not ended.
func ended(text string) string {
	if last, _ := utf8.DecodeLastRuneInString(text); unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune("\"'`)]", last) {
		return text + "."
	}
	return text
}

func (i Item) labels() string {
	names, word := i.Labels, "label "
	if len(names) > 1 {
		word = "labels "
	}
	more := ""
	if len(names) > maxLabelsShown {
		names, more = names[:maxLabelsShown], " …"
	}
	shown := make([]string, len(names))
	for n, name := range names {
		shown[n] = i.words(name, maxNameShown)
	}
	return word + strings.Join(shown, " ") + more
}
