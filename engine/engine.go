// SPDX-License-Identifier: Apache-2.0

// Package engine is the daemon: it keeps the life of every scope from Prepare
// to Close, serves the API to the runtime and the command line, hands what the
// kernel reports to those who listen, and serves each scope's feedback socket.
//
// Enforcement is not its work but package kernel's, and outlives it: the daemon
// may be killed at any instant, and the next one takes over from the run
// directory and the kernel's pins. A scope.json is therefore written before and
// after each step that the kernel remembers. The package reads no policy text;
// programs come compiled from the clients.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/engine/kernel"
	"github.com/actplane/actplane/engine/state"
	"github.com/actplane/actplane/policy/dfa"
	"github.com/actplane/actplane/policy/ir"
)

// Config is what an engine needs of its surroundings.
type Config struct {
	// Directory is the run directory; empty is api.Directory.
	Directory string
	// GuestBinary is the installed actplane-guest. Without it scopes work, and
	// say that the agent's hook is missing.
	GuestBinary string
	// Version is what Status tells.
	Version string
	// Lock is what Lock gave for Directory; nil lets New take it. It must be
	// held before the kernel is opened, lest two daemons load their programs.
	Lock *os.File
	// Kernel enforces; the caller opens it and closes it after Serve.
	Kernel enforcer
	// Compile makes the tables of a program (policy.CompileProgram).
	Compile func(*ir.Program) (*dfa.Image, error)
	// StateDirectory is where containers' states are kept between two starts; empty is
	// state.Directory, or for another run directory one in it. Retention is for how
	// long; 0 is state.Retention.
	StateDirectory string
	Retention      time.Duration
	// Approvers are asked about requests before people are; nil are none.
	Approvers approvers
	// Notifications tell people of requests and denials; nil tells nobody.
	Notifications notifier
	// Decide answers what a policy says to an operation; nil: nobody can ask.
	Decide func(*ir.Program, Question) (Verdict, error)
	// NoNarrowing refuses rules that containers add to their policies.
	NoNarrowing bool
	// Log gets one line per scope start, stop and degradation.
	Log *logrus.Entry
	// Ready is called once the socket answers. May be nil.
	Ready func()

	host     host             // the machine's processes and cgroups; nil is the real one
	now      func() time.Time // nil is time.Now
	interval time.Duration    // between sweeps; 0 is sweepInterval
}

const (
	sweepInterval   = 2 * time.Second
	stagedLifetime  = 2 * time.Minute
	selfTestTimeout = 30 * time.Second
	closedLifetime  = time.Hour // how long a closed scope's events are kept
	maxClosed       = 64        // and of how many scopes at most
)

// Engine is one daemon's state. Its methods may be called concurrently.
type Engine struct {
	config  Config
	dir     string
	guest   string // the guest binary's copy in the run directory, or empty
	lock    *os.File
	log     *logrus.Entry
	images  images
	ids     idLocks
	hub     hub
	asks    asks
	keeping sync.Mutex // of keepAsks, which one goroutine does at a time
	ending  endingUses

	consulting consulting
	narrowing  sync.Mutex // of rules that are added, which are compiled one after the other
	checking   sync.Mutex // of what is asked of the policy

	states  *state.Store
	boot    string          // names the host's boot
	since   time.Time       // when this daemon began
	serving context.Context // ends the feedback servers; set by New
	stop    context.CancelFunc

	mu     sync.Mutex
	scopes map[string]*scope      // by id; guarded by mu
	slots  map[kernel.Slot]*scope // also of closed scopes; guarded by mu
	closed []*scope               // oldest first; guarded by mu
	// problems are the daemon's own degraded sentences; guarded by mu.
	problems []string
	// told are the kernel side's, as logged last; guarded by mu.
	told []string
	// orphans are slots of the kernel's without a record; guarded by mu.
	orphans []kernel.Slot
	// unread are scopes whose records could not be read, for those who ask what is
	// enforced; empty once there are no orphans. Guarded by mu.
	unread []*api.Scope
	// spoilt are the directories of those that were this version's; guarded by mu.
	spoilt []string
	// unnoted is how many scopes may be their owners; guarded by mu.
	unnoted int

	statesSwept time.Time // guarded by mu
	answersKept time.Time // used by keepAnswers alone
}

// ErrRunning tells that another daemon serves the same run directory.
var ErrRunning = errors.New("another engine daemon is running")

// New takes the run directory over, or fails with ErrRunning, and adopts the
// scopes that an earlier daemon left in it. Serve must be called next, or Close.
func New(config Config) (*Engine, error) {
	if config.Directory == "" {
		config.Directory = api.Directory
	}
	if config.host == nil {
		config.host = realHost{}
	}
	if config.now == nil {
		config.now = time.Now
	}
	if config.interval == 0 {
		config.interval = sweepInterval
	}
	if config.Retention == 0 {
		config.Retention = state.Retention
	}
	if config.Notifications == nil {
		config.Notifications = noNotifier{}
	}
	if config.Log == nil {
		config.Log = logrus.NewEntry(logrus.StandardLogger())
	}
	e := &Engine{
		config: config,
		dir:    config.Directory,
		lock:   config.Lock,
		log:    config.Log,
		boot:   bootID(),
		since:  config.now(),
		images: images{compile: config.Compile},
		scopes: map[string]*scope{},
		slots:  map[kernel.Slot]*scope{},
	}
	e.serving, e.stop = context.WithCancel(context.Background())
	if err := e.makeRunDirectory(); err != nil {
		e.Close()
		return nil, err
	}
	var err error
	if e.states, err = state.Open(cmp.Or(config.StateDirectory, StateDirectory(config.Directory)), config.Retention, config.now); err != nil {
		e.Close()
		return nil, err
	}
	if err := e.restore(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Close ends what New started, for an engine that is not served. Scopes stay
// enforced.
func (e *Engine) Close() {
	e.stop()
	e.saveRequests()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.scopes {
		s.closeListener()
	}
	if e.lock != nil {
		e.lock.Close()
		e.lock = nil
	}
}

// Serve answers on the engine's socket until ctx ends, which is no error. All
// scopes stay enforced afterwards.
func (e *Engine) Serve(ctx context.Context) error {
	defer e.Close()
	listener, err := listenUnix(filepath.Join(e.dir, "engine.sock"), 0o600)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := e.config.Kernel.Records(ctx, e.record, e.gained); err != nil && ctx.Err() == nil {
			return fmt.Errorf("read the kernel's records: %w", err)
		}
		return nil
	})
	group.Go(func() error { return e.sweepLoop(ctx) })
	group.Go(func() error { return e.keepAsksLoop(ctx) })
	group.Go(func() error { return e.consultLoop(ctx) })
	group.Go(func() error {
		e.config.Notifications.Run(ctx)
		return nil
	})
	group.Go(func() error { return e.serveAPI(ctx, listener) })
	if e.config.Ready != nil {
		e.config.Ready()
	}
	return group.Wait()
}

// scope finds a live scope by its id.
func (e *Engine) scope(id string) *scope {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.scopes[id]
}

// live lists the live scopes.
func (e *Engine) live() []*scope {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*scope, 0, len(e.scopes))
	for _, s := range e.scopes {
		all = append(all, s)
	}
	return all
}

// all lists the live scopes and those closed lately.
func (e *Engine) all() []*scope {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*scope
	for _, s := range e.scopes {
		all = append(all, s)
	}
	for _, s := range e.closed {
		if e.scopes[s.id] == nil { // else the container runs again, with the same events
			all = append(all, s)
		}
	}
	return all
}

// idLocks serialise what is done to one scope, by id, while others go on.
type idLocks struct {
	mu    sync.Mutex
	locks map[string]*idLock // guarded by mu
}

type idLock struct {
	sync.Mutex
	users int // guarded by idLocks.mu
}

func (l *idLocks) lock(id string) (unlock func()) {
	l.mu.Lock()
	if l.locks == nil {
		l.locks = map[string]*idLock{}
	}
	own := l.locks[id]
	if own == nil {
		own = &idLock{}
		l.locks[id] = own
	}
	own.users++
	l.mu.Unlock()
	own.Lock()
	return func() {
		own.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(l.locks, id)
		}
	}
}
