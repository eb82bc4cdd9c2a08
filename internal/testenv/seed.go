// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"strconv"
	"testing"
)

// Seed is what a test makes its random cases of: the same one whenever it runs, so that
// what passed once passes again. Another one comes by ACTPLANE_TEST_SEED, and "make
// test-all" has a new one each time. A test that fails shows it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv("ACTPLANE_TEST_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("ACTPLANE_TEST_SEED is no number: %v", err)
		}
		seed = n
	}
	t.Logf("ACTPLANE_TEST_SEED=%d", seed)
	return seed
}
