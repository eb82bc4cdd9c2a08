// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"slices"
	"strings"
)

// StartupVariables are those that make a program or an interpreter run other code than
// its own. A program that is started with one of them, or one whose name begins with
// LD_, opens no gate: invariant 5 of the language. The kernel side has the same list, in
// bpf/trust.bpf.h.
func StartupVariables() []string {
	return []string{
		"BASH_ENV", "ENV", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PERL5LIB", "PERL5OPT", "PERLLIB", "RUBYLIB",
		"RUBYOPT", "NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS", "CLASSPATH", "LUA_INIT", "LUA_PATH", "PHPRC", "GCONV_PATH",
	}
}

// LoadsCode tells whether a variable of that name is one of these.
func LoadsCode(name string) bool {
	return strings.HasPrefix(name, "LD_") || slices.Contains(StartupVariables(), name)
}
