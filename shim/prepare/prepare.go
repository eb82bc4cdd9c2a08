// SPDX-License-Identifier: Apache-2.0

// Package prepare puts a container under policy before it is created: it finds
// the policy layers, compiles them, stages a scope with the engine and hardens
// the OCI spec. All front ends share it.
//
// It fails closed: any error means that the container must not be created. What
// comes from inside the container (labels, environment, files) can only add
// policies and limits, never lift one.
package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/bundle"
	"github.com/actplane/actplane/internal/daemon"
	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/ir"
)

const (
	prepareTimeout = 60 * time.Second
	closeTimeout   = 2 * time.Second
	// maxRequest keeps a request within the 4 MiB of a ttrpc message.
	maxRequest = 4<<20 - 16<<10
)

// ErrRestore refuses to restore a container. Its programs would run on without an exec,
// which is where a policy begins to hold for them.
var ErrRestore = errors.New("restore is not supported under ActPlane, since a checkpoint carries no proof of its policy; create the container again")

// Host is where a host keeps what a container is prepared from.
type Host struct {
	Config   string         // the host configuration, a file
	Floor    string         // the folder of policies that hold for every container
	Policies string         // the folder of policies that containers choose from
	Signers  string         // the file of those whose signatures of policies count
	Records  bundle.Records // what exec needs later
	Hook     string         // the hook program; empty: look for it
	Engine   daemon.Options
	Swap     func() bool // whether the host has swap space
	Proc     string      // where proc(5) is mounted; empty is /proc
}

// DefaultHost is the host as installed.
func DefaultHost() *Host {
	return &Host{
		Config:   "/etc/actplane/config.yaml",
		Floor:    "/etc/actplane/policy.d",
		Policies: "/etc/actplane/policies",
		Signers:  "/etc/actplane/allowed_signers",
		Records:  bundle.Records(api.Directory + "/runtime"),
		Swap:     hasSwap,
	}
}

// Container names a container that is about to be created.
type Container struct {
	ID     string
	Root   string // the runtime's --root
	Bundle string // the bundle's directory
	// Runtime is the program that will create it; empty is not known.
	Runtime string
}

// Staged is a container that was prepared; its bundle is written.
type Staged struct {
	host   *Host
	record bundle.Record
	scope  bool // the engine has a scope for it
}

// spec is what of config.json is read; package bundle edits the rest.
type spec struct {
	cwd  string
	args []string
	env  []string
	// capabilities are those in any of the process's sets.
	capabilities []string
	rootfs       string
	mounts       []specs.Mount
	annotations  map[string]string
	bundle       string
}

// Prepare does everything that has to be done before the next runtime creates
// the container.
func (h *Host) Prepare(ctx context.Context, container Container) (*Staged, error) {
	if err := bundle.ValidID(container.ID); err != nil {
		return nil, err
	}
	directory, err := filepath.Abs(container.Bundle)
	if err != nil {
		return nil, fmt.Errorf("find bundle: %w", err)
	}
	// Hooks are told the bundle's path without links in it.
	if directory, err = filepath.EvalSymlinks(directory); err != nil {
		return nil, fmt.Errorf("find bundle: %w", err)
	}
	container.Bundle = directory
	file, err := bundle.Open(filepath.Join(directory, bundle.ConfigName))
	if err != nil {
		return nil, err
	}
	config, err := LoadConfig(h.Config)
	if err != nil {
		return nil, err
	}
	if err := dropOwn().run(file.Root); err != nil {
		return nil, err
	}
	plan, err := h.plan(container, config, file.Root)
	if err != nil {
		return nil, err
	}
	h.Records.Sweep(time.Now())
	staged := &Staged{host: h, record: bundle.Record{
		ID: container.ID, Root: container.Root, Bundle: directory,
		Capabilities: plan.limits.filters, NoNewPrivileges: plan.limits.noNewPrivileges,
		Limits:    bundle.Limits{Pids: plan.limits.pids, Memory: plan.limits.memory, CPUs: plan.limits.cpus},
		Unmanaged: plan.program == nil, SharedPID: plan.sharedPID,
	}}
	if err := staged.apply(ctx, plan, file); err != nil {
		staged.Undo()
		return nil, err
	}
	return staged, nil
}

// plan is all that is decided before anything is changed.
type plan struct {
	spec     *spec
	settings *settings
	docker   bool // it is Docker's
	name     string
	layers   []document
	compiled *policy.Policy // nil without a policy
	program  *ir.Program    // what of it the engine gets; nil without a policy
	limits   limits
	// warnings are sentences for the operator, the gravest first.
	warnings []string
	silent   bool // the container is told of nothing
	// openPaths of the kernel's are to be protected.
	openPaths []string
	sharedPID bool // its processes are not alone in their process namespace
	agents    []agentFolder
	image     string    // as its starter called it; empty is not known
	home      string    // a directory that goes with the container; empty is not known
	ended     time.Time // when it ended last; zero: it has not run, as far as is known
}

func (h *Host) plan(container Container, config *Config, root bundle.Object) (*plan, error) {
	if exempted, err := exempt(root, config); err != nil || exempted {
		return &plan{}, err
	}
	plan, err := h.read(container, config, root)
	if err != nil {
		return nil, err
	}
	if plan.compiled == nil {
		if config.RequirePolicy {
			return nil, plan.noPolicy(container.ID)
		}
		return plan, nil
	}
	settings := plan.settings
	plan.program = plan.compiled.Program
	if settings.feedback != "" { // above all documents
		plan.program.Feedback.Stderr = settings.feedback == feedbackStderr
	}
	plan.silent = settings.feedback == feedbackNone
	files := containerFiles{spec: plan.spec}
	var missed []string
	plan.agents, missed, err = files.agentHooks(settings)
	if err != nil {
		return nil, err
	}
	if err := files.straight(settings.workspace); err != nil {
		return nil, fmt.Errorf("workspace %q: %w", settings.workspace, err)
	}
	if err := files.redirected(plan.program); err != nil {
		return nil, err
	}
	exposed, err := h.expose(container, config, root, plan)
	if err != nil {
		return nil, err
	}
	plan.warnings = slices.Concat(exposed, plan.limits.weaknesses(plan.spec.capabilities, plan.program), missed, files.strayed(plan.compiled), CompilerWarnings(plan.compiled))
	return plan, nil
}

// read finds a container's settings and policies, and compiles these; there may be none.
func (h *Host) read(container Container, config *Config, root bundle.Object) (*plan, error) {
	spec, err := readSpec(container.Bundle, root)
	if err != nil {
		return nil, err
	}
	docker, err := readDocker(container.ID, spec.mounts)
	if err != nil {
		return nil, err
	}
	settings, err := readSettings(spec, docker, config)
	if err != nil {
		return nil, err
	}
	plan := &plan{spec: spec, settings: settings, docker: docker != nil, name: displayName(spec, docker), image: imageName(spec, docker), ended: docker.ended()}
	plan.home = homeOf(spec, docker)
	for _, layer := range settings.layers {
		plan.limits.tighten(layer.limits)
	}
	plan.layers, err = h.documents(spec, settings, config)
	if err != nil || len(plan.layers) == 0 {
		return plan, err
	}
	plan.compiled, err = compile(plan.layers, settings.workspace, kept(spec, settings, config, plan.layers))
	if err != nil {
		return nil, err
	}
	plan.limits.tighten(plan.compiled.Program.Limits)
	return plan, nil
}

// noPolicy says what to do, in the words of who starts the container: older Docker has
// labels, but no annotations, and Kubernetes has no command line.
func (p *plan) noPolicy(id string) error {
	key := Prefix + keyPolicyFile
	how, example := "--annotation "+key+"=PATH", ""
	switch {
	case p.spec.containerName() != "":
		how = "the pod's annotation " + key + ", which the container manager has to pass on (pod_annotations of containerd, allowed_annotations of CRI-O)"
	case p.docker:
		how, example = "--label "+key+"=PATH", ` (such as -v "$PWD:/src" -w /src)`
	}
	where := "into its workspace " + p.settings.workspace
	if p.settings.workspace == "/" {
		where = "as part of its working directory" + example
	}
	return fmt.Errorf("no policy found for container %q: mount an actplane.yaml %s, or name a mounted one with %s", p.title(id), where, how)
}

func (p *plan) title(id string) string {
	if p.name != "" {
		return p.name
	}
	return id
}

// hardening are the changes by which the container is limited.
func (p *plan) hardening(swap func() bool) []modifier {
	modifiers := p.limits.modifiers(swap)
	if len(p.openPaths) > 0 {
		modifiers = append(modifiers, protectPaths(p.openPaths))
	}
	return modifiers
}

// apply stages the scope and writes the bundle and the record.
func (s *Staged) apply(ctx context.Context, plan *plan, file *bundle.File) error {
	modifiers := plan.hardening(s.host.Swap)
	if plan.program != nil {
		hook := s.host.Hook
		if hook == "" {
			var err error
			if hook, err = FindProgram(hookName); err != nil {
				return err
			}
		}
		directory, err := s.stage(ctx, plan)
		if err != nil {
			return err
		}
		mounts, err := writeAgents(directory, plan.agents)
		if err != nil {
			return err
		}
		if !plan.silent {
			modifiers = append(modifiers, mountScope(directory), mountAgents(mounts))
		}
		modifiers = append(modifiers, addHooks(hook))
	}
	for _, modifier := range modifiers {
		if err := modifier.run(file.Root); err != nil {
			return err
		}
	}
	if err := s.host.Records.Save(&s.record); err != nil {
		return err
	}
	return file.Save()
}

// stage hands the policy to the engine, and starts the engine where it must.
func (s *Staged) stage(ctx context.Context, plan *plan) (string, error) {
	program, err := json.Marshal(plan.program)
	if err != nil {
		return "", fmt.Errorf("encode policy: %w", err)
	}
	request := &api.PrepareRequest{Id: s.record.ID, Program: program, Mode: modeEnforce, Name: plan.name, Warnings: plan.warnings, Home: plan.home, Image: plan.image, NoFeedback: plan.silent}
	if !plan.ended.IsZero() {
		request.EndedUnixMs = plan.ended.UnixMilli()
	}
	size := len(program)
	for _, layer := range plan.layers {
		size += len(layer.name) + len(layer.text)
		request.Layers = append(request.Layers, &api.Layer{Name: layer.name, Text: layer.text})
	}
	if size > maxRequest {
		return "", fmt.Errorf("the %d policies of the container have %d KiB together, compiled and as text, and the engine takes %d KiB; make them smaller",
			len(plan.layers), size>>10, maxRequest>>10)
	}
	client, err := daemon.Ensure(ctx, s.host.Engine)
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	response, err := client.Prepare(ctx, request)
	if err != nil {
		return "", fmt.Errorf("actplane engine does not take the policy: %s", daemon.Reason(err))
	}
	s.scope = true
	if !plan.silent && !filepath.IsAbs(response.Directory) {
		return "", fmt.Errorf("actplane engine gave no directory for container %q but %q", s.record.ID, response.Directory)
	}
	return response.Directory, nil
}

// Undo takes back what Prepare did outside of the bundle, when the container
// will not be created after all.
func (s *Staged) Undo() {
	if s.scope {
		CloseScope(s.host.Engine, s.record.ID)
	}
	if s.owned() {
		s.host.Records.Remove(s.record.ID)
	}
}

// owned says that the record is this container's: another one of the same id may
// live under another root, and its create came first.
func (s *Staged) owned() bool {
	record, err := s.host.Records.Load(s.record.ID)
	return err == nil && record.Pid == 0 && record.Root == s.record.Root && record.Bundle == s.record.Bundle
}

// CloseScope tells a running engine that a container is gone. It is best effort:
// the engine itself finds out as well, only later.
func CloseScope(engine daemon.Options, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	client, err := daemon.Connect(ctx, engine)
	if err != nil {
		return
	}
	defer client.Close()
	client.EngineClient.Close(ctx, &api.CloseRequest{Id: id})
}

func readSpec(directory string, root bundle.Object) (*spec, error) {
	var process struct {
		Cwd          string
		Args, Env    []string
		Capabilities map[string][]string
	}
	found, err := root.Get("process", &process)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errors.New("config.json has no process")
	}
	var rootfs struct{ Path string }
	if _, err := root.Get("root", &rootfs); err != nil {
		return nil, err
	}
	if rootfs.Path == "" {
		return nil, errors.New("config.json has no root.path")
	}
	spec := &spec{cwd: process.Cwd, args: process.Args, env: process.Env, rootfs: rootfs.Path, bundle: directory}
	for _, set := range process.Capabilities {
		spec.capabilities = append(spec.capabilities, set...)
	}
	if !filepath.IsAbs(spec.rootfs) {
		spec.rootfs = filepath.Join(directory, spec.rootfs)
	}
	if _, err := root.Get("mounts", &spec.mounts); err != nil {
		return nil, err
	}
	if _, err := root.Get("annotations", &spec.annotations); err != nil {
		return nil, err
	}
	return spec, nil
}

const maxImageName = 1024

// displayName is what people call the container, where somebody tells.
func displayName(spec *spec, docker *dockerFile) string {
	if docker != nil && docker.Name != "" {
		return docker.Name
	}
	if spec.isSandbox() {
		if name := spec.firstAnnotation("io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"); name != "" {
			return name + "/sandbox"
		}
	}
	return spec.firstAnnotation("nerdctl/name", "io.kubernetes.cri.container-name", "io.kubernetes.container.name", "io.container.name")
}

func hasSwap() bool {
	data, err := os.ReadFile("/proc/swaps")
	if err != nil {
		return true // cannot tell: limit it
	}
	lines := 0
	for _, c := range data {
		if c == '\n' {
			lines++
		}
	}
	return lines > 1
}

// imageName is what the container's image was called when it was made, where somebody
// tells. It is for people and approvers; nothing here is decided by it.
func imageName(spec *spec, docker *dockerFile) string {
	name := ""
	if docker != nil {
		name = docker.Config.Image
	}
	for _, key := range []string{"io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName"} {
		if name == "" {
			name = spec.annotations[key]
		}
	}
	if len(name) > maxImageName || !utf8.ValidString(name) {
		return ""
	}
	return name
}
