// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/actplane/actplane/internal/testenv"
)

// budgets is a table for people to read: what each program cost on each kernel when it
// was refreshed (make budgets).
//
//go:embed testdata/budgets.txt
var budgets string

// What a program may cost more than in the table. The most that the verifier may look at
// keeps the loading of all of them a matter of a second; 512 bytes is what the
// kernel has for a program and all that it calls.
const (
	instructionSlack = 1.3
	stackSlack       = 64
	maxInstructions  = 100_000
	maxStack         = 512
)

// cost is what the verifier of a kernel makes of a program.
type cost struct {
	instructions int // that it looked at
	stack        int // bytes of the largest frame among its functions
}

// readBudgets reads lines "PROGRAM KERNEL INSTRUCTIONS STACK".
func readBudgets(t *testing.T) map[string]cost {
	table := map[string]cost{}
	for i, line := range strings.Split(budgets, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 4 {
			t.Fatalf("budgets.txt:%d: a line is PROGRAM KERNEL INSTRUCTIONS STACK", i+1)
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatalf("budgets.txt:%d: %v", i+1, err)
		}
		stack, err := strconv.Atoi(fields[3])
		if err != nil {
			t.Fatalf("budgets.txt:%d: %v", i+1, err)
		}
		table[fields[0]+" "+fields[1]] = cost{n, stack}
	}
	return table
}

// The verifier's words on the frames of a program's functions, of 7.x and of before.
var (
	frameOfOne  = regexp.MustCompile(`(?m)^subprog \d+ .* stack (\d+)`)
	framesOfAll = regexp.MustCompile(`stack depth ([0-9+]+)`)
)

// costOf asks the kernel.
func costOf(t *testing.T, program *ebpf.Program) cost {
	info, err := program.Info()
	if err != nil {
		t.Fatal(err)
	}
	n, ok := info.VerifiedInstructions()
	if !ok {
		t.Fatal("the kernel does not tell what its verifier looked at")
	}
	var depths []string
	if old := framesOfAll.FindStringSubmatch(program.VerifierLog); old != nil {
		depths = strings.Split(old[1], "+")
	}
	for _, line := range frameOfOne.FindAllStringSubmatch(program.VerifierLog, -1) {
		depths = append(depths, line[1])
	}
	if len(depths) == 0 {
		t.Fatalf("the verifier does not tell the stack: %.200q", program.VerifierLog)
	}
	c := cost{instructions: int(n)}
	for _, depth := range depths {
		bytes, err := strconv.Atoi(depth)
		if err != nil {
			t.Fatal(err)
		}
		c.stack = max(c.stack, bytes)
	}
	return c
}

// Every program of both tiers passes the verifier of this kernel, also where a tier
// has no effect, within its budget. With ACTPLANE_BUDGETS=print it prints the lines of
// the table instead.
func TestLoadEveryTier(t *testing.T) {
	testenv.RequireKernel(t)
	table, kernel := readBudgets(t), os.Getenv("ACTPLANE_TEST_KERNEL")
	for _, tier := range []Tier{LSM, FmodRet} {
		t.Run(string(tier), func(t *testing.T) {
			dir := "/sys/fs/bpf/actplane-" + string(tier)
			k, err := openTier(Config{PinDir: dir, RunDir: t.TempDir(), verifierLog: ebpf.LogLevelStats}, tier)
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			for _, name := range sortedNames(k.programs) {
				got := costOf(t, k.programs[name])
				if os.Getenv("ACTPLANE_BUDGETS") == "print" {
					fmt.Printf("budget %s %s %d %d\n", name, kernel, got.instructions, got.stack)
					continue
				}
				want, ok := table[name+" "+kernel]
				switch {
				case !ok:
					t.Errorf("%s has no budget on kernel %s: run \"make budgets\"", name, kernel)
				case got.instructions > min(int(float64(want.instructions)*instructionSlack)+500, maxInstructions):
					t.Errorf("%s: the verifier looked at %d instructions; the table says %d", name, got.instructions, want.instructions)
				case got.stack > min(want.stack+stackSlack, maxStack):
					t.Errorf("%s: a frame of %d bytes; the table says %d", name, got.stack, want.stack)
				}
			}
			if err := Uninstall(dir); err != nil {
				t.Error(err)
			}
		})
	}
}

func sortedNames(programs map[string]*ebpf.Program) []string {
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// No budget is above what a program may cost at all.
func TestBudgetsAreBounded(t *testing.T) {
	table := readBudgets(t)
	if len(table) == 0 {
		t.Error("there are none")
	}
	for name, c := range table {
		if c.instructions <= 0 || c.instructions > maxInstructions || c.stack < 0 || c.stack > maxStack {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
