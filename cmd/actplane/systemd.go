// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"

	"github.com/actplane/actplane/internal/atomicfile"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/packaging"
)

const unitFile = "/etc/systemd/system/" + daemon.Unit

func systemdRuns() bool {
	info, err := os.Stat("/run/systemd/system")
	return err == nil && info.IsDir()
}

func (s *setup) systemctl(args ...string) error {
	s.say("run systemctl %s", strings.Join(args, " "))
	if s.dry {
		return nil
	}
	out, err := exec.CommandContext(s.ctx, "systemctl", args...).CombinedOutput()
	if err != nil {
		return environmentError("systemctl %s: %v: %s", strings.Join(args, " "), err, clean(strings.TrimSpace(string(out))))
	}
	return nil
}

// installUnit enables the unit and starts the engine, anew if it changed. A host
// that cannot enforce is told so and keeps the installation.
func (s *setup) installUnit(engineChanged bool) error {
	text := strings.ReplaceAll(packaging.Unit, "/usr/local/bin/", s.bin("")+"/")
	old, err := os.ReadFile(unitFile)
	if err != nil || string(old) != text {
		s.say("write %s", unitFile)
		if !s.dry {
			if err := atomicfile.Write(unitFile, []byte(text), atomicfile.Options{Mode: 0o644, Sync: true}); err != nil {
				return environmentError("write unit: %v", err)
			}
		}
		if err := s.systemctl("daemon-reload"); err != nil {
			return err
		}
	}
	if err := s.systemctl("enable", daemon.Unit); err != nil {
		return err
	}
	verb := "start"
	if engineChanged {
		verb = "restart" // what runs stays under policy meanwhile
	}
	if err := s.systemctl(verb, daemon.Unit); err != nil {
		s.say("note that the engine does not start: \"actplane doctor\" tells why")
	}
	return nil
}

func (s *setup) removeUnit() error {
	if s.packaged {
		return s.systemctl("stop", daemon.Unit)
	}
	if !exists(unitFile) {
		return nil
	}
	if err := s.systemctl("disable", "--now", daemon.Unit); err != nil {
		return err
	}
	s.say("remove %s", unitFile)
	if s.dry {
		return nil
	}
	if err := os.Remove(unitFile); err != nil {
		return environmentError("remove unit: %v", err)
	}
	return s.systemctl("daemon-reload")
}
