// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/pattern"
)

// devices returns those alternatives of a file pattern that name a device literally
// which is no object of file rules: language, section 4.
func devices(glob string) [][]pattern.Elem {
	var out [][]pattern.Elem
	alternatives, _ := pattern.Alternatives(glob) // it is canonical
	for _, alternative := range alternatives {
		if path, ok := pattern.Unescaped(alternative); ok && isDevice(path) {
			elems, _ := pattern.Glob(alternative, pattern.Path)
			out = append(out, elems...)
		}
	}
	return out
}

func isDevice(path string) bool {
	return strings.HasPrefix(path, "/dev/pts/") || slices.Contains([]string{
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/console", "/dev/ptmx",
	}, path)
}
