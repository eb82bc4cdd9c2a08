// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/actplane/actplane/bpf"
)

// The verifier's own limits (MAX_BPF_STACK, MAX_CALL_FRAMES), and how kernel 6.1 rounds
// a frame; later ones round less.
const (
	stackLimit = 512
	callLimit  = 8
	frameUnit  = 32
)

// frame is one function of a program.
type frame struct {
	depth int
	calls []string
}

// What calls each other in a program fits into the stack, on the kernel that counts most
// strictly.
func TestStackFits(t *testing.T) {
	spec, err := bpf.LoadEnforcer()
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range spec.Programs {
		frames, first := framesOf(program.Instructions)
		if depth, calls, path := deepest(frames, first, 1); depth > stackLimit || calls > callLimit {
			t.Errorf("%s: %d bytes in %d calls: %v", name, depth, calls, path)
		}
	}
}

// framesOf takes a linked program apart into its functions.
func framesOf(instructions asm.Instructions) (frames map[string]*frame, first string) {
	frames = map[string]*frame{}
	var current *frame
	stack := map[asm.Register]bool{}
	for _, ins := range instructions {
		if symbol := ins.Symbol(); symbol != "" {
			if _, known := frames[symbol]; !known && (current == nil || isFunction(instructions, symbol)) {
				current = &frame{}
				frames[symbol] = current
				if first == "" {
					first = symbol
				}
				clear(stack)
			}
		}
		current.note(ins, stack)
	}
	return frames, first
}

func isFunction(instructions asm.Instructions, symbol string) bool {
	for _, ins := range instructions {
		if (ins.IsFunctionCall() || ins.IsLoadOfFunctionPointer()) && ins.Reference() == symbol {
			return true
		}
	}
	return false
}

// note takes from an instruction how far it reaches into the stack, and what it calls.
func (f *frame) note(ins asm.Instruction, stack map[asm.Register]bool) {
	op := ins.OpCode
	reach := func(offset int) { f.depth = max(f.depth, -offset) }
	switch {
	case ins.IsFunctionCall() || ins.IsLoadOfFunctionPointer():
		f.calls = append(f.calls, ins.Reference())
	case op.Class() == asm.LdXClass && ins.Src == asm.R10:
		reach(int(ins.Offset))
	case (op.Class() == asm.StXClass || op.Class() == asm.StClass) && ins.Dst == asm.R10:
		reach(int(ins.Offset))
	case op.Class() == asm.ALU64Class && op.ALUOp() == asm.Mov:
		stack[ins.Dst] = op.Source() == asm.RegSource && ins.Src == asm.R10
		return
	case op.Class() == asm.ALU64Class && op.ALUOp() == asm.Add && op.Source() == asm.ImmSource && stack[ins.Dst]:
		reach(int(ins.Constant))
	}
	if op.Class().IsALU() || op.Class() == asm.LdXClass {
		stack[ins.Dst] = false
	}
}

func deepest(frames map[string]*frame, name string, level int) (depth, calls int, path []string) {
	f := frames[name]
	if f == nil || level > 2*callLimit {
		return 0, level, []string{name + "?"}
	}
	own := (max(f.depth, 1) + frameUnit - 1) / frameUnit * frameUnit
	calls = level
	for _, called := range f.calls {
		d, c, p := deepest(frames, called, level+1)
		calls = max(calls, c)
		if d > depth {
			depth, path = d, p
		}
	}
	return own + depth, calls, append([]string{name}, path...)
}
