// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/actplane/actplane/internal/frontend"
)

// checkFrontEnds looks at what starts containers here: whether the runtime is in its
// files, and whether it knows it.
func checkFrontEnds(c *cli.Context) []finding {
	bin := "/usr/local/bin"
	if self, err := os.Executable(); err == nil {
		bin = filepath.Dir(self)
	}
	var out []finding
	for _, f := range frontEnds(c, bin) {
		if state := f.Look(c.Context); state.Here {
			out = append(out, frontEndFinding(f.Name(), state))
		}
	}
	if len(out) == 0 {
		out = append(out, finding{warn, "runtimes", "neither Docker, containerd, CRI-O nor podman is here", "policies work without them: actplane run"})
	}
	return out
}

func frontEndFinding(name string, s frontend.State) finding {
	subject := strings.ToLower(strings.ReplaceAll(name, "-", ""))
	version := ""
	if s.Version != "" {
		version = s.Version
	}
	if s.CgroupDriver != "" {
		version = strings.TrimPrefix(version+", cgroup driver "+s.CgroupDriver, ", ")
	}
	if version != "" {
		version += ": "
	}
	files := strings.Join(s.Files, ", ")
	restart := "systemctl restart " + subject + "; its containers go on meanwhile"
	if name == "Docker" {
		restart = "systemctl reload docker; or restart Docker"
	}
	var denied *frontend.DeniedError
	switch {
	case s.Unfit != "":
		return finding{warn, subject, version + s.Unfit, s.Remedy}
	case s.Needless != "":
		return finding{good, subject, version + s.Needless, s.Hint}
	case errors.As(s.Unsure, &denied):
		return finding{warn, subject, s.Unsure.Error(), "sudo actplane doctor"}
	case s.Program != "" && !runnable(s.Program):
		return finding{warn, subject, version + fmt.Sprintf("%s has %s as the runtime, and there is no such program: containers do not start", files, s.Program), "sudo actplane install"}
	case s.Running && s.Unsure == nil && s.Knows && len(s.Files) > 0:
		return finding{good, subject, version + "it knows the runtime, by " + files, ""}
	case s.Running && s.Unsure == nil && s.Knows:
		return finding{warn, subject, version + "it knows the runtime, which is in none of its files", "was it taken out of them? " + restart}
	case len(s.Files) == 0:
		return finding{warn, subject, version + "it does not know the runtime", "sudo actplane install"}
	case !s.Running:
		return finding{warn, subject, version + fmt.Sprintf("it does not run; the runtime is in %s", files), "it knows the runtime when it starts"}
	case s.Unsure != nil:
		return finding{warn, subject, version + fmt.Sprintf("the runtime is in %s; whether it knows it, it does not tell: %v", files, s.Unsure), ""}
	}
	return finding{warn, subject, version + fmt.Sprintf("the runtime is in %s, and it has not read that yet", files), restart}
}

func runnable(path string) bool {
	_, err := exec.LookPath(path)
	return err == nil
}
