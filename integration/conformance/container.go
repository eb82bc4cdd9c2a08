// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// refusedError is why a container did not start.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// container is one in which a case is acted out.
type container struct {
	id       string
	stage    *stage
	network  *network
	first    *subject
	subjects map[string]*subject
	command  *exec.Cmd
	ended    chan struct{}
	ways     ways
	output   bytes.Buffer // of the runtime; not to be read before it has ended
}

// stopTimeout is for the end of a container.
const stopTimeout = time.Minute

// start makes a container and waits until its first program runs. What it is to find
// has been made before, from outside.
func start(ctx context.Context, dir, id string, c *planned, actor []byte) (box *container, err error) {
	box = &container{id: id, subjects: map[string]*subject{}, ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, box.close())
		}
	}()
	first, err := firstProgram(c)
	if err != nil {
		return box, err
	}
	if box.stage, err = newStage(dir); err != nil {
		return box, err
	}
	if err := box.stage.populate(c, first, actor); err != nil {
		return box, err
	}
	box.network, err = newNetwork(filepath.Join(dir, "netns"), box.stage.root, outsidePeers(c))
	if err != nil {
		return box, err
	}
	if err := box.stage.configure(c, id, first, box.network.path); err != nil {
		return box, err
	}
	return box, box.launch(ctx, c)
}

// launch starts the runtime. All channels are there before the scope is: subjects
// inherit them.
func (box *container) launch(ctx context.Context, c *planned) error {
	theirs, err := box.channels(c)
	defer closeAll(theirs)
	if err != nil {
		return err
	}
	return box.run(theirs, exec.CommandContext(ctx, "actplane-runtime", "run", "--bundle", box.stage.dir,
		"--preserve-fds", strconv.Itoa(len(theirs)), box.id))
}

// channels makes the subjects, and returns their ends.
func (box *container) channels(c *planned) (theirs []*os.File, err error) {
	for i, name := range append([]string{"the first program"}, subjectNames(c)...) {
		ours, end, err := newChannel()
		if err != nil {
			return theirs, err
		}
		theirs = append(theirs, os.NewFile(uintptr(end), "channel"))
		s := &subject{name: name, number: i, channel: ours, pidfd: -1, sockets: map[string]int{}, files: map[string]int{}}
		if i == 0 {
			box.first = s
		} else {
			box.subjects[name] = s
		}
	}
	if rooted(c.Steps) {
		box.subjects[root].close()
		box.subjects[root] = box.first
	}
	return theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// run starts the container with what starts it, and waits for its first program.
func (box *container) run(theirs []*os.File, command *exec.Cmd) error {
	box.command = command
	box.command.ExtraFiles = theirs
	box.command.Stdout, box.command.Stderr = &box.output, &box.output
	box.command.WaitDelay = stopTimeout
	if err := box.command.Start(); err != nil {
		close(box.ended)
		return fmt.Errorf("start the runtime: %w", err)
	}
	go func() {
		_ = box.command.Wait() // what became of it shows
		close(box.ended)
	}()
	return box.awaitFirst()
}

func (box *container) awaitFirst() error {
	ready := make(chan error, 1)
	go func() { ready <- box.first.awaitReady() }()
	select {
	case err := <-ready:
		return err
	case <-box.ended:
	}
	lines := strings.Split(strings.TrimSpace(box.output.String()), "\n")
	return &refusedError{lines[len(lines)-1]}
}

// close ends the container and removes what is left of it.
func (box *container) close() error {
	var errs []error
	if box.command != nil && box.command.Process != nil {
		if box.first != nil && box.first.pidfd >= 0 {
			_ = unix.PidfdSendSignal(box.first.pidfd, unix.SIGKILL, nil, 0) // it may have ended
		}
		select {
		case <-box.ended:
		case <-time.After(stopTimeout):
			out, _ := exec.Command("actplane-runtime", "delete", "--force", box.id).CombinedOutput()
			errs = append(errs, fmt.Errorf("the container %s does not end: %s", box.id, out))
		}
	}
	box.forget()
	if box.network != nil {
		errs = append(errs, box.network.close())
	}
	if box.stage != nil {
		errs = append(errs, box.stage.close())
	}
	return errors.Join(errs...)
}

// forget closes what is known of the processes.
func (box *container) forget() {
	for _, s := range box.subjects {
		s.close()
	}
	if box.first != nil {
		box.first.close()
	}
}

func (s *subject) close() {
	s.forget()
	if s.channel >= 0 {
		_ = unix.Close(s.channel)
	}
	s.channel = -1
}

// subjectNames lists the processes of a case, in order of their appearance.
func subjectNames(c *planned) (names []string) {
	for _, step := range c.Steps {
		for _, name := range processes(step.Words) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// outsidePeers lists the endpoints that a case needs somebody to listen at, and that
// none of its processes does.
func outsidePeers(c *planned) (peers []peer) {
	own := map[string]bool{}
	for _, step := range c.Steps {
		if step.Words[1] == "bind" {
			own[step.Words[2]] = true
		}
	}
	for _, step := range c.Steps {
		switch step.Words[1] {
		case "connect", "send", "recv":
			p, err := parsePeer(step.Words[2])
			if err == nil && !own[p.text] {
				own[p.text] = true
				peers = append(peers, p)
			}
		}
	}
	return peers
}
