// SPDX-License-Identifier: Apache-2.0

// Package runtime is the OCI runtime that stands between a container manager and
// runc: it prepares the bundle on create and run, limits the process of an exec and the
// resources of an update, and becomes the next runtime by exec, so that output, exit status and signals
// are that one's.
//
// It never writes to standard output. When it refuses, it writes one error
// record to the log, where container managers look, and one line to standard
// error.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/shim/prepare"
)

// prepareTimeout is for everything before the exec, the engine's start included.
const prepareTimeout = 3 * time.Minute

// Program is one call of the runtime.
type Program struct {
	Args   []string // without the program's name
	Env    []string
	Stdin  *os.File
	Stderr io.Writer
	Host   *prepare.Host
	// Exec becomes another program; it returns only an error.
	Exec func(path string, argv, env []string) error
}

// Main runs the runtime as installed and returns its exit status.
func Main(args, env []string) int {
	program := &Program{Args: args[1:], Env: env, Stdin: os.Stdin, Stderr: os.Stderr, Host: prepare.DefaultHost(), Exec: syscall.Exec}
	return program.Run()
}

// Run does what the command line says. When all is well it does not return.
func (p *Program) Run() int {
	call, err := parseGlobal(p.Args)
	if err == nil {
		err = p.dispatch(call)
	}
	p.report(call, err)
	return 1
}

func (p *Program) dispatch(call *call) error {
	switch kindOf(call.command) {
	case preparing:
		return p.create(call)
	case executing:
		return p.exec(call)
	case starting:
		return p.start(call)
	case updating:
		return p.update(call)
	case deleting:
		p.forget(call)
		return p.next()
	case passing:
		return p.next()
	}
	if call.command == "restore" {
		return prepare.ErrRestore
	}
	return fmt.Errorf("unknown subcommand %q is not passed on to the next runtime; use the next runtime itself for it", call.command)
}

// create prepares a container and becomes the next runtime.
func (p *Program) create(call *call) error {
	options, err := parseOptions(call.args, createOptions())
	if err != nil {
		return fmt.Errorf("%s: %w", call.command, err)
	}
	if options.help {
		return p.next()
	}
	if len(options.positional) != 1 {
		return fmt.Errorf("%s needs one container id, found %d", call.command, len(options.positional))
	}
	directory := options.value("bundle")
	if directory == "" {
		directory = "."
	}
	// Look for the next runtime first: without one there is nothing to prepare for.
	path, err := p.findNext()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), prepareTimeout)
	defer cancel()
	staged, err := p.Host.Prepare(ctx, prepare.Container{ID: options.positional[0], Root: call.root, Bundle: directory, Runtime: path})
	if err != nil {
		return err
	}
	err = p.become(path)
	staged.Undo()
	return err
}

// exec limits the process of an exec as the container's own is limited: runc
// takes it from the caller, not from config.json.
func (p *Program) exec(call *call) error {
	options, err := parseOptions(call.args, execOptions())
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	if options.help || len(options.positional) == 0 {
		return p.next() // which says what is missing
	}
	record, err := p.record(call, options.positional[0])
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("exec: ActPlane has no record of container %q and cannot limit the process; start the container again", options.positional[0])
	}
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	if err := p.checkExec(options, record); err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	if name := options.value("process"); name != "" && (!record.Unmanaged || limited(record)) {
		if err := p.limitFile(name, record); err != nil {
			return fmt.Errorf("exec: %w", err)
		}
	}
	return p.next()
}

// record is what is known of a container; fs.ErrNotExist if nothing is.
func (p *Program) record(call *call, id string) (*bundle.Record, error) {
	record, err := p.Host.Records.Load(id)
	if err == nil && record.Root != call.root {
		err = fs.ErrNotExist // of another container of the same id
	}
	return record, err
}

// start begins a container's program, if its policy is in force: a next runtime that runs
// no hooks would create a container without one.
func (p *Program) start(call *call) error {
	options, err := parseOptions(call.args, startOptions())
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if options.help || len(options.positional) == 0 {
		return p.next() // which says what is missing
	}
	id := options.positional[0]
	record, err := p.record(call, id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("start: ActPlane has no record of container %q, so that nothing shows that its policy is in force; create it again", id)
	case err != nil:
		return fmt.Errorf("start: %w", err)
	case !record.Unmanaged && record.Pid == 0:
		return fmt.Errorf("start: the policy of container %q is not in force, because the next runtime has not run the hook createRuntime; name another under runtimes in %s", id, p.Host.Config)
	}
	return p.next()
}

func (p *Program) limitFile(name string, record *bundle.Record) error {
	file, err := bundle.Open(name)
	if err != nil {
		return err
	}
	if err := p.Host.LimitExec(file.Root, record); err != nil {
		return err
	}
	if !limited(record) {
		return nil // nothing was changed
	}
	return file.Save()
}

func limited(record *bundle.Record) bool {
	return len(record.Capabilities) > 0 || record.NoNewPrivileges
}

// checkExec refuses flags that would give the process what the policy took, or what is
// stronger than it.
func (p *Program) checkExec(options *options, record *bundle.Record) error {
	for _, capability := range options.values["cap"] {
		if !prepare.Keeps(record, capability) {
			return fmt.Errorf("--cap %s: the policy of container %q drops this capability", capability, record.ID)
		}
	}
	for _, text := range options.values["no-new-privs"] {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("--no-new-privs=%s: expected true or false", text)
		}
		if !on && record.NoNewPrivileges {
			return fmt.Errorf("--no-new-privs=%s: the policy of container %q requires it", text, record.ID)
		}
	}
	return p.Host.CheckExec(options.values["cap"], record)
}

// forget tells the engine that a container is being deleted, so that a create
// that failed before its hooks leaves nothing. A scope with processes stays.
func (p *Program) forget(call *call) {
	options, err := parseOptions(call.args, deleteOptions())
	if err != nil || len(options.positional) != 1 || bundle.ValidID(options.positional[0]) != nil {
		return
	}
	id := options.positional[0]
	record, err := p.Host.Records.Load(id)
	if err == nil && record.Root != call.root {
		return
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if record == nil || !record.Unmanaged {
		prepare.CloseScope(p.Host.Engine, id)
	}
	// poststop removes the record of a container that ran; exec needs it until then.
	if record != nil && (record.Pid == 0 || record.Stale(time.Now(), time.Now())) {
		p.Host.Records.Remove(id)
	}
}
