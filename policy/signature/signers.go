// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"
)

// Bounds of an allowed_signers file.
const (
	MaxSigners  = 1 << 20 // bytes
	maxPatterns = 1024    // bytes of a line's principals or namespaces
)

// Signers are those whose signatures are accepted: an allowed_signers file.
type Signers struct {
	name  string
	lines []allowed
}

// allowed is one line: a key, and for whom, for what and when it counts.
type allowed struct {
	number     int
	principals string
	namespaces string // empty: all
	after      time.Time
	before     time.Time
	key        ssh.PublicKey
}

// ParseSigners reads a file in the format that ssh-keygen(1) describes under ALLOWED
// SIGNERS. It refuses all of a file that has a line which it cannot read, or would
// read otherwise than ssh-keygen. Times without a Z are in the zone.
func ParseSigners(name string, text []byte, zone *time.Location) (*Signers, error) {
	if len(text) > MaxSigners {
		return nil, fmt.Errorf("%s: it is larger than %d MiB", name, MaxSigners>>20)
	}
	signers := &Signers{name: name}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, MaxSigners+1)
	for number := 1; lines.Scan(); number++ {
		line := strings.Trim(lines.Text(), " \t\r")
		if line == "" || line[0] == '#' {
			continue
		}
		entry, err := allowed{}, plain(line)
		if err == nil {
			entry, err = parseLine(line, zone)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, number, err)
		}
		entry.number = number
		signers.lines = append(signers.lines, entry)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return signers, nil
}

// plain refuses what would be a part of a word and is not seen there.
func plain(line string) error {
	switch unseen := func(r rune) bool { return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }; {
	case strings.HasPrefix(line, "\ufeff"):
		return errors.New("it begins with a byte order mark, which ssh-keygen takes for a part of the principals: save the file as UTF-8 without one")
	case !utf8.ValidString(line):
		return errors.New("it has bytes that are no UTF-8")
	case strings.ContainsFunc(line, unseen):
		return errors.New("it has a control character, or another one that is not seen")
	}
	return nil
}

// parseLine reads PRINCIPALS [OPTIONS] TYPE KEY [COMMENT].
func parseLine(line string, zone *time.Location) (allowed, error) {
	principals, rest, err := nextWord(line)
	if err != nil {
		return allowed{}, err
	}
	entry := allowed{principals: principals}
	if len(principals) > maxPatterns {
		return entry, fmt.Errorf("its principals are longer than %d bytes", maxPatterns)
	}
	if isOptions(rest) {
		var options string
		options, rest = cutOptions(rest)
		if err := entry.setOptions(options, zone); err != nil {
			return entry, err
		}
	}
	if entry.key, err = parseKey(rest); err != nil {
		return entry, err
	}
	return entry, Usable(entry.key)
}

// isOptions tells options from a key's type, of which none has these beginnings.
func isOptions(text string) bool {
	word := strings.ToLower(text)
	for _, name := range []string{"namespaces", "valid-", "cert-authority"} {
		if strings.HasPrefix(word, name) {
			return true
		}
	}
	return strings.ContainsAny(strings.SplitN(text, " ", 2)[0], "=,")
}

// nextWord takes a word, which may be in quotes, and the white space behind it.
func nextWord(text string) (word, rest string, err error) {
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		word, rest, ok = strings.Cut(quoted, `"`)
		if !ok {
			return "", "", errors.New("a quotation mark is not closed")
		}
	} else if i := strings.IndexAny(text, " \t"); i >= 0 {
		word, rest = text[:i], text[i:]
	} else {
		word = text
	}
	if word == "" {
		return "", "", errors.New("it names no principals")
	}
	return word, strings.TrimLeft(rest, " \t"), nil
}

// parseKey reads TYPE KEY [COMMENT].
func parseKey(text string) (ssh.PublicKey, error) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return nil, errors.New("it has no key: write PRINCIPALS [OPTIONS] TYPE KEY")
	}
	if fields[0] == dsaType {
		return nil, errDSA
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(fields[0] + " " + fields[1]))
	if err != nil || key.Type() != fields[0] {
		return nil, fmt.Errorf("its key, of the type %q, cannot be read: write PRINCIPALS [OPTIONS] TYPE KEY", fields[0])
	}
	return key, nil
}

// Find finds the line by which a key counts for Namespace at a time, and gives the
// line's principals. With an identity, they have to match it. The error is a
// sentence that says what stands against the line that comes nearest.
func (s *Signers) Find(key ssh.PublicKey, identity string, at time.Time) (principals string, err error) {
	err = fmt.Errorf("%s does not name the %s", s.name, Describe(key))
	named := false
	wanted := key.Marshal()
	for _, line := range s.lines {
		if !bytes.Equal(line.key.Marshal(), wanted) {
			continue
		}
		if identity != "" && !matchList(line.principals, identity) {
			if !named {
				err = fmt.Errorf("%s:%d: the %s is for %q, not for %q", s.name, line.number, Describe(key), line.principals, identity)
			}
			continue
		}
		why := line.obstacle(at)
		if why == nil {
			return line.principals, nil
		}
		named, err = true, fmt.Errorf("%s:%d: the %s %w", s.name, line.number, Describe(key), why)
	}
	return "", err
}

// obstacle tells why a line does not count for a policy at a time.
func (a *allowed) obstacle(at time.Time) error {
	switch {
	case a.namespaces != "" && !matchList(a.namespaces, Namespace):
		return fmt.Errorf("is for the namespaces %q, not for %q", a.namespaces, Namespace)
	case !a.after.IsZero() && at.Before(a.after):
		return fmt.Errorf("is valid from %s on, not yet", a.after.Format(time.RFC3339))
	case !a.before.IsZero() && at.After(a.before):
		return fmt.Errorf("has expired: it was valid until %s", a.before.Format(time.RFC3339))
	}
	return nil
}

// Verified is whose signature it is.
type Verified struct {
	Principals string // as allowed_signers has them
	Key        ssh.PublicKey
}

// Verify tells whether a signature is of this text, for Namespace, and by one of the
// signers at that time; with an identity, by that one. The error is a sentence.
func (s *Signers) Verify(text, armored []byte, identity string, at time.Time) (*Verified, error) {
	parsed, err := Parse(armored)
	if err != nil {
		return nil, err
	}
	if err := parsed.Check(text); err != nil {
		return nil, err
	}
	principals, err := s.Find(parsed.Key(), identity, at)
	if err != nil {
		return nil, err
	}
	return &Verified{Principals: principals, Key: parsed.Key()}, nil
}
