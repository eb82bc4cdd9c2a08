// SPDX-License-Identifier: Apache-2.0

// Package daemon reaches the engine daemon, and starts it where it is not
// running: by its systemd unit, or else as a process of its own that has nothing
// to do with the caller's session, files or cgroup.
//
// Concurrent callers start one daemon. Everything has a deadline.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/actplane/actplane/engine/api"
)

// StartTimeout is how long a start may take. The kernel's verifier needs most of
// it on an emulated machine.
const StartTimeout = 90 * time.Second

const (
	pollInterval  = 50 * time.Millisecond
	statusTimeout = 5 * time.Second
)

// Options say where the daemon is. The zero value is the installed product.
type Options struct {
	Socket    string   // default api.Socket
	Directory string   // of the lock and the log; default api.Directory
	Program   string   // default: actplaned beside this program, else in PATH
	Args      []string // for Program
	NoSystemd bool     // never ask systemd
	NoCgroup  bool     // leave the daemon in the caller's cgroup
}

// Client is a connection to a daemon that has answered.
type Client struct {
	api.EngineClient
	// Status is the daemon's answer to the first question.
	Status *api.StatusResponse

	close func() error
}

// Close ends the connection.
func (c *Client) Close() error { return c.close() }

// CannotEnforce says that the engine runs, and why it is of no use on this host.
type CannotEnforce struct{ Problem string }

// Error implements error.
func (e *CannotEnforce) Error() string {
	return fmt.Sprintf(`actplane engine cannot enforce on this host: %s; run "actplane doctor"`, e.Problem)
}

// NotStarted says that the engine does not run and could not be started.
type NotStarted struct {
	Reason string
	Next   string // a command to type
}

// Error implements error.
func (e *NotStarted) Error() string {
	// The daemon's own last words mostly end in what to do.
	if strings.Contains(e.Reason, "; run ") {
		return "actplane engine cannot be started: " + e.Reason
	}
	return fmt.Sprintf("actplane engine cannot be started: %s; run %q", e.Reason, e.Next)
}

// Connect returns a client of the running daemon; it starts nothing.
func Connect(ctx context.Context, options Options) (*Client, error) {
	options = options.withDefaults()
	client, connection, err := api.Dial(options.Socket)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	answer, err := client.Status(ctx, &api.StatusRequest{})
	if err != nil {
		connection.Close()
		return nil, fmt.Errorf("ask the engine for its status: %w", err)
	}
	return &Client{EngineClient: client, Status: answer, close: connection.Close}, nil
}

// Reason is what an error of the engine says, without the wrapping of the protocol.
func Reason(err error) string {
	if state, ok := status.FromError(err); ok {
		if state.Code() == codes.DeadlineExceeded {
			return "it does not answer in time"
		}
		return state.Message()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it does not answer in time"
	}
	if errors.Is(err, ttrpc.ErrClosed) {
		return `it has ended meanwhile; try again, or run "actplane doctor"`
	}
	return err.Error()
}

// Ensure returns a client of a daemon that can enforce, and starts one when none
// answers. A daemon that it started and that is of no use, it stops again.
func Ensure(ctx context.Context, options Options) (*Client, error) {
	options = options.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	client, err := Connect(ctx, options)
	if errors.Is(err, os.ErrPermission) {
		return nil, errors.New("only root may ask the actplane engine; run this with sudo")
	}
	if err != nil {
		client, err = start(ctx, options)
	}
	if err != nil {
		return nil, err
	}
	return usable(client)
}

func usable(client *Client) (*Client, error) {
	if client.Status.Problem == "" && client.Status.Tier != "" {
		return client, nil
	}
	client.Close()
	problem := client.Status.Problem
	if problem == "" {
		problem = "it found no way to attach its programs to kernel " + client.Status.Kernel
	}
	return nil, &CannotEnforce{Problem: problem}
}

// start holds the lock while it starts a daemon, so that others wait for that.
func start(ctx context.Context, options Options) (*Client, error) {
	if err := os.MkdirAll(options.Directory, 0o711); err != nil {
		return nil, &NotStarted{Reason: "make its directory: " + err.Error(), Next: "sudo actplane doctor"}
	}
	lock, err := acquire(ctx, filepath.Join(options.Directory, "actplaned.lock"))
	if err != nil {
		return nil, &NotStarted{Reason: err.Error(), Next: "actplane doctor"}
	}
	defer lock.Close()
	// Another caller may have started it while we waited for the lock.
	client, err := Connect(ctx, options)
	if err == nil {
		return client, nil
	}
	started, err := launch(ctx, options)
	if err != nil {
		return nil, err
	}
	client, err = await(ctx, options, started)
	if err != nil {
		return nil, err
	}
	if client.Status.Problem != "" || client.Status.Tier == "" {
		started.stop() // of no use to anybody: leave nothing behind
	}
	return client, nil
}

// acquire takes a lock that the kernel gives back when this process ends.
func acquire(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			file.Close()
			return nil, fmt.Errorf("lock %q: %w", path, err)
		}
		if !pause(ctx) {
			file.Close()
			return nil, errors.New("another process has been starting it for too long")
		}
	}
}

// started is a daemon on its way up.
type started interface {
	// failed says why the daemon will not come up, once that is known.
	failed() error
	// stop ends it, when it is this process's to end.
	stop()
	// hint is the command that tells more.
	hint() string
}

func launch(ctx context.Context, options Options) (started, error) {
	if !options.NoSystemd && unitInstalled() {
		return startUnit(ctx)
	}
	return startProcess(options)
}

// await polls until the daemon answers, fails or runs out of time.
func await(ctx context.Context, options Options, daemon started) (*Client, error) {
	for {
		client, err := Connect(ctx, options)
		if err == nil {
			return client, nil
		}
		if err := daemon.failed(); err != nil {
			return nil, &NotStarted{Reason: err.Error(), Next: daemon.hint()}
		}
		if !pause(ctx) {
			daemon.stop()
			return nil, &NotStarted{Reason: "it does not answer on " + options.Socket, Next: daemon.hint()}
		}
	}
}

// pause waits for a poll interval; false means that the time is up.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (o Options) withDefaults() Options {
	if o.Socket == "" {
		o.Socket = api.Socket
	}
	if o.Directory == "" {
		o.Directory = api.Directory
	}
	return o
}
