// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os/exec"
	"testing"
)

// RequireProgram gives the path of a program of the Debian package that has it. "make
// test" installs those that tests ask for: without it the test fails, since what it
// would show is of no use untried.
func RequireProgram(t testing.TB, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("needs the program %s: apt-get install %s", name, debian)
	}
	return path
}
