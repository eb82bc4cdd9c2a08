// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// tables is an image in the layout of abi.h.
type tables struct {
	head       bpf.EnforcerImage
	next       []byte // dfa_small or dfa_large
	states     []bpf.EnforcerState
	rows       []bpf.EnforcerRow
	candidates []uint32
	clauses    []bpf.EnforcerClause
	gateRefs   []bpf.EnforcerGateRef
	tokens     []bpf.EnforcerArgSet
	moves      []bpf.EnforcerMove
	classes    []uint64 // of directories that move

	hashed bool
	sum    [sha256.Size]byte // see hash
}

// encode lays an image out for the kernel. It fails on what does not fit.
func encode(image *dfa.Image) (*tables, error) {
	states := len(image.Next) / 256
	if states*256 != len(image.Next) || states == 0 || len(image.RowOf) != states {
		return nil, errors.New("encode the policy: its automaton is not whole")
	}
	t := &tables{head: bpf.EnforcerImage{
		FdOps:     descriptorOps(image),
		Marks:     number(marks(image)),
		Labels:    keptLabels(image),
		Integrity: image.Integrity,
		Confines:  image.Confines,
		Asks:      asks(image),
		ArgWords:  uint32(image.ArgWords),
	}}
	t.head.Ops = uses(image)
	if err := t.encodeDefaults(image); err != nil {
		return nil, err
	}
	if image.ArgWords > len(t.head.ArgStart) || len(image.ArgStart) > len(t.head.ArgStart) {
		return nil, fmt.Errorf("encode the policy: %d argv positions, the engine holds %d",
			image.ArgWords*64, bpf.EnforcerLimitsLIMIT_ARG_POSITIONS)
	}
	copy(t.head.ArgStart[:], image.ArgStart)
	for i, start := range image.Start {
		t.head.Start[i] = uint32(start)
	}
	if err := t.encodeStates(image, states); err != nil {
		return nil, err
	}
	for i := range image.Clauses {
		clause, err := encodeClause(&image.Clauses[i])
		if err != nil {
			return nil, err
		}
		t.clauses = append(t.clauses, clause)
	}
	for _, p := range image.Protects {
		t.clauses = append(t.clauses, protectClause(p))
	}
	t.tokens = append(t.tokens, bpf.EnforcerArgSet{}) // index 0: no position
	rows, kept, all := keptRows(image)
	for i := range rows {
		t.encodeRow(image, &rows[i], kept[i])
	}
	t.head.KeptAll = all
	return t, t.encodeMoves(image)
}

// uses is the set of operations that are decided on, and of what else the programs of
// hooks that other scopes need can leave out.
func uses(image *dfa.Image) uint32 {
	var set uint32
	for op := ir.Op(0); op < ir.NumOps; op++ {
		if listed(image, op) {
			set |= 1 << op
		}
	}
	if mapsCode(image) {
		set |= usesCode
	}
	if image.FileNames {
		set |= usesNames
	}
	var address dfa.Row // rows of files have sources too; a few too many do no harm
	for i := range image.Rows {
		address.Sources |= image.Rows[i].Sources
	}
	if address.Sources != 0 {
		set |= usesEndpoints
	}
	return set
}

// keptLabels are those that are kept of files: what some clause tests, and where
// labels of integrity are lost by a flow, every label.
func keptLabels(image *dfa.Image) uint64 {
	kept := image.Labels
	if kept != 0 && image.Integrity != 0 {
		for i := range image.Rows {
			kept |= image.Rows[i].Sources | image.Rows[i].ExecSources
		}
	}
	return kept
}

func (t *tables) encodeDefaults(image *dfa.Image) error {
	if len(image.Defaults) > len(t.head.DefaultEffects) {
		return fmt.Errorf("encode the policy: %d defaults, the engine holds %d", len(image.Defaults), len(t.head.DefaultEffects))
	}
	for i, d := range image.Defaults {
		t.head.DefaultEffects[i] = uint8(d.Effect)
		var err error
		if t.head.DefaultHolds[i], err = encodeHold(d.Hold); err != nil {
			return err
		}
		for _, op := range defaultOps(d) {
			t.head.Defaults[op] |= 1 << i
		}
	}
	return nil
}

// defaultOps are the operations that a default holds for: what is connected is sent to.
func defaultOps(d dfa.Default) []ir.Op {
	if d.Op == ir.Connect {
		return []ir.Op{ir.Connect, ir.Send}
	}
	return []ir.Op{d.Op}
}

func (t *tables) encodeStates(image *dfa.Image, states int) error {
	size := int(bpf.EnforcerLimitsLIMIT_STATES_SMALL)
	if states > size {
		size, t.head.Large = int(bpf.EnforcerLimitsLIMIT_STATES_LARGE), 1
	}
	if states > size {
		return fmt.Errorf("encode the policy: %d automaton states, the engine holds %d", states, size)
	}
	t.next = make([]byte, size*256*2)
	for i, to := range image.Next {
		binary.NativeEndian.PutUint16(t.next[2*i:], to)
	}
	t.states = make([]bpf.EnforcerState, size)
	for state, row := range image.RowOf {
		t.states[state].Row = row
	}
	for state, directory := range image.Moves.Dir {
		t.states[state].Directory = directory
	}
	return nil
}

func encodeClause(clause *dfa.Clause) (bpf.EnforcerClause, error) {
	encoded := bpf.EnforcerClause{
		All:           clause.All,
		None:          clause.None,
		UnlessLineage: clause.UnlessLineage,
		Arg:           int32(clause.Arg),
		Target:        int16(clause.Target),
		Effect:        uint8(clause.Effect),
		Op:            uint8(clause.Op),
		Rule:          uint16(clause.Rule),
		Lifts:         clause.Lifts,
	}
	if clause.Rule > math.MaxUint16 {
		return encoded, fmt.Errorf("encode the policy: rule %d, the engine tells %d apart", clause.Rule, math.MaxUint16+1)
	}
	var err error
	if encoded.Hold, err = encodeHold(clause.Hold); err != nil {
		return encoded, err
	}
	if clause.UnlessModified {
		encoded.UnlessModified |= 1 << modifiedYes
	}
	if clause.UnlessUnmodified {
		encoded.UnlessModified |= 1 << modifiedNo
	}
	encoded.Any = uint8(number(clause.Any))
	if len(clause.UnlessGates) > len(encoded.UnlessGates) {
		return encoded, fmt.Errorf("encode the policy: %d `after` conditions on one clause, the engine holds %d",
			len(clause.UnlessGates), len(encoded.UnlessGates))
	}
	for i, gate := range clause.UnlessGates {
		encoded.UnlessGates[i] = uint8(gate + 1)
	}
	return encoded, nil
}

// encodeHold gives milliseconds.
func encodeHold(d time.Duration) (uint32, error) {
	ms := (d + time.Millisecond - 1).Milliseconds()
	if ms < 0 || ms > math.MaxUint32 {
		return 0, fmt.Errorf("encode the policy: a process cannot be held for %v", d)
	}
	return uint32(ms), nil
}

// asks is the set of operations about which a person can be asked.
func asks(image *dfa.Image) (ops uint32) {
	for i := range image.Clauses {
		if c := &image.Clauses[i]; c.Effect == ir.Ask {
			ops |= 1 << c.Op
		}
	}
	for _, d := range image.Defaults {
		if d.Effect == ir.Ask {
			ops |= 1 << d.Op
		}
	}
	return ops
}

func (t *tables) encodeRow(image *dfa.Image, row *dfa.Row, kept uint32) {
	encoded := bpf.EnforcerRow{
		Kept:        kept,
		Sources:     row.Sources &^ image.Integrity,
		ExecSources: row.ExecSources &^ image.Integrity,
		Lineage:     row.Lineage,
		Targets:     row.Targets,
		Declassify:  row.Declassify,
		Endorse:     row.Endorse,
		Modified:    number(asksForModified(image, row)),
		Opens:       number(opens(row)),
	}
	if len(row.Tokens) > 0 {
		var set bpf.EnforcerArgSet
		copy(set.Words[:], row.Tokens)
		encoded.Tokens = uint32(len(t.tokens))
		t.tokens = append(t.tokens, set)
	}
	for op := ir.Op(0); op < ir.NumOps; op++ {
		if t.head.Defaults[op] != 0 {
			encoded.DefaultOps |= 1 << op
		}
		encoded.Clauses[op] = t.list(withProtects(image, row, op))
		encoded.Allows[op] = t.list(row.Allows[op])
		encoded.Gates[op] = bpf.EnforcerRange{First: uint32(len(t.gateRefs)), Count: uint32(len(row.Gates[op]))}
		for _, ref := range row.Gates[op] {
			t.gateRefs = append(t.gateRefs, encodeGateRef(ref))
		}
		if encoded.DefaultOps>>op&1 != 0 || encoded.Clauses[op].Count+encoded.Gates[op].Count > 0 {
			encoded.Ops |= 1 << op
		}
	}
	encoded.ExecArgs = number(execLooksAtArgs(image, row))
	t.rows = append(t.rows, encoded)
}

func (t *tables) list(clauses []uint16) bpf.EnforcerRange {
	first := len(t.candidates)
	for _, clause := range clauses {
		t.candidates = append(t.candidates, uint32(clause))
	}
	return bpf.EnforcerRange{First: uint32(first), Count: uint32(len(clauses))}
}

// candidates are the indexes of all clauses that a row lists for an operation.
func candidates(row *dfa.Row, op ir.Op) []uint16 {
	return slices.Concat(row.Clauses[op], row.Allows[op])
}

func asksForModified(image *dfa.Image, row *dfa.Row) bool {
	for op := ir.Op(0); op < ir.NumOps; op++ {
		for _, index := range candidates(row, op) {
			if c := &image.Clauses[index]; c.UnlessModified || c.UnlessUnmodified {
				return true
			}
		}
	}
	return false
}

func encodeGateRef(ref dfa.GateRef) bpf.EnforcerGateRef {
	encoded := bpf.EnforcerGateRef{Arg: int32(ref.Arg), Exit: int16(ref.Exit), Gate: uint8(ref.Gate)}
	encoded.Arm = uint8(number(ref.Arm))
	return encoded
}

// pathRow is the number in which the kernel side carries the two rows of a file's path.
func pathRow(image *dfa.Image, path string) int {
	rows := image.PathRows([]byte(path))
	if !image.FileNames {
		rows[1] = dfa.NoRow
	}
	return rows[0] | rows[1]<<bpf.EnforcerLimitsLIMIT_ROW_BITS
}

func number(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// descriptorOps is the set of operations that are decided again when an open
// descriptor is used: those whose clauses depend on what can have changed, or is
// otherwise for a process that was given the descriptor, those that were added since it
// was opened, and those that move gates.
func descriptorOps(image *dfa.Image) uint32 {
	changing := func(row *dfa.Row, op ir.Op) bool {
		for _, index := range candidates(row, op) {
			clause := &image.Clauses[index]
			if clause.Added || clause.All|clause.None|clause.UnlessLineage != 0 || len(clause.UnlessGates) > 0 ||
				clause.UnlessModified || clause.UnlessUnmodified {
				return true
			}
		}
		return len(row.Gates[op]) > 0
	}
	var ops uint32
	if slices.ContainsFunc(image.Protects, func(p dfa.Protect) bool { return p.Added || p.All|p.None != 0 }) {
		ops |= 1<<ir.Write | 1<<ir.Append
	}
	for i := range image.Rows {
		if i == dfa.UnknownRow {
			continue // has what the others have
		}
		for _, op := range []ir.Op{ir.Read, ir.Write, ir.Append} {
			if changing(&image.Rows[i], op) {
				ops |= 1 << op
			}
		}
	}
	return ops
}

// marks tells whether it matters if a file was changed inside the scope: a program
// then arms no gate, is no lineage and transforms nothing, clauses can look at it,
// and what a person granted was for the file as it was.
func marks(image *dfa.Image) bool {
	if asks(image) != 0 {
		return true
	}
	for i := range image.Rows {
		row := &image.Rows[i]
		if opens(row) || asksForModified(image, row) {
			return true
		}
	}
	return false
}

// opens tells whether running a program of the row opens something.
func opens(row *dfa.Row) bool {
	return row.Lineage|row.Declassify|row.Endorse != 0 ||
		slices.ContainsFunc(row.Gates[ir.Exec], func(ref dfa.GateRef) bool { return ref.Arm })
}

func execLooksAtArgs(image *dfa.Image, row *dfa.Row) bool {
	for _, clause := range candidates(row, ir.Exec) {
		if image.Clauses[clause].Arg >= 0 {
			return true
		}
	}
	for _, ref := range row.Gates[ir.Exec] {
		if ref.Arg >= 0 {
			return true
		}
	}
	return false
}

// hash identifies equal images, which share one slot. The tables do not change after
// the first call.
func (t *tables) hash() [sha256.Size]byte {
	if t.hashed {
		return t.sum
	}
	h := sha256.New()
	for _, part := range []any{t.head, t.next, t.states, t.rows, t.candidates, t.clauses, t.gateRefs, t.tokens, t.moves, t.classes} {
		// Fixed-size values: Write cannot fail on them, nor on a hash.
		_ = binary.Write(h, binary.NativeEndian, part)
	}
	t.hashed, t.sum = true, [sha256.Size]byte(h.Sum(nil))
	return t.sum
}

// tableMaps names the map of every table of an image.
func tableMaps() []string {
	return []string{"dfa_small", "dfa_large", "states", "rows", "candidates", "clauses", "gate_refs", "tokens", "moves", "move_classes"}
}

// store fills an image slot, which nobody reads yet.
func (t *tables) store(k *Kernel, slot uint32) error {
	head := t.head
	head.Hash = t.hash()
	if err := k.maps["images"].Put(slot, head); err != nil {
		return fmt.Errorf("store the image's head: %w", err)
	}
	automaton := "dfa_small"
	if t.head.Large == 1 {
		automaton = "dfa_large"
	}
	inner, err := k.newTable(automaton, 1)
	if err != nil {
		return err
	}
	defer inner.Close()
	if err := inner.Put(uint32(0), t.next); err != nil {
		return fmt.Errorf("store %q: %w", automaton, err)
	}
	if err := k.maps[automaton].Put(slot, inner); err != nil {
		return fmt.Errorf("store %q: %w", automaton, err)
	}
	return errors.Join(
		storeTable(k, "states", slot, t.states),
		storeTable(k, "rows", slot, t.rows),
		storeTable(k, "candidates", slot, t.candidates),
		storeTable(k, "clauses", slot, t.clauses),
		storeTable(k, "gate_refs", slot, t.gateRefs),
		storeTable(k, "tokens", slot, t.tokens),
		storeTable(k, "moves", slot, t.moves),
		storeTable(k, "move_classes", slot, t.classes),
	)
}

// newTable makes an inner map like the template that the programs know, with its
// own length.
func (k *Kernel) newTable(name string, length int) (*ebpf.Map, error) {
	spec := k.spec.Maps[name].InnerMap.Copy()
	spec.MaxEntries = uint32(max(length, 1))
	spec.Pinning = ebpf.PinNone
	inner, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, fmt.Errorf("make table %q: %w", name, err)
	}
	return inner, nil
}

func storeTable[T any](k *Kernel, name string, slot uint32, values []T) error {
	inner, err := k.newTable(name, len(values))
	if err != nil {
		return err
	}
	defer inner.Close()
	if len(values) > 0 {
		keys := make([]uint32, len(values))
		for i := range keys {
			keys[i] = uint32(i)
		}
		if _, err := inner.BatchUpdate(keys, values, nil); err != nil {
			return fmt.Errorf("store %q: %w", name, err)
		}
	}
	if err := k.maps[name].Put(slot, inner); err != nil {
		return fmt.Errorf("store %q: %w", name, err)
	}
	return nil
}
