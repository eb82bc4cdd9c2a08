// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/actplane/actplane/policy"
	"github.com/actplane/actplane/policy/signature"
)

// maxPolicy bounds one policy document.
const maxPolicy = 1 << 20

// imagePolicy is where an image brings a policy of its own.
const imagePolicy = "/etc/actplane/policy.yaml"

// layer is whose policy a document is, outermost first.
type layer uint8

const (
	host     layer = iota // holds for every container of the host
	operator              // from who starts the container
	inside                // an image can have set it
)

// document is one policy as found. It is read once: what is compiled, hashed and
// handed to the engine is the same text.
type document struct {
	name  string // as diagnostics and the record name it
	check string // what to give to actplane check; empty when it is in no file
	text  []byte
	layer layer
	// behind is its path in the container without links, if it is mounted there.
	behind string
	// origins are those of signedOrigins that it is of. signature reads its signature, and is
	// nil where none can be: of a text that is in no file.
	origins   []string
	signature func() ([]byte, error)
}

// documents finds all policies of a container, outermost first. Each one that
// exists is a layer.
func (h *Host) documents(spec *spec, settings *settings, config *Config) ([]document, error) {
	found, err := h.floor()
	if err != nil {
		return nil, err
	}
	if !spec.isSandbox() {
		chosen, err := h.chosen(spec, settings)
		if err != nil {
			return nil, err
		}
		found = append(found, chosen...)
	}
	if err := h.checkSignatures(found, config, time.Now()); err != nil {
		return nil, err
	}
	if spec.isSandbox() { // the pod's policy is of its containers
		own, err := sandboxPolicy(spec)
		return append(found, own), err
	}
	return order(found), nil
}

// chosen are the policies that settings name, and those that are where one is looked for.
func (h *Host) chosen(spec *spec, settings *settings) ([]document, error) {
	var found []document
	files := containerFiles{spec: spec}
	for _, layer := range settings.layers {
		if layer.policy != "" {
			document, err := h.named(layer)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", layer.name(keyPolicy), err)
			}
			found = append(found, document.of(layer.origin.signed))
		}
		if layer.policyFile != "" {
			document, err := files.read(absolute(layer.policyFile, settings.workspace), layer.origin.layer)
			if errors.Is(err, fs.ErrNotExist) {
				err = errors.New("there is no such file in the container's mounts or image; mount the folder that it is in")
			}
			if err != nil {
				return nil, fmt.Errorf("%s: policy file %q: %w", layer.name(keyPolicyFile), layer.policyFile, err)
			}
			found = append(found, document.of(layer.origin.signed))
		}
	}
	for _, name := range defaultFiles(settings) {
		document, err := files.read(name, inside)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("policy file %q: %w", name, err)
		}
		if !contains(document.origins, fromImage) {
			document = document.of(fromWorkspace)
		}
		found = append(found, document)
	}
	return found, nil
}

// defaultFiles are the paths in the container at which a policy is looked for
// without being told.
func defaultFiles(settings *settings) []string {
	return []string{
		path.Join(settings.workspace, "actplane.yaml"), path.Join(settings.workspace, ".actplane/policy.yaml"), imagePolicy,
	}
}

// kept are all paths in the container from which this start or the next one may
// read a policy, also those at which there is none now, and the folders that are
// mounted.
func kept(spec *spec, settings *settings, config *Config, found []document) []string {
	files := defaultFiles(settings)
	for _, mount := range spec.mounts {
		if at := destination(mount); isBind(mount) && at != "/" {
			files = append(files, at+"/")
		}
	}
	for _, document := range found {
		if document.behind != "" {
			files = append(files, document.behind)
		}
	}
	for _, layer := range settings.layers {
		if layer.policyFile != "" {
			files = append(files, absolute(layer.policyFile, settings.workspace))
		}
	}
	if len(config.RequireSignatures) > 0 {
		for _, file := range files {
			if !strings.HasSuffix(file, "/") {
				files = append(files, file+signature.Suffix)
			}
		}
	}
	return files
}

// order sorts by layer, keeps the order within one, and drops a text that is
// there already further out: it would only say everything twice.
func order(found []document) []document {
	var ordered []document
	seen := map[[sha256.Size]byte]bool{}
	for layer := host; layer <= inside; layer++ {
		for _, document := range found {
			hash := sha256.Sum256(document.text)
			if document.layer == layer && !seen[hash] {
				seen[hash] = true
				ordered = append(ordered, document)
			}
		}
	}
	return ordered
}

func absolute(name, workspace string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(workspace, name)
}

// floor reads the host's policies for every container, sorted by name.
func (h *Host) floor() ([]document, error) {
	entries, err := os.ReadDir(h.Floor)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read host policies: %w", err)
	}
	var found []document
	for _, entry := range entries {
		name := filepath.Join(h.Floor, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if filepath.Ext(name) == ".yml" {
			return nil, fmt.Errorf("host policy %q: only names that end in .yaml are read; rename it", name)
		}
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		text, err := readHostFile(name, maxPolicy)
		if err != nil {
			return nil, fmt.Errorf("read host policy: %w", err)
		}
		found = append(found, hostDocument(name, text, host, fromHost))
	}
	return found, nil
}

// named is the policy of a `policy` setting: the name of one of the host's, or
// the policy itself.
func (h *Host) named(settings originSettings) (document, error) {
	value := settings.policy
	if strings.ContainsAny(value, ":\n") {
		if len(value) > maxPolicy {
			return document{}, fmt.Errorf("the policy is larger than %d MiB", maxPolicy>>20)
		}
		if isCut(value) {
			return document{}, fmt.Errorf("the policy %q says nothing: podman 4 cuts a value at its first line end; "+
				"name a policy of the host's or a file", printable(value))
		}
		return document{name: settings.name(keyPolicy), text: []byte(value), layer: settings.origin.layer}, nil
	}
	if !validName(value) {
		return document{}, fmt.Errorf("%q is neither the name of a host policy nor a policy", printable(value))
	}
	file := filepath.Join(h.Policies, value+".yaml")
	text, err := readHostFile(file, maxPolicy)
	if errors.Is(err, fs.ErrNotExist) {
		return document{}, fmt.Errorf("the host has no policy %q: there is no %s%s", value, file, didYouMean(value, h.names()))
	}
	if err != nil {
		return document{}, fmt.Errorf("read host policy: %w", err)
	}
	return hostDocument(file, text, settings.origin.layer), nil
}

// isCut tells a policy of one line that says nothing: others lost those that follow.
func isCut(text string) bool {
	if strings.Contains(text, "\n") {
		return false
	}
	p, err := policy.Compile([]policy.Document{{Name: "policy", Text: []byte(text)}}, policy.Options{Workspace: "/"})
	if err != nil {
		return false // which is told with the others
	}
	says := p.Program
	return len(says.Clauses)+len(says.Defaults)+len(says.Protects) == 0 && reflect.ValueOf(says.Limits).IsZero()
}

// name is how this origin names a key.
func (s originSettings) name(key string) string {
	return s.origin.noun + " " + fullName(s.origin.prefix, key)
}

// names are those of the policies that the host offers.
func (h *Host) names() []string {
	entries, _ := os.ReadDir(h.Policies)
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".yaml"); ok {
			names = append(names, name)
		}
	}
	return names
}

func validName(name string) bool {
	for i, c := range []byte(name) {
		alnum := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("._-", rune(c))) {
			return false
		}
	}
	return name != "" && len(name) <= 64
}
