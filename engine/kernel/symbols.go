// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// kernelSymbols returns the addresses of symbols of the kernel itself, 0 for those that it
// does not have or does not tell (kernel.kptr_restrict, CONFIG_KALLSYMS_ALL). Modules may
// have symbols of the same name, which the library takes as an error.
func kernelSymbols(names ...string) (map[string]uint64, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, fmt.Errorf("read the kernel's symbols: %w", err)
	}
	defer f.Close()
	out := map[string]uint64{}
	for _, name := range names {
		out[name] = 0
	}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // address, type, name, and the module
		if len(fields) != 3 {
			continue
		}
		if known, ok := out[fields[2]]; !ok || known != 0 {
			continue
		}
		if out[fields[2]], err = strconv.ParseUint(fields[0], 16, 64); err != nil {
			return nil, fmt.Errorf("read the kernel's symbols: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the kernel's symbols: %w", err)
	}
	return out, nil
}
