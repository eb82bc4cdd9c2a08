// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine/state"
)

// isRestart tells the steps that end a container and start it again.
func isRestart(words []string) bool {
	return words[0] == "scope" && (words[1] == "restart" || words[1] == "lost")
}

// restart ends the container as `docker restart` does, and starts it again under its
// id, with its root file system mounted anew. With lose, what the engine saved of it is
// spoilt in between.
func (box *container) restart(ctx context.Context, c *planned, lose bool) error {
	if err := box.stop(); err != nil {
		return err
	}
	if err := awaitSaved(ctx, box.id); err != nil {
		return err
	}
	if lose {
		if err := os.WriteFile(statePath(box.id, "state"), []byte("spoilt"), 0o600); err != nil {
			return err
		}
	}
	if err := box.stage.remount(); err != nil {
		return err
	}
	box.again()
	if err := box.launch(ctx, c); err != nil {
		return fmt.Errorf("start the container again: %w", err)
	}
	return nil
}

// again makes room for what the next start makes.
func (box *container) again() {
	box.subjects, box.first, box.ended = map[string]*subject{}, nil, make(chan struct{})
	box.output.Reset()
}

// stop ends the container's processes, and waits until the runtime has ended too.
func (box *container) stop() error {
	_ = unix.PidfdSendSignal(box.first.pidfd, unix.SIGKILL, nil, 0) // it may have ended
	select {
	case <-box.ended:
	case <-time.After(stopTimeout):
		return fmt.Errorf("the container %s does not end", box.id)
	}
	box.forget()
	return nil
}

func statePath(id, kind string) string { return filepath.Join(state.Directory, id+"."+kind) }

// awaitSaved waits until the engine has seen the container's end, which it may find out
// by itself only.
func awaitSaved(ctx context.Context, id string) error {
	for end := time.Now().Add(stopTimeout); ; {
		_, err := os.Stat(statePath(id, "run"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || ctx.Err() != nil || time.Now().After(end) {
			return errors.Join(err, ctx.Err(), errors.New("the engine does not save the container's state"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// remount mounts the overlay anew. Its device number is given to another file system
// meanwhile, so that it gets one that it never had.
func (s *stage) remount() error {
	if err := unix.Unmount(s.root, 0); err != nil {
		return fmt.Errorf("unmount the overlay: %w", err)
	}
	place, err := os.MkdirTemp(s.dir, "place")
	if err != nil {
		return err
	}
	if err := unix.Mount("place", place, "tmpfs", 0, "size=4k"); err != nil {
		return fmt.Errorf("mount over a device number: %w", err)
	}
	s.places = append(s.places, place)
	return s.mount()
}
