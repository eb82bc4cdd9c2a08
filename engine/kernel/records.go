// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/policy/ir"
)

// Values of the enums record_kind, object_kind, process_flag, reason, modified and use in
// abi.h.
const (
	processSetup  = 1
	processDeep   = 2
	recordProbe   = 2
	recordGain    = 3
	recordGive    = 4
	recordGate    = 5
	objectPath    = 1
	objectAddress = 2
	objectUnix    = 3
	reasonDefault = 6 // no clause, but a default decided
	reasonMoved   = 7 // the rename of a directory, and a file source below it
	modifiedYes   = 1
	modifiedNo    = 2
	usesEndpoints = 1 << 16
	usesCode      = 1 << 17
	usesNames     = 1 << 18
)

// Records reads what the programs report, until the context ends: verdicts, and how
// labels came to where they are, in the order in which it happened. Only one call at
// a time. Self-tests get their records through it, so it must be running.
func (k *Kernel) Records(ctx context.Context, handle func(Record), gained func(Gain)) error {
	return ReadRecords(ctx, k.maps["records"], func(record Record, row uint32) {
		if at := record.Slot.Index; at < uint32(len(k.current)) {
			record.Former = record.image != k.current[at].Load()
		}
		if record.Probe {
			k.answerProbe(record, row)
			return
		}
		handle(record)
	}, gained)
}

// ReadRecords reads a ring buffer of records, until the context ends or one of them is
// malformed. handle also gets a record's row, by which self-tests know theirs; whether the
// record is of a former image is not known.
func ReadRecords(ctx context.Context, ring *ebpf.Map, handle func(record Record, row uint32), gained func(Gain)) error {
	reader, err := ringbuf.NewReader(ring)
	if err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	defer reader.Close()
	stop := context.AfterFunc(ctx, func() { _ = reader.Close() })
	defer stop()
	boot := bootTime()
	var raw ringbuf.Record
	for {
		if err := reader.ReadInto(&raw); err != nil {
			if errors.Is(err, os.ErrClosed) {
				return ctx.Err()
			}
			return fmt.Errorf("read records: %w", err)
		}
		if isGain(raw.RawSample) {
			gain, err := decodeGain(raw.RawSample, boot)
			if err != nil {
				return err
			}
			gained(gain)
			continue
		}
		record, row, err := decode(raw.RawSample, boot)
		if err != nil {
			return err
		}
		handle(record, row)
	}
}

// bootTime is when CLOCK_BOOTTIME was 0.
func bootTime() time.Time {
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(since.Nano()))
}

// decode reads one record. The kernel side wrote it, from data that the scope's
// processes chose: sizes are checked, texts are not trusted.
func decode(sample []byte, boot time.Time) (record Record, row uint32, err error) {
	var raw bpf.EnforcerRecord
	size := binary.Size(raw)
	if len(sample) < size {
		return record, 0, fmt.Errorf("decode a record: %d bytes, its head has %d", len(sample), size)
	}
	if err := binary.Read(bytes.NewReader(sample), binary.NativeEndian, &raw); err != nil {
		return record, 0, fmt.Errorf("decode a record: %w", err)
	}
	tail := sample[size:]
	if uint64(len(tail)) < uint64(raw.ObjectSize)+uint64(raw.ArgsSize) {
		return record, 0, fmt.Errorf("decode a record: %d bytes of text, it names %d", len(tail), raw.ObjectSize+raw.ArgsSize)
	}
	object, args := tail[:raw.ObjectSize], tail[raw.ObjectSize:raw.ObjectSize+raw.ArgsSize]
	record = Record{
		Slot:      Slot{Index: raw.Scope, Generation: raw.Generation},
		Time:      boot.Add(time.Duration(raw.Time)),
		Probe:     raw.Kind == recordProbe,
		Effect:    ir.Effect(raw.Effect),
		Op:        ir.Op(raw.Op),
		Object:    objectText(raw.ObjectKind, object, raw.Protocol),
		Args:      splitArgs(args),
		ArgsCut:   raw.ArgsCut != 0,
		PID:       int(raw.Tgid),
		Comm:      comm(raw.Comm[:]),
		Asked:     Asked(raw.Asked),
		Ask:       AskKey(raw.Ask),
		UID:       raw.Uid,
		Mapped:    raw.Mapped != 0,
		image:     raw.Image,
		Directory: fileOf(raw.Directory),

		File:    fileOf(raw.File),
		Carried: raw.Carried,
		Sources: raw.Sources,
		Lineage: raw.Lineage,
		Started: boot.Add(time.Duration(raw.Started)),
		Stderr:  fileOf(raw.Errors),
	}
	record.Process = Process{
		ID: ProcessID(raw.Process), Slot: record.Slot, Setup: raw.Flags&processSetup != 0,
		Deep: raw.Flags&processDeep != 0, Labels: raw.Labels,
		Ancestors: ancestors(raw.Ancestors[:]),
	}
	for _, parent := range raw.Parents {
		if parent.Tgid == 0 {
			break
		}
		record.Parents = append(record.Parents, Parent{PID: int(parent.Tgid), Inside: int(parent.Inside), Comm: comm(parent.Comm[:])})
	}
	record.decidedBy(int(raw.Clause), raw.Reason)
	record.Matches, record.MatchesCut = matches(raw.Matching[:], int(raw.Matches))
	return record, raw.Row, nil
}

// matches are the numbers that stand in a record, each once.
func matches(matching []uint16, n int) (numbers []int, cut bool) {
	cut = n > len(matching)
	for _, number := range matching[:min(n, len(matching))] {
		numbers = append(numbers, int(number))
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), cut
}

// decidedBy notes what decided: a number, of what the reason says.
func (r *Record) decidedBy(number int, reason uint8) {
	r.Clause, r.Default, r.Label = -1, -1, -1
	switch r.Reason = reasonText(reason); {
	case reason == reasonDefault:
		r.Default = number
	case reason == reasonMoved:
		r.Label = number
	case r.Reason == "":
		r.Clause = number
	}
}

func comm(bytes_ []int8) string {
	name := make([]byte, 0, len(bytes_))
	for _, c := range bytes_ {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	return string(name)
}

// splitArgs takes the NULs out of argv's text.
func splitArgs(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	var args []string
	for _, arg := range bytes.Split(bytes.TrimSuffix(text, []byte{0}), []byte{0}) {
		args = append(args, string(arg))
	}
	return args
}

// objectText writes an object as the language does.
func objectText(kind uint8, object []byte, protocol uint8) string {
	switch kind {
	case objectPath, objectUnix:
		if len(object) == 0 {
			return "(a file without a path here)"
		}
		return string(object)
	case objectAddress:
		if len(object) != 18 {
			return "(an unreadable address)"
		}
		address := netip.AddrFrom16([16]byte(object)).Unmap()
		text := netip.AddrPortFrom(address, binary.BigEndian.Uint16(object[16:])).String()
		if protocol == unix.IPPROTO_UDP {
			text += "/udp"
		}
		return text
	default:
		return ""
	}
}

// reasonText explains the decisions that no clause made (enum reason).
func reasonText(reason uint8) string {
	switch reason {
	case 0, reasonDefault, reasonMoved:
		return ""
	case 1:
		return "the process's scope was closed"
	case 2:
		return "the kernel had no memory for the process's state"
	case 3:
		return "a process may not look into one that is being set up or that is outside of its scope"
	case 4:
		return "the program's arguments could not be read"
	case 5:
		return "too many interpreters one after the other"
	case 8:
		return "more rules ask about one operation than it can have grants"
	case 9:
		return "the arguments, the environment or the working directory are not those that were granted"
	case 10:
		return "the program ran, and does not count for conditions of the policy that name it, since it, what interprets or loads it, or a link to that was written, renamed or linked inside the container"
	case 11:
		return "the program ran, and does not count for conditions of the policy that name it, since another process traces it"
	case 12:
		return "the program ran, and does not count for conditions of the policy that name it, since it was started with a variable that makes it run other code (LD_PRELOAD, PYTHONPATH, NODE_OPTIONS or the like); without the variable it does"
	case 13:
		return "labels cannot be followed through this, and the policy asks for labels"
	case 14:
		return "rules that were added for this process do not hold for the one that it reaches into"
	case 15:
		return "rules were added twice while the program was being started"
	case 16:
		return "the command exchanges what is in files, renumbers them or shows them under other paths, which no rule can be asked about, and the policy has labels or rules about files"
	default:
		return fmt.Sprintf("engine reason %d", reason)
	}
}
