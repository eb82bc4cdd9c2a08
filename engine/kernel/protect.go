// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"math"
	"slices"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// What is protected is blocked by clauses that the kernel has behind those of the
// image: clause len(image.Clauses)+N is protected pattern N.

func protectClause(p dfa.Protect) bpf.EnforcerClause {
	return bpf.EnforcerClause{All: p.All, None: p.None, Arg: -1, Target: -1, Effect: uint8(ir.Block)}
}

// changes are the operations that change what is protected.
func changes(op ir.Op) bool { return op == ir.Write || op == ir.Append || op == ir.Unlink }

// withProtects lists a row's clauses of an operation, those that protect behind the
// others that block.
func withProtects(image *dfa.Image, row *dfa.Row, op ir.Op) []uint16 {
	list := row.Clauses[op]
	if !changes(op) || len(row.Protects) == 0 {
		return list
	}
	at := slices.IndexFunc(list, func(c uint16) bool { return image.Clauses[c].Effect < ir.Block })
	if at < 0 {
		at = len(list)
	}
	var protects []uint16
	for _, p := range row.Protects {
		protects = append(protects, uint16(len(image.Clauses))+p)
	}
	return slices.Insert(slices.Clone(list), at, protects...)
}

// keptRows returns the image's rows and behind them rows that have nothing but what
// is protected, for files that are known by other names: of each row the number of
// its own, or 0, and the number of the one that has all.
func keptRows(image *dfa.Image) (rows []dfa.Row, kept []uint32, all uint32) {
	rows, kept = slices.Clone(image.Rows), make([]uint32, len(image.Rows))
	if len(image.Protects) == 0 {
		return rows, kept, 0
	}
	number := map[string]uint32{}
	add := func(protects []uint16) uint32 {
		key := fmt.Sprint(protects)
		if number[key] == 0 {
			number[key] = uint32(len(rows))
			rows, kept = append(rows, dfa.Row{Protects: protects}), append(kept, 0)
		}
		return number[key]
	}
	for i := range image.Rows {
		if i != dfa.UnknownRow && len(rows[i].Protects) > 0 {
			kept[i] = add(rows[i].Protects)
		}
	}
	return rows, kept, add(image.Rows[dfa.UnknownRow].Protects)
}

// encodeMoves lays out what the rename of a directory matters to.
func (t *tables) encodeMoves(image *dfa.Image) error {
	if len(t.rows) > math.MaxUint16+1 {
		return fmt.Errorf("encode the policy: %d rows, the engine holds %d", len(t.rows), math.MaxUint16+1)
	}
	for _, m := range image.Moves.List {
		index := m.Index
		if m.Kind == dfa.MoveProtect {
			index += len(image.Clauses)
		}
		t.moves = append(t.moves, bpf.EnforcerMove{Mask: m.Mask, Word: uint32(m.Word), Index: uint32(index), Kind: uint32(m.Kind), Op: uint32(m.Op)})
	}
	t.classes = image.Moves.Classes
	t.head.Moves, t.head.MoveWords = uint32(len(t.moves)), uint32(image.Moves.Words)
	return nil
}
