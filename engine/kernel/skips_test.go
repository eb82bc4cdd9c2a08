// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"testing"

	"github.com/actplane/actplane/internal/testenv"
)

// The probe finds by effect what is known of the guests' kernels: the newest one
// preempts, the others as they are booted do not.
func TestSkipsAreFound(t *testing.T) {
	testenv.RequireKernel(t)
	skipped, err := Skips(FmodRet)
	if err != nil {
		t.Fatal(err)
	}
	if want := testenv.Kernel() == "new"; skipped != want {
		t.Errorf("programs are skipped: %t, want %t", skipped, want)
	}
}
