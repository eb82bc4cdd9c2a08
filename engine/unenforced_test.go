// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/actplane/actplane/policy"
)

// A program that says what the kernel side cannot enforce is refused, whoever
// sends it: the front ends refuse its text, and here it comes as they would send
// it if they did not.
func TestUnenforcedProgramsAreRefused(t *testing.T) {
	images := &images{compile: policy.CompileProgram}
	for text, refused := range map[string]bool{
		"policy: |\n  default block exec\n":                                                                      false,
		"policy: |\n  rule r:\n    allow exec \"x\"\n":                                                           false,
		"policy: |\n  rule r:\n    ask exec \"x\"\n":                                                             false,
		"policy: |\n  rule r:\n    ask hold 5m write \"/x\"\n":                                                   false,
		"policy: |\n  rule r:\n    block bind any\n":                                                             false,
		"policy: |\n  rule r:\n    block recv any\n":                                                             false,
		"policy: |\n  rule r:\n    block connect \"github.com\"\n":                                               true,
		"policy: |\n  rule r:\n    block connect any unless target \"*.github.com\"\n":                           true,
		"policy: |\n  rule r:\n    block exec any unless target modified\n":                                      false,
		"policy: |\n  rule r:\n    block write any unless target not modified\n":                                 false,
		"policy: |\n  source A = exec \"a\"\n  declassify A by exec \"b\"\n  rule r:\n    block exec any if A\n": false,
		"policy: |\n  endorse A by exec \"b\"\n  rule r:\n    block exec any if A\n":                             false,
		"policy: |\n  source A = endpoint \"a.b\"\n  rule r:\n    block exec any if A\n":                         true,
		"policy: |\n  default ask exec\n":                                                                        false,
		"policy: |\n  default block recv\n":                                                                      false,
		"protect: [/x]\n":                                                                                        false,
		"feedback: {stderr: true}\npolicy: |\n  rule r:\n    block exec \"x\"\n":                                 false,
		"policy: |\n  rule r:\n    block exec \"x\"\n":                                                           false,
	} {
		p, err := policy.Compile([]policy.Document{{Name: "p", Text: []byte("version: 1\n" + text)}}, policy.Options{Workspace: "/w"})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		program, err := json.Marshal(p.Program)
		if err != nil {
			t.Fatal(err)
		}
		img, err := images.acquire(program)
		images.release(img)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "P501") {
			t.Errorf("%s: err = %v", text, err)
		}
	}
}
