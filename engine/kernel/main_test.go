// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"os"
	"testing"
)

// The test binary is also the self-test's helper and the actor that the tests run
// inside of scopes.
func TestMain(m *testing.M) {
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	var err error
	switch role {
	case ProbeHelperArg:
		os.Exit(ProbeHelper())
	case "actor":
		err = runActor()
	case "thread":
		err = execFromThread(os.Args[2:])
	case "dirracer":
		err = execWhileMoving(os.Args[2:])
	case "racer":
		err = execWhileChanging(os.Args[2:])
	default:
		status := m.Run()
		if err := shared.remove(); err != nil {
			fmt.Println("remove the kernel side of the tests:", err)
			status = 1
		}
		_ = os.RemoveAll(shared.config.RunDir)
		os.Exit(status)
	}
	if err != nil {
		fmt.Println(outcome(err))
		os.Exit(1)
	}
}
