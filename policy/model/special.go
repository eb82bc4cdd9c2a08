// SPDX-License-Identifier: Apache-2.0

package model

import "strings"

// SpecialKind tells the paths apart that are not files like all others.
type SpecialKind uint8

// The kinds.
const (
	Ordinary SpecialKind = iota
	// Device is "no object of file rules unless a pattern names the device literally";
	// labels flow through it all the same, but through a Sink, which keeps nothing.
	Device
	Sink
	// Exempt is of the engine and there for the agent: "a rule can't cut the agent off
	// from its reasons".
	Exempt
	// Kept is never changed from inside, whatever a policy says.
	Kept
)

// Special is a path of a kind of its own.
type Special struct {
	Path  string
	Below bool // what is in it, and not the folder itself
	Kind  SpecialKind
}

const (
	engineFolder = "/run/actplane"
	cgroupFolder = "/sys/fs/cgroup"
)

// Specials lists the special paths, those in a folder before the folder.
func Specials() []Special {
	return []Special{
		{Path: "/dev/null", Kind: Sink}, {Path: "/dev/zero", Kind: Sink}, {Path: "/dev/full", Kind: Sink},
		{Path: "/dev/random", Kind: Sink}, {Path: "/dev/urandom", Kind: Sink},
		{Path: "/dev/tty", Kind: Device}, {Path: "/dev/console", Kind: Device}, {Path: "/dev/ptmx", Kind: Device},
		{Path: "/dev/pts", Below: true, Kind: Device},
		{Path: engineFolder + "/feedback.sock", Kind: Exempt},
		{Path: engineFolder + "/bin/actplane-guest", Kind: Exempt},
		{Path: engineFolder, Kind: Kept}, {Path: engineFolder, Below: true, Kind: Kept},
		{Path: cgroupFolder, Kind: Kept}, {Path: cgroupFolder, Below: true, Kind: Kept},
	}
}

// SpecialOf tells of what kind a path is.
func SpecialOf(path string) SpecialKind {
	if !below(path, "/dev") && !below(path, engineFolder) && !below(path, cgroupFolder) {
		return Ordinary // as nearly all are
	}
	for _, s := range Specials() {
		if path == s.Path && !s.Below || s.Below && strings.HasPrefix(path, s.Path+"/") {
			return s.Kind
		}
	}
	return Ordinary
}

// outside tells whether a path is one of "the scope's own feedback socket, the guest
// binary" and so "outside the rules".
func outside(name string) bool { return SpecialOf(name) == Exempt }

// device tells whether a path is that of a device; carries, whether labels flow
// through it.
func device(name string) (is, carries bool) {
	kind := SpecialOf(name)
	return kind == Device || kind == Sink, kind != Sink
}
