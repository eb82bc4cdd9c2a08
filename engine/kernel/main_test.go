// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The test binary is also the self-test's helper and the actor that the tests run
// inside of scopes.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "actor" && len(os.Args) > 1 && os.Args[1] == ProbeHelperArg {
		os.Exit(ProbeHelper())
	}
	if len(os.Args) > 1 && os.Args[1] == "actor" {
		if err := runActor(os.Args[2:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
