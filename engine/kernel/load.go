// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/actplane/actplane/bpf"
	"github.com/actplane/actplane/policy/dfa"
)

// DefaultPinDir is where maps, programs and links are pinned.
const DefaultPinDir = "/sys/fs/bpf/actplane"

// Config says where the kernel side keeps what must outlive the process.
type Config struct {
	PinDir string // in a bpf file system; "" is DefaultPinDir
	RunDir string // for the self-test's files; "" is /run/actplane
	// StateDir is for what outlives a boot: the key that names what was answered. ""
	// is RunDir.
	StateDir string
	// AllowDegraded uses the fmod_ret tier also where the kernel skips some of its
	// programs; Problems tells.
	AllowDegraded bool
	// Linger is for how long hooks that no scope needs any more stay attached: attaching
	// and detaching them takes the kernel a second or more, which the next container
	// is then spared. 0: they go at once.
	Linger time.Duration

	verifierLog ebpf.LogLevel // what the verifier tells of programs that it accepts
}

// Kernel is the loaded kernel side. Its methods may be called concurrently.
type Kernel struct {
	config  Config
	tier    Tier
	spec    *ebpf.CollectionSpec
	skips   bool // programs of this tier are skipped under load
	present []hook
	idmap   bool // the kernel's inode_setattr hook has an idmap argument

	maps     map[string]*ebpf.Map
	programs map[string]*ebpf.Program

	mu      sync.Mutex
	links   map[string]link.Link // guarded by mu; by program name
	markers map[uint32]link.Link // guarded by mu; by slot
	images  images               // guarded by mu
	scopes  map[uint32]installed // guarded by mu; by slot
	probes  map[Slot]chan Record // guarded by mu; self-tests that wait for their record
	// current is the image of each slot, for who reads records and must not wait.
	current [bpf.EnforcerLimitsLIMIT_SCOPES]atomic.Uint32
	// lingering detaches what is not needed when its time comes, and lingers tells that it
	// has not come; lingered is what went wrong with it last. All guarded by mu.
	lingering *time.Timer
	lingers   bool
	lingered  error
}

// installed is what this process knows of a scope in the kernel.
type installed struct {
	generation uint32
	image      uint32
	previous   uint32 // image that is kept for what was decided under it, plus one; 0: none
	needs      need
	locked     bool       // all hooks are needed
	policy     *dfa.Image // nil for a scope of a former process
}

// Open makes the kernel side ready: it adopts what is pinned when scopes live
// there, and loads afresh otherwise. The error is an UnsupportedError when this
// host cannot enforce. The caller closes it.
func Open(config Config) (*Kernel, error) {
	return openTier(config, "")
}

// openTier is Open; a tier that is not empty is used without probing.
func openTier(config Config, tier Tier) (*Kernel, error) {
	if config.PinDir == "" {
		config.PinDir = DefaultPinDir
	}
	if config.RunDir == "" {
		config.RunDir = "/run/actplane"
	}
	if config.StateDir == "" {
		config.StateDir = config.RunDir
	}
	spec, err := bpf.LoadEnforcer()
	if err != nil {
		return nil, fmt.Errorf("read the programs: %w", err)
	}
	k := &Kernel{
		config:   config,
		tier:     tier,
		spec:     spec,
		maps:     map[string]*ebpf.Map{},
		programs: map[string]*ebpf.Program{},
		links:    map[string]link.Link{},
		markers:  map[uint32]link.Link{},
		scopes:   map[uint32]installed{},
		probes:   map[Slot]chan Record{},
	}
	if err := k.open(); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func (k *Kernel) open() error {
	// Of self-tests that a process did not live to end.
	left, _ := filepath.Glob(filepath.Join(k.config.RunDir, selfTestFile+"*")) // the pattern is right
	for _, file := range left {
		if err := removeIfThere(file); err != nil {
			return fmt.Errorf("remove what a self-test left: %w", err)
		}
	}
	adopted, err := k.adopt()
	if err != nil || adopted {
		return err
	}
	if err := Uninstall(k.config.PinDir); err != nil {
		return err
	}
	if k.tier == "" {
		if k.tier, err = Probe(context.Background()); err != nil {
			return err
		}
		if err := k.refuseSkips(); err != nil {
			return err
		}
	}
	return k.load()
}

func (k *Kernel) refuseSkips() error {
	skipped, err := Skips(k.tier)
	if err != nil {
		return fmt.Errorf("probe whether programs are skipped: %w", err)
	}
	if skipped && !k.config.AllowDegraded {
		return errSkips()
	}
	k.skips = skipped
	return nil
}

// Tier returns the tier in use.
func (k *Kernel) Tier() Tier { return k.tier }

// Close releases this process's handles. What is pinned stays, and with it the
// enforcement.
func (k *Kernel) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	if k.lingers {
		k.lingers = false
		errs = append(errs, k.detachUnneeded()) // nobody else will
	}
	for _, l := range k.links {
		errs = append(errs, l.Close())
	}
	for _, l := range k.markers {
		errs = append(errs, l.Close())
	}
	for _, p := range k.programs {
		errs = append(errs, p.Close())
	}
	for _, m := range k.maps {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// Uninstall removes everything that is pinned: from then on nothing is enforced.
func Uninstall(pinDir string) error {
	if err := os.RemoveAll(pinDir); err != nil {
		return fmt.Errorf("remove pins: %w", err)
	}
	return nil
}

// load loads the tier's programs and pins them with their maps. Nothing is
// attached yet.
func (k *Kernel) load() error {
	if err := k.selectPrograms(); err != nil {
		return err
	}
	if err := k.makePinDir(); err != nil {
		return err
	}
	delete(k.spec.Maps, ".bss") // variables that only make clang describe types
	k.spec.Variables = nil
	for _, m := range k.spec.Maps {
		m.Pinning = ebpf.PinByName
		if strings.HasPrefix(m.Name, ".") {
			m.Pinning = ebpf.PinNone // constants
		}
	}
	spec := k.spec.Copy()
	collection, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		Maps:     ebpf.MapOptions{PinPath: k.dir("maps")},
		Programs: ebpf.ProgramOptions{LogLevel: k.config.verifierLog},
	})
	if err != nil {
		return k.explain(err)
	}
	defer collection.Close()
	for name := range collection.Maps {
		k.maps[name] = collection.DetachMap(name)
	}
	for name := range collection.Programs {
		k.programs[name] = collection.DetachProgram(name)
		if err := k.programs[name].Pin(filepath.Join(k.dir("programs"), name)); err != nil {
			return fmt.Errorf("pin program %q: %w", name, err)
		}
	}
	return k.initHost()
}

// selectPrograms keeps of the programs those of the tier and this kernel, and fits the
// pool of buffers to the host.
func (k *Kernel) selectPrograms() error {
	present, idmap, err := present(k.tier)
	if err != nil {
		return &UnsupportedError{Reason: fmt.Sprintf("kernel %s cannot enforce: %v; boot a kernel of a "+
			"common distribution", Release(), err), cause: err}
	}
	k.present, k.idmap = present, idmap
	names := map[string]bool{}
	for name, p := range k.spec.Programs {
		names[name] = p.Type == ebpf.Syscall || p.Type == ebpf.CGroupSysctl // the daemon's own, and the marker
	}
	for _, h := range present {
		if name := h.program(k.tier, idmap); name != "" {
			names[name] = true
		}
	}
	keepPrograms(k.spec, names)
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count CPUs: %w", err)
	}
	for _, pool := range []string{"scratches", "outputs"} {
		k.spec.Maps[pool].MaxEntries = uint32(cpus) * uint32(bpf.EnforcerLimitsLIMIT_SCRATCHES_PER_CPU)
	}
	return nil
}

func (k *Kernel) dir(kind string) string {
	return filepath.Join(k.config.PinDir, fmt.Sprintf("v%d", bpf.EnforcerLimitsLIMIT_ABI), kind)
}

func (k *Kernel) makePinDir() error {
	if err := mountBPF(filepath.Dir(k.config.PinDir)); err != nil {
		return err
	}
	for _, kind := range []string{"maps", "programs", "links", "markers"} {
		if err := os.MkdirAll(k.dir(kind), 0o700); err != nil {
			return fmt.Errorf("make the pin directory: %w", err)
		}
	}
	return nil
}

// mountBPF mounts a bpf file system where there is none yet.
func mountBPF(dir string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err == nil && stat.Type == unix.BPF_FS_MAGIC {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %q: %w", dir, err)
	}
	if err := unix.Mount("bpf", dir, "bpf", 0, "mode=0700"); err != nil {
		return fmt.Errorf("mount a bpf file system at %q: %w", dir, err)
	}
	return nil
}

// initHost writes the ABI and lets a program note the host's root directory.
func (k *Kernel) initHost() error {
	secret, err := k.secret()
	if err != nil {
		return err
	}
	symbols, err := kernelSymbols("rename_lock", "mount_lock")
	if err != nil {
		return err
	}
	host := bpf.EnforcerHost{Renames: symbols["rename_lock"], Mounts: symbols["mount_lock"], Abi: uint32(bpf.EnforcerLimitsLIMIT_ABI), Tier: tierNumber(k.tier), Secret: secret}
	if err := k.maps["hosts"].Put(uint32(0), host); err != nil {
		return fmt.Errorf("write the host's state: %w", err)
	}
	result, err := k.programs["note_host_root"].Run(&ebpf.RunOptions{})
	if err != nil {
		return fmt.Errorf("note the host's root: %w", err)
	}
	if result != 0 {
		return errors.New("note the host's root: no state")
	}
	return nil
}

func tierNumber(tier Tier) uint32 {
	if tier == LSM {
		return 1
	}
	return 2
}

func tierByNumber(number uint32) Tier {
	if number == 1 {
		return LSM
	}
	return FmodRet
}

// explain keeps a verifier's log in the run directory, for a report of the fault, and
// says where.
func (k *Kernel) explain(err error) error {
	var verifier *ebpf.VerifierError
	if !errors.As(err, &verifier) {
		return fmt.Errorf("load the programs: %w", err)
	}
	path := filepath.Join(k.config.RunDir, "verifier.log")
	text := strings.Join(append([]string{"kernel " + Release()}, verifier.Log...), "\n") + "\n"
	if writeErr := os.WriteFile(path, []byte(text), 0o600); writeErr != nil {
		path = "not kept: " + writeErr.Error()
	}
	return fmt.Errorf("load the programs: kernel %s does not accept them: %w (the verifier's whole log: %s)", Release(), verifier, path)
}
