// SPDX-License-Identifier: Apache-2.0

package dfa

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/actplane/actplane/policy/ir"
)

// Moves tells what it means that a directory is renamed, without a look at what is
// in it: which clauses, sources, protected patterns and gates name other files below
// its new path than below its old one. For each of them the names below a directory
// that it matches are a language, and directories with the same language are of one
// class. The classes of a directory stand side by side in Words words of bits; where
// those of two directories differ in a Move's bits, the Move counts.
type Moves struct {
	// Dir is, by state, the number of the directory whose path with a / behind it
	// leads to the state; 0 for states to which no / leads.
	Dir []uint16
	// Words is how many words each directory has in Classes.
	Words int
	// Classes has the words of all directories, in the order of their numbers.
	Classes []uint64
	// List is in the order of decision: the clauses, strictest first, and after those
	// that block what the language refuses by itself; then what opens and what makes
	// stale.
	List []Move
}

// Move is one thing that a rename of a directory can matter to.
type Move struct {
	Kind MoveKind
	// Index is that of the clause or protected pattern in the image, of the label or
	// of the gate.
	Index int
	// Op is the clause's operation or that of the gate's events: write or unlink.
	Op ir.Op
	// Word and Mask are where its classes are.
	Word int
	Mask uint64
}

// MoveKind is what a Move is of.
type MoveKind uint8

// The kinds of moves.
const (
	MoveClause  MoveKind = iota // counts as its operation
	MoveSource                  // is refused: a file source names other files
	MoveProtect                 // is refused if the labels are as it says
	MoveAllow                   // lifts its defaults of one place only: they hold
	MoveGate                    // makes the gate stale
)

const (
	// maxMoveWords bounds the words of one directory. What does not fit shares the
	// bits of the directory's number: it then counts for all directories that any
	// pattern treats differently.
	maxMoveWords = 64
	// maxMoveSteps bounds the transitions that are followed for all classes together,
	// which takes some tenths of a second; what is left then shares those bits too.
	maxMoveSteps = 1 << 25
)

// moves makes the image's Moves. What is matched from Base on is the same below all
// directories.
func (b *builder) moves(r *raw) {
	list := b.moveList()
	if len(list) == 0 {
		return
	}
	m := newMover(b.img, r.bytes)
	for i := range list {
		f := m.field(list[i].rows)
		list[i].Word, list[i].Mask = f.word, f.mask
		if f.mask != 0 { // else it is the same for all directories
			b.img.Moves.List = append(b.img.Moves.List, list[i].Move)
		}
	}
	b.img.Moves.Dir, b.img.Moves.Words, b.img.Moves.Classes = m.dir, m.words, m.table()
}

// moveRows is a Move and the rows of the names that it matches.
type moveRows struct {
	Move
	rows []int32
}

// moveList finds all that a rename can matter to, in the order of decision.
func (b *builder) moveList() []moveRows {
	found := map[Move][]int32{}
	for number := range b.img.Rows {
		if number == UnknownRow {
			continue // stands for no name
		}
		for m := range b.movesOf(&b.img.Rows[number]) {
			found[m] = append(found[m], int32(number))
		}
	}
	var list []moveRows
	for m, rows := range found {
		list = append(list, moveRows{m, rows})
	}
	slices.SortFunc(list, func(x, y moveRows) int {
		return cmp.Or(b.moveRank(x.Move)-b.moveRank(y.Move), int(x.Kind)-int(y.Kind), x.Index-y.Index, int(x.Op)-int(y.Op))
	})
	return list
}

// movesOf are what a row belongs to.
func (b *builder) movesOf(r *Row) map[Move]bool {
	out := map[Move]bool{}
	for label := range ir.MaxLabels {
		if r.Sources>>label&1 == 1 {
			out[Move{Kind: MoveSource, Index: label, Op: ir.Write}] = true
		}
	}
	for _, e := range r.Protects {
		out[Move{Kind: MoveProtect, Index: int(e), Op: ir.Write}] = true
	}
	for _, op := range []ir.Op{ir.Write, ir.Unlink} {
		for _, c := range r.Clauses[op] {
			out[Move{Kind: MoveClause, Index: int(c), Op: op}] = true
		}
		for _, c := range r.Allows[op] {
			out[Move{Kind: MoveAllow, Index: int(c), Op: op}] = true
		}
		for _, g := range r.Gates[op] {
			if !g.Arm {
				out[Move{Kind: MoveGate, Index: g.Gate, Op: op}] = true
			}
		}
	}
	return out
}

func (b *builder) moveRank(m Move) int {
	switch m.Kind {
	case MoveClause:
		return 2 * int(ir.Kill-b.img.Clauses[m.Index].Effect)
	case MoveSource, MoveProtect:
		return 2*int(ir.Kill-ir.Block) + 1
	}
	return 2*int(ir.Kill) + 1
}

// mover finds the classes of directories, for one language after the other.
type mover struct {
	path, base part
	dir        []uint16
	dirs       []int32 // the place in path of each directory; number 0 is none
	budget     int
	// Kept from one language to the next.
	partition partition
	number    map[int32]int // of a block, its class
	class     []int         // of each directory

	fields map[string]field // by language
	column [][]uint64       // of each directory, its words
	words  int
	used   int   // bits of the last word
	shared field // the directory's number
}

type field struct {
	word int
	mask uint64
}

func newMover(img *Image, bytes []byte) *mover {
	m := &mover{
		path: newPart(img, Path, bytes), base: newPart(img, Base, bytes), dir: make([]uint16, len(img.RowOf)), dirs: []int32{0},
		budget: maxMoveSteps, fields: map[string]field{},
	}
	for _, s := range m.path.states {
		if below := img.Next[int(s)*256+'/']; m.dir[below] == 0 {
			m.dir[below] = uint16(len(m.dirs))
			m.dirs = append(m.dirs, m.path.at[below])
		}
	}
	m.number, m.class = map[int32]int{}, make([]int, len(m.dirs))
	m.column = make([][]uint64, len(m.dirs))
	own := make([]int, len(m.dirs))
	for d := range own {
		own[d] = d
	}
	m.shared = m.store(own)
	return m
}

// field returns where the classes of the language of some rows are.
func (m *mover) field(rows []int32) field {
	var name []byte
	for _, r := range rows {
		name = binary.AppendUvarint(name, uint64(r))
	}
	f, ok := m.fields[string(name)]
	if !ok {
		f = m.shared
		if classes := m.classes(rows); classes != nil && m.fits(classes) {
			f = m.store(classes)
		}
		m.fields[string(name)] = f
	}
	return f
}

// classes numbers the directories' classes, nil when it takes too long to find them.
func (m *mover) classes(rows []int32) []int {
	switch {
	case !m.path.has(rows): // what names say is the same everywhere
		clear(m.class)
		return m.class
	case m.base.has(rows):
		return m.classesOfBoth(rows)
	case !m.refine(m.path.inverse(), m.path.mark(rows)):
		return nil
	}
	return m.classesOf(m.dirs)
}

// refine divides the states of an automaton by what they lead to, in the partition.
func (m *mover) refine(inv *inverse, key []int32) bool {
	if m.budget -= len(key); m.budget < 0 {
		return false
	}
	m.partition.fill(key)
	m.budget -= m.partition.refine(inv, m.budget)
	return m.budget >= 0
}

// classesOf numbers the blocks of the partition in which the states of directories are.
func (m *mover) classesOf(dirs []int32) []int {
	clear(m.number)
	for d, s := range dirs[1:] {
		block := m.partition.block[s]
		if _, ok := m.number[block]; !ok {
			m.number[block] = len(m.number)
		}
		m.class[d+1] = m.number[block]
	}
	return m.class
}

// width is how many bits classes need. Of one class alone nothing can differ.
func width(classes []int) int { return bits.Len(uint(slices.Max(classes))) }

func (m *mover) fits(classes []int) bool {
	return m.words < maxMoveWords || m.used+width(classes) <= 64
}

// store puts classes beside those that are there.
func (m *mover) store(classes []int) field {
	n := width(classes)
	if m.words == 0 || m.used+n > 64 {
		m.words, m.used = m.words+1, 0
		for d := range m.column {
			m.column[d] = append(m.column[d], 0)
		}
	}
	f := field{word: m.words - 1, mask: (1<<n - 1) << m.used}
	for d, c := range classes {
		m.column[d][f.word] |= uint64(c) << m.used
	}
	m.used += n
	return f
}

func (m *mover) table() (out []uint64) {
	for _, words := range m.column {
		out = append(out, words...)
	}
	return out
}

// Moved returns what the rename of a directory matters to, from one path to another,
// as the kernel finds it.
func (i *Image) Moved(from, to string) (out []Move) {
	if len(i.Moves.List) == 0 {
		return nil
	}
	x, y := i.directory(from), i.directory(to)
	for _, m := range i.Moves.List {
		if (i.Moves.Classes[x*i.Moves.Words+m.Word]^i.Moves.Classes[y*i.Moves.Words+m.Word])&m.Mask != 0 {
			out = append(out, m)
		}
	}
	return out
}

func (i *Image) directory(path string) int {
	state := i.Start[Path]
	for _, b := range []byte(path + "/") {
		state = i.Next[int(state)*256+int(b)]
	}
	return int(i.Moves.Dir[state])
}
