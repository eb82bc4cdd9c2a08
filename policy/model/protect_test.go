// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/actplane/actplane/policy/model"
)

// A file that has lost its protected name is none any more, by all of its other names.
// The engine keeps it, which is more than it has to: this is no case to be acted out.
func TestProtectedNameIsLost(t *testing.T) {
	cases, err := model.ParseCases("f", `== a
yaml:
  protect: [{path: /z, if: A}]
  policy: |
    source A = exec "agent"
trace:
  b link /z /y               ok
  a fdopen early w /y        ok
  a exec /bin/agent          ok
  a write /y                 block
  b rename /z /z2            ok
  a write /y                 ok
  a write /z2                ok
  a fdwrite early            ok
`)
	if err != nil {
		t.Fatal(err)
	}
	if f := model.Run(program(t, &cases[0]), &cases[0]); f != nil {
		t.Errorf("%+v", f)
	}
}
