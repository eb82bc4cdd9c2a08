// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/internal/atomicfile"
)

// Asked is what became of an ask (enum asked in abi.h).
type Asked uint8

// What can become of it.
const (
	NotAsked        Asked = iota
	Opened                // a request was opened; the operation may be tried again
	StillOpen             // it was tried again, and nobody has answered yet
	Held                  // a request was opened, and the process stopped
	heldAgain             // never in a record
	TimedOut              // nobody answered in time
	Denied                // a person denied this operation
	Granted               // a grant was used
	NoRoom                // too many requests are open
	Unnamed               // what it is about cannot be told, so that nobody could grant it
	CannotHold            // who does this cannot be stopped
	Written               // somebody has the program open to write, or mapped
	SharedDirectory       // other processes can change the directory in which it runs
)

// AskKey names an operation under a rule, with all that a grant binds: a keyed hash,
// the same for the same operation as long as the key in the state directory is.
type AskKey [2]uint64

// Request is an operation that waits for a person's answer.
type Request struct {
	Slot Slot
	Key  AskKey
	// Process is the one that is held; 0: nobody is, and the operation may be tried
	// again by anyone.
	Process ProcessID
	PID     int           // of who asked first
	Started time.Duration // when that process was started, since boot
	Since   time.Time
	Until   time.Time // when a held one is refused
}

// Answer is what a person said to an operation.
type Answer struct {
	Denied bool
	Count  uint32 // of a grant: for so many operations, beside those in time
	Timed  bool
	// For is how long it still holds; 0 is as long as the scope. Of one that is not
	// Timed it is when the count ends.
	For  time.Duration
	Over bool   // it holds no longer
	Used uint64 // operations that it let through or refused
}

// sinceBoot is CLOCK_BOOTTIME.
func sinceBoot() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}

// Requests lists the open requests of all scopes.
func (k *Kernel) Requests() (requests []Request, err error) {
	// Containers open and close requests meanwhile, and half a list would be taken for
	// what is there.
	for range 8 {
		if requests, err = k.listRequests(); !errors.Is(err, ebpf.ErrIterationAborted) {
			break
		}
	}
	return requests, err
}

func (k *Kernel) listRequests() ([]Request, error) {
	var requests []Request
	var key bpf.EnforcerRequestKey
	var value bpf.EnforcerRequest
	now, boot := sinceBoot(), bootTime()
	entries := k.maps["requests"].Iterate()
	for entries.Next(&key, &value) {
		r := Request{
			Slot: Slot{Index: key.Ask.Scope, Generation: key.Ask.Generation}, Key: key.Ask.Sum,
			Process: ProcessID(key.Process), PID: int(value.Tgid), Started: time.Duration(value.Started),
			Since: boot.Add(time.Duration(value.Since)),
		}
		if r.Process != 0 {
			r.Until = time.Now().Add(time.Duration(value.Until) - now)
		}
		requests = append(requests, r)
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	return requests, nil
}

func (s Slot) askKey(key AskKey) bpf.EnforcerAskKey {
	return bpf.EnforcerAskKey{Sum: key, Scope: s.Index, Generation: s.Generation}
}

// CloseRequest closes a request; it may be closed already.
func (k *Kernel) CloseRequest(slot Slot, key AskKey, process ProcessID) error {
	request := bpf.EnforcerRequestKey{Ask: slot.askKey(key), Process: uint64(process)}
	_, err := k.programs["close_request"].Run(&ebpf.RunOptions{Context: request})
	if err != nil {
		return fmt.Errorf("close a request: %w", err)
	}
	return nil
}

// SetAnswer answers an operation: a grant adds to one that there is, a denial takes its
// place. It holds for what is decided from now on.
func (k *Kernel) SetAnswer(slot Slot, key AskKey, a Answer) error {
	answers, err := k.Answers(slot)
	if err != nil {
		return err
	}
	old, known := answers[key]
	if limit := int(bpf.EnforcerLimitsLIMIT_SCOPE_ANSWERS); !known && len(answers) >= limit {
		return fmt.Errorf("the container has %d answers in force, which is the limit", limit)
	}
	change := bpf.EnforcerAnswerChange{Key: slot.askKey(key), Count: a.Count, Denied: uint8(number(a.Denied)), Timed: uint8(number(a.Timed))}
	if a.Timed && known && !a.Denied && !old.Denied && !old.Over && old.Timed { // the longer of the two
		a.For = longer(a.For, old.For)
	}
	if a.For > 0 {
		change.Until = uint64(sinceBoot() + a.For)
	}
	failed, err := k.programs["change_answer"].Run(&ebpf.RunOptions{Context: change})
	if err == nil && failed != 0 {
		err = errors.New("the table of answers is full")
	}
	if err != nil {
		return fmt.Errorf("answer a request: %w", err)
	}
	return nil
}

// longer of two durations of which 0 has no end.
func longer(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// Answers lists what people answered in a scope, also what holds no longer.
func (k *Kernel) Answers(slot Slot) (map[AskKey]Answer, error) {
	found := map[AskKey]Answer{}
	var key bpf.EnforcerAskKey
	var value bpf.EnforcerAnswer
	now := sinceBoot()
	entries := k.maps["answers"].Iterate()
	for entries.Next(&key, &value) {
		if key.Scope != slot.Index || key.Generation != slot.Generation {
			continue
		}
		a := Answer{Denied: value.Denied != 0, Count: value.Count, Timed: value.Timed != 0, Used: value.Used}
		if value.Until != 0 {
			a.For = time.Duration(value.Until) - now
		}
		past := a.For < 0
		a.Over = (!a.Timed || past) && a.Count == 0 || !a.Timed && past
		if past {
			a.Timed, a.For = a.Denied, 0
		}
		found[key.Sum] = a
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("list answers: %w", err)
	}
	return found, nil
}

// DropAnswer takes an answer back, or forgets one that is over: what begins from then on
// asks. An operation that has taken its part of a grant already may still happen.
func (k *Kernel) DropAnswer(slot Slot, key AskKey) error {
	if err := k.maps["answers"].Delete(slot.askKey(key)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("drop an answer: %w", err)
	}
	return nil
}

// EndUses lets nobody use any more, without another answer, what was opened with an
// answer: descriptors and connections.
func (k *Kernel) EndUses(slot Slot, key AskKey) error {
	if _, err := k.programs["end_uses"].Run(&ebpf.RunOptions{Context: slot.askKey(key)}); err != nil {
		return fmt.Errorf("end the use of an answer: %w", err)
	}
	return nil
}

// dropAsks forgets the requests and answers of a scope that is gone.
func (k *Kernel) dropAsks(slot Slot) error {
	requests, err := k.Requests()
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range requests {
		if r.Slot == slot {
			errs = append(errs, k.CloseRequest(slot, r.Key, r.Process))
		}
	}
	answers, err := k.Answers(slot)
	errs = append(errs, err)
	for key := range answers {
		errs = append(errs, k.DropAnswer(slot, key))
	}
	return errors.Join(append(errs, k.maps["requests_count"].Put(slot.Index, uint32(0)))...)
}

// secret is the key of all AskKeys: 16 bytes in the state directory, so that answers
// outlive what is pinned, and a boot.
func (k *Kernel) secret() (secret [2]uint64, err error) {
	path := filepath.Join(k.config.StateDir, "ask.key")
	text, err := os.ReadFile(path)
	if err == nil && len(text) == 16 {
		return [2]uint64{binary.NativeEndian.Uint64(text), binary.NativeEndian.Uint64(text[8:])}, nil
	}
	text = make([]byte, 16)
	_, _ = rand.Read(text) // never fails
	if err := atomicfile.Fill(path, atomicfile.Options{Mode: 0o600, Sync: true}, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}); err != nil {
		return secret, fmt.Errorf("write the key of requests: %w", err)
	}
	return [2]uint64{binary.NativeEndian.Uint64(text), binary.NativeEndian.Uint64(text[8:])}, nil
}
