// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/model"
)

// director finds out, step by step, what of a random case can be acted out.
type director struct {
	program *ir.Program
	crew    *crew
	scripts map[string]string // by path: the interpreter of what is run as one, "" of a program
	bound   map[string]bool   // endpoints that were listened at: another cannot
	now     beings
	steps   []model.Step
	// folders has for each step whether what it moves counts as a folder.
	folders [][]bool
	// unstartable is the first restart after which there is no start, -1 for none.
	unstartable int
	// kept are the steps after which the engine protects more than the model.
	kept []int
}

type socket int

// What a process can have of an endpoint.
const (
	connected socket = iota + 1
	bound
	accepted // whose peer has another name
)

// beings is what the kernel itself has of processes, and ends with them.
type beings struct {
	sockets map[string]map[string]socket // by process: the endpoints, or "at " and one to listen at
	waiting map[string]int               // connections that nobody has accepted
	running map[string]string            // by process: the file that it runs, which nobody can write
	tracers map[string]string            // by process
}

func newBeings() beings {
	return beings{
		sockets: map[string]map[string]socket{}, waiting: map[string]int{}, running: map[string]string{}, tracers: map[string]string{},
	}
}

// begin chooses the first program: one that leaves no trace, and is no matter of the case,
// or if there is none, one that begins it.
func (d *director) begin(steps [][]string) bool {
	d.now = newBeings()
	if len(steps) > 0 && isRoot(steps[0]) {
		d.crew = newCrew(d.program, steps[0][2], true)
		return true
	}
	// Of files that are lost, the first program is one.
	lost := slices.ContainsFunc(steps, func(words []string) bool { return isRestart(words) && words[1] == "lost" })
	if first, err := firstProgram(&planned{Program: d.program}); err == nil && !lost {
		d.crew = newCrew(d.program, first, false)
		return true
	}
	for _, candidate := range initCandidates {
		if got, err := model.New(d.program).Do([]string{root, "exec", candidate}); err == nil && !got.Denied() {
			d.crew = newCrew(d.program, candidate, true)
			return true
		}
	}
	return false
}

// direct adds a step, with what has to come before it.
func (d *director) direct(words []string) {
	switch {
	case isRestart(words) || words[0] == "human":
	case !d.crew.started && !isRoot(words):
		if !d.add([]string{root, "exec", d.crew.first}) {
			return // after a restart it may be denied
		}
	}
	if d.crew.rooted {
		for i, name := range processes(words) {
			if name != root && !d.crew.known[name] && !(words[1] == "fork" && i == 1) {
				d.add([]string{root, "fork", name})
			}
		}
	}
	if len(words) == 3 && words[1] == "mapexec" { // what is mapped has been opened to be read
		if asks(d.program) {
			return // that it is opened for mapping would be asked for as well
		}
		read := []string{words[0], "read", words[2]}
		if n := len(d.steps); n > 0 && slices.Equal(d.steps[n-1].Words, read) {
			if v := d.steps[n-1].Verdict; v != "ok" && v != "notify" {
				return
			}
		} else if !d.add(read) {
			return
		}
	}
	d.add(words)
}

// add takes a step if it makes sense. It tells whether it did, and was not denied.
func (d *director) add(words []string) bool {
	if d.crew.impossible(words) != "" || !d.possible(words) {
		return false
	}
	moves, starting, keeps := d.moves(words), !d.crew.started, d.keeps(words)
	got, err := d.crew.do(words)
	if err != nil {
		return false
	}
	if keeps && !got.Denied() {
		d.kept = append(d.kept, len(d.steps))
	}
	d.happened(words, got)
	d.folders = append(d.folders, moves)
	if got.Denied() && starting && len(d.steps) > 0 && d.unstartable < 0 {
		d.unstartable = lastRestart(d.steps)
	}
	verdict, rule, _ := strings.Cut(got.String(), " ")
	d.steps = append(d.steps, model.Step{
		Line: len(d.steps) + 1, Text: model.WriteStep(words), Words: words, Verdict: verdict, Rule: rule,
	})
	return !got.Denied()
}

// lastRestart is the place of the last one.
func lastRestart(steps []model.Step) int {
	for i := len(steps) - 1; i > 0; i-- {
		if isRestart(steps[i].Words) {
			return i
		}
	}
	return 0
}

// possible tells whether the kernel itself can do a step, as far as can be told
// beforehand.
func (d *director) possible(words []string) bool {
	for i, name := range paths(words) {
		resolved, ok := d.crew.model.Resolve(name, follows(words[1], i))
		if !ok || changes(words) && slices.Contains(slices.Collect(maps.Values(d.now.running)), resolved) {
			return false
		}
	}
	switch op := words[1]; op {
	case "exec", "execscript":
		if d.tied(words[0]) && declassifies(d.program) {
			return false // the other gets what comes with the program before it is cleared
		}
	}
	switch op := words[1]; op {
	case "execfails":
		// A grant is for the program as it is, which is spoilt for a moment.
		return !asks(d.program) && d.is(words[2], "")
	case "exec", "mapexec":
		return d.is(words[2], "")
	case "execscript":
		return words[2] != words[3] && d.is(words[2], words[3]) && d.is(words[3], "")
	case "bind":
		return !d.bound[words[2]]
	case "send":
		// What an accepted socket's peer is called, and whether who was granted a connection
		// is asked again for what goes through it, the model does not say.
		has := d.now.sockets[words[0]][words[2]]
		if has == accepted || has == connected && asks(d.program) {
			return false
		}
		// Without a connection it is a datagram, to another endpoint than one that was
		// connected to or is listened at.
		return has == connected || strings.HasSuffix(words[2], "/udp") ||
			!strings.HasPrefix(words[2], "unix:") && !d.bound[words[2]] && !asks(d.program)
	case "recv":
		has := d.now.sockets[words[0]]
		if has[words[2]] != connected && (about(d.program, ir.Recv) || strings.HasPrefix(words[2], "[") && fromEndpoints(d.program)) {
			return false // who the other end is, the case has no name for
		}
		return has[words[2]] > 0 || has["at "+words[2]] > 0 && (d.now.waiting[words[2]] > 0 || strings.HasSuffix(words[2], "/udp"))
	case "ptrace":
		return d.now.tracers[words[2]] == ""
	}
	return true
}

// tied tells whether a process traces another, or is traced.
func (d *director) tied(name string) bool {
	_, traced := d.now.tracers[name]
	return traced || slices.Contains(slices.Collect(maps.Values(d.now.tracers)), name)
}

// keeps tells whether a file would be protected more than it is by its names: the engine
// keeps what was protected under a name that it has lost, and by all patterns what two
// protect under two names. It happens only where who does it may, and others may not.
func (d *director) keeps(words []string) bool {
	var by [][]int
	for _, name := range paths(words) {
		resolved, _ := d.crew.model.Resolve(name, false)
		by = append(by, d.crew.model.ProtectedBy(resolved))
	}
	switch words[1] {
	case "rename", "exchange":
		return len(by[0])+len(by[1]) > 0
	case "link":
		return len(by[0]) > 0 && len(by[1]) > 0 && !slices.Equal(by[0], by[1])
	}
	return false
}

// moves tells of what a step moves whether it counts as a folder.
func (d *director) moves(words []string) (folders []bool) {
	if words[1] == "rename" || words[1] == "exchange" {
		for _, name := range paths(words) {
			resolved, _ := d.crew.model.Resolve(name, false)
			folders = append(folders, d.crew.model.CanBeDirectory(resolved))
		}
	}
	if words[1] == "rename" {
		return folders[:1]
	}
	return folders
}

// is notes that a file is a script or a program; it is the one or the other, and a script
// has one interpreter.
func (d *director) is(path, interpreter string) bool {
	name, _ := d.crew.model.Resolve(path, true)
	if _, known := d.scripts[name]; !known {
		d.scripts[name] = interpreter
	}
	return d.scripts[name] == interpreter
}

// follows tells whether the link is followed that the last component of a step's path may be.
func follows(op string, i int) bool {
	switch op {
	case "unlink", "rmdir", "mkdir", "rename", "exchange", "link", "symlink":
		return false
	}
	return true
}

// changes tells whether a step opens a file to be written.
func changes(words []string) bool {
	switch words[1] {
	case "write", "append", "truncate", "mmapshared", "execfails":
		return true
	case "fdopen":
		return words[3] != "r"
	}
	return false
}

// happened notes what a step left.
func (d *director) happened(words []string, got model.Decision) {
	if isRestart(words) {
		d.now = newBeings()
		return
	}
	if words[0] == "human" {
		return
	}
	name, s := words[0], &d.now
	if got.Effect == ir.Kill || words[1] == "exit" || words[1] == "killed" {
		delete(s.sockets, name)
		delete(s.running, name)
		maps.DeleteFunc(s.tracers, func(traced, tracer string) bool { return traced == name || tracer == name })
	}
	if got.Denied() {
		return
	}
	if s.sockets[name] == nil {
		s.sockets[name] = map[string]socket{}
	}
	switch words[1] {
	case "exec", "execscript":
		program := words[2]
		if words[1] == "execscript" {
			program = words[3]
		}
		s.running[name], _ = d.crew.model.Resolve(program, true)
	case "fork":
		s.sockets[words[2]], s.running[words[2]] = maps.Clone(s.sockets[name]), s.running[name]
	case "connect":
		s.sockets[name][words[2]] = connected
		s.waiting[words[2]]++
	case "bind":
		s.sockets[name]["at "+words[2]], d.bound[words[2]] = bound, true
	case "recv":
		if s.sockets[name][words[2]] == 0 {
			s.sockets[name][words[2]] = accepted
			s.waiting[words[2]]--
		}
	case "ptrace":
		s.tracers[words[2]] = name
	}
}
