// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/actplane/actplane/bpf"
)

// Way is how a label came to a process, or was given away by one (enum way).
type Way uint8

// The ways.
const (
	BySourceFile     Way = iota // a file that the policy names
	BySourceExec                // a program that the policy names
	BySourceEndpoint            // an address that the policy names
	ByFile                      // a file that carried it
	ByProgram                   // the file of a program
	ByEndpoint                  // a peer in the scope
	ByEndorsement               // a program that the policy endorses with
	BySocket
	ByPipe // and memfds
	ByTerminal
	ByQueue
	ByLooking // one process looked into the other
	// What is shared: a file that is mapped, a channel that the one reads, memory.
	BySharedFile
	BySharedChannel
	BySharedMemory
	BySharedMemoryToo // between parent and child until an exec
)

// GateMove is what became of gates (enum gate_move, plus one).
type GateMove uint8

// What can become of gates.
const (
	GateOpened GateMove = iota + 1 // by a program's run or end, or by something done to a file
	GateStaled
	GateLate   // the program ended as it should, and what the gates depend on had changed
	GateMissed // the program ended otherwise than it should
	GateClosed // what had opened them is not the program any more that it was
)

// Gain is one record of how labels came to where they are, or gates to what they are. Process is the one that acts.
// Unless Gives is set it has gained Labels, from Other, or from one of Objects. With it,
// it gave them to Other, or to Objects[0]; or that has them by its name (BySourceFile).
type Gain struct {
	Slot    Slot
	Time    time.Time
	Way     Way
	Gives   bool
	Labels  uint64  // of a Gate, the gates
	Process Process // Labels of it are not known
	Started time.Time
	PID     int // thread group, as the host numbers it
	Inside  int // and as its own pid namespace does
	UID     uint32
	Comm    string
	Other   ProcessID // 0: none
	Objects [2]FileID // zero: none
	// Object is the path, address or socket name, as the container sees it, or "". Of a
	// long path it is the end, and Cut tells that.
	Object string
	Cut    bool
	// Gate is what Process did to gates, with the Status that its program ended with, as
	// wait(2) has it; or 0: it is about labels.
	Gate   GateMove `json:",omitempty"`
	Status uint32   `json:",omitempty"`
}

// isGain tells a record of a gain from others.
func isGain(sample []byte) bool {
	return len(sample) > 0 && sample[0] >= recordGain && sample[0] <= recordGate
}

// decodeGain reads one; see decode.
func decodeGain(sample []byte, boot time.Time) (Gain, error) {
	var raw bpf.EnforcerOrigin
	if size := binary.Size(raw); len(sample) < size {
		return Gain{}, fmt.Errorf("decode a gain: %d bytes, it has %d", len(sample), size)
	}
	if err := binary.Read(bytes.NewReader(sample), binary.NativeEndian, &raw); err != nil {
		return Gain{}, fmt.Errorf("decode a gain: %w", err)
	}
	slot := Slot{Index: raw.Scope, Generation: raw.Generation}
	g := Gain{
		Slot: slot, Time: boot.Add(time.Duration(raw.Time)), Way: Way(raw.Way), Gives: raw.Kind == recordGive,
		Labels: raw.Labels, Started: boot.Add(time.Duration(raw.Started)),
		PID: int(raw.Tgid), Inside: int(raw.Inside), UID: raw.Uid, Comm: comm(raw.Comm[:]),
		Other: ProcessID(raw.Other), Cut: raw.Cut != 0,
		Process: Process{
			ID: ProcessID(raw.Process), Slot: slot, Setup: raw.Flags&processSetup != 0, Deep: raw.Flags&processDeep != 0,
			Ancestors: ancestors(raw.Ancestors[:]),
		},
	}
	if raw.Kind == recordGate {
		g.Gate, g.Status = GateMove(g.Way)+1, uint32(g.Other)
		g.Way, g.Other = 0, 0
	}
	for i, id := range raw.Objects {
		g.Objects[i] = fileOf(id)
	}
	if size := int(raw.ObjectSize); raw.ObjectKind != 0 && size > 0 && size <= len(raw.Object) {
		object := make([]byte, size)
		for i := range object {
			object[i] = byte(raw.Object[i])
		}
		g.Object = objectText(raw.ObjectKind, object, raw.Protocol)
	}
	return g, nil
}

func fileOf(id bpf.EnforcerFileId) FileID {
	return FileID{Device: id.Dev, Generation: id.Generation, Inode: id.Ino}
}
