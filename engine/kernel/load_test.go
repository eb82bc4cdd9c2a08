// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"testing"
	"time"
)

func TestLoadEveryTier(t *testing.T) {
	for _, tier := range []Tier{LSM, FmodRet} {
		t.Run(string(tier), func(t *testing.T) {
			start := time.Now()
			dir := "/sys/fs/bpf/actplane-" + string(tier)
			k, err := openTier(Config{PinDir: dir, RunDir: t.TempDir()}, tier)
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			t.Logf("loaded in %v", time.Since(start))
			for name, p := range k.programs {
				info, err := p.Info()
				if err != nil {
					t.Fatal(err)
				}
				n, _ := info.VerifiedInstructions()
				t.Logf("%s: %d instructions verified", name, n)
			}
			if err := Uninstall(dir); err != nil {
				t.Fatal(err)
			}
		})
	}
}
