// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/internal/randomcase"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// packed is a trial as a file has it: with its policy compiled, which takes an emulated
// machine longer than all the rest.
type packed struct {
	Seed    uint64
	Source  *randomcase.Case
	Program *ir.Program
	Image   *dfa.Image
}

// seedsOf reads pairs of a first seed and a count.
func seedsOf(args []string) (seeds []uint64, err error) {
	if len(args) == 0 || len(args)%2 != 0 {
		return nil, errors.New("a first seed and a count are wanted")
	}
	for pair := range slices.Chunk(args, 2) {
		first, err := strconv.ParseUint(pair[0], 10, 64)
		count, err2 := strconv.ParseUint(pair[1], 10, 16)
		if err = errors.Join(err, err2); err != nil {
			return nil, err
		}
		for seed := range count {
			seeds = append(seeds, first+seed)
		}
	}
	return seeds, nil
}

// writeTrials makes random cases, one for each seed. Those that need the same hooks come
// one after the other: the kernel takes its time to attach them.
func writeTrials(seeds []uint64, out io.Writer) error {
	trials := make([]*trial, len(seeds))
	var makers sync.WaitGroup
	step := runtime.NumCPU()
	for first := range step {
		makers.Go(func() {
			for i := first; i < len(seeds); i += step {
				trials[i] = newTrial(seeds[i])
			}
		})
	}
	makers.Wait()
	slices.SortStableFunc(trials, func(x, y *trial) int {
		return cmp.Compare(kernel.Hooks(x.policy.Image), kernel.Hooks(y.policy.Image))
	})
	buffered := bufio.NewWriter(out)
	encoder := gob.NewEncoder(buffered)
	for _, t := range trials {
		if err := encoder.Encode(packed{t.seed, t.source, t.policy.Program, t.policy.Image}); err != nil {
			return fmt.Errorf("write random cases: %w", err)
		}
	}
	return buffered.Flush()
}

// readTrials calls f for each case of a file, until it fails.
func readTrials(name string, f func(*trial) error) error {
	file, err := os.Open(name)
	if err != nil {
		return usageError{fmt.Errorf("read random cases: %w", err)}
	}
	defer file.Close()
	decoder := gob.NewDecoder(bufio.NewReader(file))
	for {
		var p packed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return usageError{fmt.Errorf("read random cases: %w", err)}
		}
		t := trialUnder(&policy.Policy{Program: p.Program, Image: p.Image}, p.Source)
		if t == nil {
			return fmt.Errorf("seed %d: no case any more", p.Seed)
		}
		t.seed = p.Seed
		if err := f(t); err != nil {
			return err
		}
	}
}
