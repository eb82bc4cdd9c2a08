// SPDX-License-Identifier: Apache-2.0

// Package task is the containerd shim io.containerd.actplane.v2: containerd's own task
// service for runc, with actplane-runtime in the place of runc. So what a container is
// prepared by, what limits an exec and what refuses is the same program as for Docker,
// in a process of its own: a policy that an image brings is not compiled in the process
// on which all containers of a pod depend, and by then the root file system is mounted.
//
// The shim adds what only it can know: which options of containerd's are meant for the
// next runtime, and that a checkpoint is not to be restored. It fails closed: what it does
// not understand is refused before a container exists, in one sentence.
//
// Built on the packages of containerd 1.7, it serves containerd 1.6, 1.7 and 2.
package task

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	taskapi "github.com/containerd/containerd/api/runtime/task/v2"
	"github.com/containerd/containerd/pkg/shutdown"
	"github.com/containerd/containerd/plugin"
	"github.com/containerd/containerd/runtime/v2/runc/manager"
	runctask "github.com/containerd/containerd/runtime/v2/runc/task"
	"github.com/containerd/containerd/runtime/v2/shim"
	containerdversion "github.com/containerd/containerd/version"
	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/plain"
	"github.com/actplane/actplane/internal/version"
	"github.com/actplane/actplane/shim/prepare"
)

// Runtime is the name by which containerd's clients ask for the shim.
const Runtime = "io.containerd.actplane.v2"

// program is what runs in the place of runc.
const program = "actplane-runtime"

// Main is the shim as containerd calls it: to start a shim, to be one, to clean up after
// one that was killed, and to tell what it can do.
func Main() {
	if len(os.Args) == 2 && (os.Args[1] == "-info" || os.Args[1] == "--info") {
		if err := info(os.Stdin, os.Stdout, prepare.FindProgram); err != nil {
			fmt.Fprintln(os.Stderr, plain.Text("actplane: "+err.Error()))
			os.Exit(1)
		}
		return
	}
	containerdversion.Version = version.String() // what -v prints
	register()
	shim.RunManager(context.Background(), manager.NewShimManager(Runtime))
}

// register puts the service where the framework looks for that of runc's shim.
func register() {
	plugin.Register(&plugin.Registration{
		Type:     plugin.TTRPCPlugin,
		ID:       "task",
		Requires: []plugin.Type{plugin.EventPlugin, plugin.InternalPlugin},
		InitFn: func(ic *plugin.InitContext) (any, error) {
			publisher, err := ic.GetByID(plugin.EventPlugin, "publisher")
			if err != nil {
				return nil, err
			}
			stop, err := ic.GetByID(plugin.InternalPlugin, "shutdown")
			if err != nil {
				return nil, err
			}
			inner, err := runctask.NewTaskService(ic.Context, publisher.(shim.Publisher), stop.(shutdown.Service))
			if err != nil {
				return nil, err
			}
			return &service{TaskService: inner, find: prepare.FindProgram}, nil
		},
	})
}

// service is runc's, with what is asked of it changed first. What it does not define
// itself goes there as it is.
type service struct {
	taskapi.TaskService
	find func(name string) (string, error) // where a program of ours is
}

// RegisterTTRPC is called by the framework. The one of runc's service would register that.
func (s *service) RegisterTTRPC(server *ttrpc.Server) error {
	taskapi.RegisterTaskService(server, s)
	return nil
}

// Create has the container created by actplane-runtime.
func (s *service) Create(ctx context.Context, request *taskapi.CreateTaskRequest) (*taskapi.CreateTaskResponse, error) {
	if err := s.redirect(request); err != nil {
		return nil, status.Error(codes.FailedPrecondition, plain.Text("actplane: "+err.Error()))
	}
	return s.TaskService.Create(ctx, request)
}

// redirect changes a request so that actplane-runtime is what creates the container.
func (s *service) redirect(request *taskapi.CreateTaskRequest) error {
	if request.Checkpoint != "" {
		return prepare.ErrRestore
	}
	path, err := cgroupsPath(request.Bundle)
	if err != nil {
		return err
	}
	options, err := runcOptions(request.Options)
	if err != nil {
		return err
	}
	if name := options.BinaryName; name != "" && filepath.Base(name) != program {
		return fmt.Errorf("runtime option BinaryName %q would leave the policy out; name it under runtimes in /etc/actplane/config.yaml, and leave the option away", name)
	}
	if options.BinaryName, err = s.find(program); err != nil {
		return err
	}
	// Clients that know the shim by its name alone cannot say it in options.
	options.SystemdCgroup = options.SystemdCgroup || isSystemd(path)
	request.Options, err = pack(options)
	return err
}

// cgroupsPath is that of a bundle; empty if it has none.
func cgroupsPath(directory string) (string, error) {
	file, err := bundle.Open(filepath.Join(directory, bundle.ConfigName))
	if err != nil {
		return "", err
	}
	var linux struct{ CgroupsPath string }
	_, err = file.Root.Get("linux", &linux)
	return linux.CgroupsPath, err
}
