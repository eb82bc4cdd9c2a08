// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// maxProgram bounds a program in a request: a ttrpc message holds 4 MiB.
const maxProgram = 3 << 20

// images compiles programs, one at a time for each and once for equal ones: the
// kernel side shares the tables of scopes that have the same image.
type images struct {
	compile func(*ir.Program) (*dfa.Image, error)

	mu     sync.Mutex
	byHash map[[sha256.Size]byte]*image // guarded by mu
}

// image is a compiled program that some scopes use.
type image struct {
	hash    [sha256.Size]byte
	once    sync.Once
	err     error
	program *ir.Program
	tables  *dfa.Image
	users   int // guarded by images.mu
}

// acquire returns the compiled program; the caller releases it.
func (c *images) acquire(text []byte) (*image, error) {
	if len(text) > maxProgram {
		return nil, fmt.Errorf("policy program has %d bytes; the limit is %d", len(text), maxProgram)
	}
	hash := sha256.Sum256(text)
	c.mu.Lock()
	if c.byHash == nil {
		c.byHash = map[[sha256.Size]byte]*image{}
	}
	img := c.byHash[hash]
	if img == nil {
		img = &image{hash: hash}
		c.byHash[hash] = img
	}
	img.users++
	c.mu.Unlock()
	img.once.Do(func() { img.program, img.tables, img.err = c.build(text) })
	if img.err != nil {
		c.release(img)
		return nil, img.err
	}
	return img, nil
}

func (c *images) build(text []byte) (*ir.Program, *dfa.Image, error) {
	program, err := decodeProgram(text)
	if err != nil {
		return nil, nil, err
	}
	tables, err := c.compile(program)
	if err != nil {
		return nil, nil, fmt.Errorf("compile policy: %w", err)
	}
	return program, tables, nil
}

func decodeProgram(text []byte) (*ir.Program, error) {
	program := &ir.Program{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields() // what this engine does not know it cannot enforce
	if err := decoder.Decode(program); err != nil {
		return nil, fmt.Errorf("read policy program: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read policy program: more than one JSON value")
	}
	for i, clause := range program.Clauses {
		if clause.Rule < 0 || clause.Rule >= len(program.Rules) {
			return nil, fmt.Errorf("read policy program: clause %d names rule %d of %d", i, clause.Rule, len(program.Rules))
		}
	}
	return program, nil
}

func (c *images) release(img *image) {
	if img == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if img.users--; img.users == 0 && c.byHash[img.hash] == img {
		delete(c.byHash, img.hash)
	}
}

// defaultNumbers lists, for each default of the image, its number in the program.
func (img *image) defaultNumbers() []int {
	numbers := make([]int, len(img.tables.Defaults))
	for i, d := range img.tables.Defaults {
		numbers[i] = d.Default
	}
	return numbers
}

// protectNumbers lists, for each protected pattern of the image, its number in the
// program.
func (img *image) protectNumbers() []int {
	numbers := make([]int, len(img.tables.Protects))
	for i, p := range img.tables.Protects {
		numbers[i] = p.Protect
	}
	return numbers
}

// clauseNumbers lists, for each clause of the image, its number in the program.
func (img *image) clauseNumbers() []int {
	numbers := make([]int, len(img.tables.Clauses))
	for i, clause := range img.tables.Clauses {
		numbers[i] = clause.Clause
	}
	return numbers
}
