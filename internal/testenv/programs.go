// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
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

// WantProgram gives the path of a program of the Debian package that has it, and skips the
// test without it: "make test-all" installs those, and promises them (BrowserEnv).
func WantProgram(t testing.TB, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv(BrowserEnv) == "1":
		t.Fatalf("needs the program %s, which %s=1 promises: apt-get install %s", name, BrowserEnv, debian)
	default:
		t.Skipf("needs the program %s, which make test-all installs", name)
	}
	return path
}

// Lacks skips the test for something of the kernel's that it needs and does not find,
// which the guests promise.
func Lacks(t testing.TB, what string, err error) {
	t.Helper()
	if Promised() {
		t.Fatalf("needs %s, which the guests promise: %v", what, err)
	}
	t.Skipf("needs %s: %v", what, err)
}
