// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/engine"
	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/engine/state"
	"github.com/actplane/actplane/internal/version"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/shim/prepare"
)

// The exit codes, as of all the commands of the project.
const (
	exitFault       = 1
	exitUsage       = 2
	exitEnvironment = 3
)

// linger is for how long hooks stay attached after the last container that needs them.
const linger = 10 * time.Second

type options struct {
	pinDir, runDir, stateDir string
	debug                    bool
}

// run is main. Its last word on an error is one plain sentence: who started the
// daemon shows it to the user.
func run(args []string, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("actplaned", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.pinDir, "pin-dir", "/sys/fs/bpf/actplane", "`directory` in the BPF file system for what outlives the daemon")
	flags.StringVar(&o.runDir, "run-dir", api.Directory, "`directory` for the socket and the scopes")
	flags.StringVar(&o.stateDir, "state-dir", "", "`directory` for what stopped containers have left (default "+state.Directory+", or states in another run-dir)")
	flags.BoolVar(&o.debug, "debug", false, "log more")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "actplaned: unexpected argument %q\n", flags.Arg(0))
		return exitUsage
	}
	err := serve(o)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "actplaned: %v\n", err)
	var unsupported *kernel.UnsupportedError
	if errors.As(err, &unsupported) || errors.Is(err, errNotRoot) {
		return exitEnvironment
	}
	return exitFault
}

var errNotRoot = errors.New("the engine needs root; run it with sudo")

func serve(o options) error {
	if os.Geteuid() != 0 {
		return errNotRoot
	}
	log := logger(o.debug)
	lock, err := engine.Lock(o.runDir)
	if err != nil {
		return err
	}
	config, err := loadConfig(prepare.DefaultHost().Config)
	if err != nil {
		return err
	}
	if o.stateDir == "" {
		o.stateDir = engine.StateDirectory(o.runDir)
	}
	if err := state.MakeDirectory(o.stateDir); err != nil {
		return err
	}
	enforcer, err := kernel.Open(kernel.Config{
		PinDir: o.pinDir, RunDir: o.runDir, StateDir: o.stateDir, AllowDegraded: config.Degraded == "allow", Linger: linger,
	})
	if err != nil {
		lock.Close()
		return err
	}
	defer enforcer.Close()
	settings := engine.Config{
		Directory: o.runDir, GuestBinary: guestBinary(), Version: version.String(), Lock: lock,
		StateDirectory: o.stateDir, Retention: config.Retention,
		Kernel: enforcer, Compile: policy.CompileProgram, Decide: decide, NoNarrowing: config.Narrowing == "refuse", Log: log,
		Ready: func() {
			log.WithFields(logrus.Fields{"tier": enforcer.Tier(), "version": version.String()}).Info("engine ready")
			notifyReady()
		},
	}
	var e *engine.Engine // is there before anybody is asked or told
	people, err := newPeople(prepare.DefaultHost().Config, config, func(conn net.Conn) error { return e.Outside(conn) }, log)
	if err != nil {
		return err
	}
	settings.Approvers, settings.Notifications = people.approvers, people
	if e, err = engine.New(settings); err != nil {
		return err
	}
	// Whoever reads the log may end before us.
	signal.Ignore(unix.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, unix.SIGHUP) // systemctl reload, and a terminal that goes
	go people.follow(ctx, hangups)
	return e.Serve(ctx)
}

func logger(verbose bool) *logrus.Entry {
	log := logrus.New()
	log.SetFormatter(&logrus.JSONFormatter{})
	if _, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS); err == nil {
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true})
	}
	if verbose {
		log.SetLevel(logrus.DebugLevel)
	}
	return logrus.NewEntry(log)
}

// guestBinary is what is installed beside this program.
func guestBinary() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(self), "actplane-guest")
}

// notifyReady tells systemd that the socket answers (sd_notify(3)).
func notifyReady() {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return
	}
	conn, err := net.Dial("unixgram", address)
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("READY=1"))
}
