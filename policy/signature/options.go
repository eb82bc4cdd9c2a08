// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// cutOptions cuts behind the options: at the first white space outside of quotation
// marks.
func cutOptions(text string) (options, rest string) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && text[i+1] == '"':
			i++
		case c == '"':
			quoted = !quoted
		case (c == ' ' || c == '\t') && !quoted:
			return text[:i], strings.TrimLeft(text[i:], " \t")
		}
	}
	return text, ""
}

// setOptions reads NAME="VALUE",… and refuses what is not known: an option may take
// from what a key is good for.
func (a *allowed) setOptions(text string, zone *time.Location) error {
	seen := map[string]bool{}
	for rest := text; ; {
		end := strings.IndexAny(rest, "=,")
		if end < 0 {
			end = len(rest)
		}
		name := strings.ToLower(rest[:end])
		value := ""
		if rest = rest[end:]; strings.HasPrefix(rest, "=") {
			var err error
			if value, rest, err = quotedValue(rest[1:]); err != nil {
				return fmt.Errorf("option %q: %w", name, err)
			}
		}
		if seen[name] {
			return fmt.Errorf("option %q is there twice", name)
		}
		seen[name] = true
		if err := a.setOption(name, value, zone); err != nil {
			return err
		}
		if rest == "" {
			break
		}
		if rest = strings.TrimPrefix(rest, ","); rest == "" {
			return errors.New("its options end with a comma")
		}
	}
	if !a.after.IsZero() && !a.before.IsZero() && a.before.Before(a.after) {
		return errors.New("valid-before is before valid-after")
	}
	return nil
}

func (a *allowed) setOption(name, value string, zone *time.Location) (err error) {
	switch name {
	case "namespaces":
		if value == "" || len(value) > maxPatterns {
			return fmt.Errorf("option %q: write namespaces=\"%s\"", name, Namespace)
		}
		a.namespaces = value
	case "valid-after":
		if a.after, err = parseTime(value, zone); err != nil {
			return fmt.Errorf("option %q: %w", name, err)
		}
	case "valid-before":
		if a.before, err = parseTime(value, zone); err != nil {
			return fmt.Errorf("option %q: %w", name, err)
		}
	case "cert-authority":
		return errors.New("cert-authority is not supported by this version: name the keys themselves")
	default:
		return fmt.Errorf("option %q is not known", name)
	}
	return nil
}

// quotedValue takes a value in quotation marks, in which \" stands for one.
func quotedValue(text string) (value, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		return "", "", errors.New("its value is not in quotation marks")
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '"':
			i++
			out.WriteByte('"')
		case text[i] == '"':
			if rest = text[i+1:]; rest != "" && rest[0] != ',' {
				return "", "", errors.New("something follows its value")
			}
			return out.String(), rest, nil
		default:
			out.WriteByte(text[i])
		}
	}
	return "", "", errors.New("a quotation mark is not closed")
}

// parseTime reads YYYYMMDD[Z] or YYYYMMDDHHMM[SS][Z].
func parseTime(text string, zone *time.Location) (time.Time, error) {
	digits, utc := strings.CutSuffix(text, "Z")
	if utc {
		zone = time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(digits) != len(layout) {
			continue
		}
		at, err := time.ParseInLocation(layout, digits, zone)
		if err == nil && at.Unix() > 0 {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not of the form YYYYMMDD[Z] or YYYYMMDDHHMM[SS][Z]", text)
}

// matchList tells whether a word matches a list of patterns as in PATTERNS of
// ssh_config(5): separated by commas, with * and ?, and one behind ! that matches
// makes the whole list match nothing.
func matchList(list, word string) bool {
	matched := false
	for pattern := range strings.SplitSeq(list, ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if !matchPattern(pattern, word) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

// matchPattern is * for any bytes and ? for one. It goes back to the last * only, so
// that its time is bounded by the product of the lengths.
func matchPattern(pattern, word string) bool {
	star, resume, p := -1, 0, 0
	for w := 0; w < len(word); {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, w
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == word[w]):
			p++
			w++
		case star >= 0:
			resume++
			p, w = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
