// SPDX-License-Identifier: Apache-2.0

package pattern

import "strings"

// File returns the canonical text of a file pattern: absolute, its . and ..
// resolved. A relative one is put under workspace; relative tells so.
func File(text, workspace string) (canonical string, relative bool, err error) {
	alternatives, err := prepare(text)
	if err != nil {
		return "", false, err
	}
	return files(alternatives, workspace)
}

// Exec returns the canonical text of an exec pattern: a base-name glob as it
// is, one with a slash as File does.
func Exec(text, workspace string) (canonical string, relative bool, err error) {
	alternatives, err := prepare(text)
	if err != nil {
		return "", false, err
	}
	paths := 0
	for _, a := range alternatives {
		if strings.Contains(a, "/") {
			paths++
		}
	}
	switch paths {
	case len(alternatives):
		return files(alternatives, workspace)
	case 0:
		_, err := Glob(text, Name)
		return text, false, err
	}
	return "", false, errorf(BadGlob, "write two clauses", "the pattern's alternatives mix program names and paths")
}

// Arg validates an argv token glob.
func Arg(text string) error {
	_, err := Glob(text, Token)
	return err
}

func prepare(text string) ([]string, error) {
	if err := shellish(text); err != nil {
		return nil, err
	}
	alternatives, err := expand(text)
	if len(alternatives) < 2 {
		return alternatives, err
	}
	for _, a := range alternatives {
		if err := shellish(a); err != nil && a != "" {
			return nil, err
		}
	}
	return alternatives, nil
}

// shellish refuses what only a shell would expand: such a pattern would be
// valid, match nothing, and look as if it protected something.
func shellish(text string) error {
	switch {
	case text == "":
		return errorf(NeverMatches, "write any to match everything", "an empty pattern matches nothing")
	case strings.HasPrefix(text, "~"):
		return errorf(NotExpanded, `write the directory, or **/ for any; a file whose name begins with ~ is written \~`,
			"~ is not expanded in patterns")
	case len(text) > 2 && letter(text[0]) && text[1] == ':' && (text[2] == '\\' || text[2] == '/'):
		return errorf(NotExpanded, "paths are those of the container, and begin with /", "\"%s\" is a Windows path", text)
	case windowsVariable(text):
		return errorf(NotExpanded, "write its value", "variables are not expanded in patterns")
	}
	for i := 0; i < len(text); i++ {
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '$' && next == '(', c == '`':
			return errorf(NotExpanded, `write what it would print; plain characters are written \$ and \`+"`", "commands are not run in patterns")
		case c == '$' && (next == '{' || next == '_' || letter(next)):
			return errorf(NotExpanded, `write its value; a plain dollar sign is written \$`, "variables are not expanded in patterns")
		}
	}
	return nil
}

// windowsVariable tells whether a text begins as %NAME%.
func windowsVariable(text string) bool {
	if text[0] != '%' {
		return false
	}
	name, _, ok := strings.Cut(text[1:], "%")
	return ok && len(name) > 1 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func files(alternatives []string, workspace string) (string, bool, error) {
	relative := false
	var out []string
	for _, a := range alternatives {
		if a == "" {
			return "", false, errorf(NeverMatches, "", "an alternative of the pattern is empty")
		}
		switch a = plainSeparators(a); {
		case a[0] == '/':
		case strings.HasPrefix(a, "**"):
			a = "/" + a
		default:
			relative = true
			a = escape(workspace) + "/" + a
		}
		c, err := cleaned(a)
		if err != nil {
			return "", false, err
		}
		if _, err := elements(c, Path); err != nil {
			return "", false, err
		}
		out = append(out, c)
	}
	return joined(out), relative, nil
}

// Literal is the glob that matches a path and nothing else.
func Literal(path string) string { return escape(path) }

// Unescaped returns the one path that a glob without braces matches, if it is one.
func Unescaped(glob string) (path string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '*', '?', '[':
			return "", false
		case '\\':
			if i++; i == len(glob) {
				return "", false
			}
		}
		b.WriteByte(glob[i])
	}
	return b.String(), true
}

// escape makes a glob that matches a path literally.
func escape(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if strings.IndexByte(`*?[]{},\`, path[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(path[i])
	}
	return b.String()
}

// cleaned resolves empty segments, . and .. in an absolute glob without
// alternatives.
func cleaned(glob string) (string, error) {
	var kept []string
	segments := split(glob)
	for i, s := range segments {
		switch s {
		case ".":
		case "":
			if i > 0 && i == len(segments)-1 {
				return "", errorf(NeverMatches, "for what is in the directory, end it with /**",
					"a pattern that ends in / matches nothing: paths don't end so")
			}
		case "..":
			if n := len(kept); n > 0 {
				if wild(kept[n-1]) {
					return "", errorf(NeverMatches, "", "a pattern with .. after a wildcard matches nothing: paths are resolved before they are matched")
				}
				kept = kept[:n-1]
			}
		default:
			kept = append(kept, s)
		}
	}
	return "/" + strings.Join(kept, "/"), nil
}

// plainSeparators drops the backslashes before / and ., which are what they are
// with and without: else a segment would not be seen for what it is.
func plainSeparators(glob string) string {
	if !strings.Contains(glob, `\`) {
		return glob
	}
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '\\' && i+1 < len(glob):
			i++
			if glob[i] != '/' && glob[i] != '.' {
				b.WriteByte(c)
			}
		case c == '[':
			end := skipClass(glob, i)
			b.WriteString(glob[i : end-1])
			i = end - 1
		}
		b.WriteByte(glob[i])
	}
	return b.String()
}

// wild tells whether a segment has a wildcard.
func wild(segment string) bool {
	for i := 0; i < len(segment); i++ {
		switch segment[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		}
	}
	return false
}

// split cuts an absolute glob at its slashes, but not inside classes.
func split(glob string) []string {
	var out []string
	start := 1
	for i := 1; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '[':
			i = skipClass(glob, i) - 1
		case '/':
			out = append(out, glob[start:i])
			start = i + 1
		}
	}
	return append(out, glob[start:])
}

// joined is the inverse of expand.
func joined(globs []string) string {
	if len(globs) == 1 {
		return escapeAlternatives(globs[0], "{}")
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, g := range globs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(escapeAlternatives(g, "{},"))
	}
	b.WriteByte('}')
	return b.String()
}

func escapeAlternatives(glob, what string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '\\' && i+1 < len(glob):
			b.WriteByte(c)
			i++
		case c == '[':
			end := skipClass(glob, i)
			b.WriteString(glob[i : end-1])
			i = end - 1
		case strings.IndexByte(what, c) >= 0:
			b.WriteByte('\\')
		}
		b.WriteByte(glob[i])
	}
	return b.String()
}
