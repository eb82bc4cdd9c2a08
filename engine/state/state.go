// SPDX-License-Identifier: Apache-2.0

// Package state keeps on disk what belongs to a container and not to one start of it:
// which files carry which labels and marks, which gates are open, what was answered
// to its requests, and its counters. The engine saves it when the container stops and
// gives it back to the kernel before the container's program starts again.
//
// It is written by names, since a policy may change between two starts: labels by
// their names, gates by what they say. Files are known by inode and generation on a
// file system, and file systems by what they are mounted from and where, since the
// kernel gives an overlay another device number each time that it is mounted.
//
// What cannot be read, or was not saved, is lost and said to be: the engine then
// starts the container with every gate stale and every file counting as modified and
// labelled. What is unknown never counts as clean.
package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Version is the layout of a saved state. Others are not read: they are lost.
const Version = 1

// MaxSize bounds a file of saved state, in bytes. All that the kernel side remembers
// of the files of one scope takes a third of it.
const MaxSize = 16 << 20

// Saved is the state of a container that does not run.
type Saved struct {
	ID   string
	Name string // what people call the container
	// Run names the start after which it was saved.
	Run   string
	Saved time.Time
	Boot  string // the host's boot in which that was
	// Home is a directory on the host that is there as long as the container is; "" is
	// unknown.
	Home string
	// Lost is why not all is known of what happened to files: those that are not listed
	// count as modified and labelled. "" when all is known.
	Lost string
	// Labels names the bits of Files; Kept are those that the policy had kept of files.
	Labels []string
	Kept   []string
	Marks  bool // whether files were marked as modified or named
	// Open are the gates that were open, by Key.
	Open []string
	// Program is the hash of the documents and rules that Answers are about.
	Program []byte
	// Added are the documents that were added to the policy of the whole container while it
	// ran, in their order.
	Added []Addition `json:",omitempty"`
	// Image is the hash of the compiled policy that Files' Kept are of.
	Image       []byte
	Filesystems []Filesystem
	Files       Files
	Counters    Counters
	// Sequence is the number of the container's newest event.
	Sequence uint64
	// Answers are the grants and denials of requests, in a form of the engine's own.
	Answers json.RawMessage `json:",omitempty"`
}

// Addition is one of them, and which program added it.
type Addition struct {
	Text []byte
	Comm string
	Time time.Time
}

// Counters are the sums of all starts.
type Counters struct{ Denied, Notified, Lost, Starved uint64 }

// File is what is remembered of a file.
type File struct {
	Filesystem uint16 // index in Filesystems
	Generation uint32
	Flags      uint32
	Kept       uint32 // what of the image protects it
	Inode      uint64
	Labels     uint64
}

// Files are many, and packed.
type Files []File

const packed = 2 + 4 + 4 + 4 + 8 + 8

// MarshalJSON implements json.Marshaler.
func (f Files) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, len(f)*packed)
	for i := range f {
		out = binary.LittleEndian.AppendUint16(out, f[i].Filesystem)
		out = binary.LittleEndian.AppendUint32(out, f[i].Generation)
		out = binary.LittleEndian.AppendUint32(out, f[i].Flags)
		out = binary.LittleEndian.AppendUint32(out, f[i].Kept)
		out = binary.LittleEndian.AppendUint64(out, f[i].Inode)
		out = binary.LittleEndian.AppendUint64(out, f[i].Labels)
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Files) UnmarshalJSON(text []byte) error {
	var in []byte
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	if len(in)%packed != 0 {
		return errors.New("the list of files is cut")
	}
	*f = make(Files, 0, len(in)/packed)
	for ; len(in) > 0; in = in[packed:] {
		*f = append(*f, File{
			Filesystem: binary.LittleEndian.Uint16(in),
			Generation: binary.LittleEndian.Uint32(in[2:]),
			Flags:      binary.LittleEndian.Uint32(in[6:]),
			Kept:       binary.LittleEndian.Uint32(in[10:]),
			Inode:      binary.LittleEndian.Uint64(in[14:]),
			Labels:     binary.LittleEndian.Uint64(in[22:]),
		})
	}
	return nil
}

// encode gives the file's content: a line with version and checksum, and JSON.
func (s *Saved) encode() ([]byte, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	sum := sha256.Sum256(body)
	text := append(fmt.Appendf(nil, "actplane-state %d sha256:%s\n", Version, hex.EncodeToString(sum[:])), body...)
	if len(text) > MaxSize {
		return nil, fmt.Errorf("encode state: it has %d bytes; the limit is %d", len(text), MaxSize)
	}
	return text, nil
}

// decode is the reverse. Its errors say what is wrong with the text.
func decode(text []byte) (*Saved, error) {
	head, body, found := bytes.Cut(text, []byte("\n"))
	var version int
	var sum string
	if _, err := fmt.Sscanf(string(head[:min(len(head), 128)]), "actplane-state %d sha256:%64s", &version, &sum); err != nil || !found {
		return nil, errors.New("it is not a saved state, or was cut")
	}
	if version != Version {
		return nil, fmt.Errorf("it is of version %d, and this engine reads %d", version, Version)
	}
	if own := sha256.Sum256(body); hex.EncodeToString(own[:]) != sum {
		return nil, errors.New("its checksum is wrong")
	}
	s := &Saved{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	for _, file := range s.Files {
		if int(file.Filesystem) >= len(s.Filesystems) {
			return nil, errors.New("a file is on a file system that it does not name")
		}
	}
	return s, nil
}
