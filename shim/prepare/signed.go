// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/actplane/actplane/policy/signature"
)

// The origins of policies that a host can ask signatures of. What an annotation, a label
// or a variable names is of that origin wherever it is; what is in the image is of the
// image, whoever names it.
const (
	fromHost        = "host" // policy.d
	fromAnnotation  = "annotation"
	fromLabel       = "label"
	fromEnvironment = "environment"
	fromWorkspace   = "workspace"
	fromImage       = "image"
)

func signedOrigins() []string {
	return []string{fromHost, fromAnnotation, fromLabel, fromEnvironment, fromWorkspace, fromImage}
}

// limitsKey permits the annotations of all limits.
const limitsKey = "limits"

func checkOrigins(config *Config) error {
	for _, name := range config.RequireSignatures {
		if known := signedOrigins(); !contains(known, name) {
			return fmt.Errorf("require_signatures: %q is none of %s%s", name, strings.Join(known, ", "), didYouMean(name, known))
		}
	}
	for _, text := range config.Exempt {
		if key, _, ok := strings.Cut(text, "="); !ok || key == "" || strings.HasPrefix(key, Prefix) {
			return fmt.Errorf("exempt: %q is not KEY=VALUE, an annotation that is none of ours", text)
		}
	}
	for _, key := range config.Annotations {
		if known := append(keys(), limitsKey); !contains(known, key) {
			return fmt.Errorf("annotations: there is no %q%s", key, didYouMean(key, known))
		}
	}
	return nil
}

// permitted refuses annotations of ours that the host does not permit.
func permitted(annotations map[string]string, config *Config) error {
	if config.Annotations == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		key, ours := strings.CutPrefix(name, Prefix)
		if !ours || contains(config.Annotations, key) || strings.HasPrefix(key, keyLimits) && contains(config.Annotations, limitsKey) {
			continue
		}
		what := "none"
		if len(config.Annotations) > 0 {
			what = "only " + strings.Join(config.Annotations, ", ")
		}
		return fmt.Errorf("annotation %s: this host permits %s (annotations in its configuration)", name, what)
	}
	return nil
}

// of adds an origin to a document.
func (d document) of(origin string) document {
	d.origins = append(slices.Clone(d.origins), origin)
	return d
}

// hostDocument is one that is in a file of the host's.
func hostDocument(name string, text []byte, from layer, origins ...string) document {
	return document{name: name, check: name, text: text, layer: from, origins: origins,
		signature: func() ([]byte, error) { return readHostFile(name+signature.Suffix, signature.MaxSize) }}
}

// readSignature reads the signature beside a policy of the container's, as this is read.
func (c containerFiles) readSignature(name string) ([]byte, error) {
	found, err := c.read(name+signature.Suffix, inside)
	if err == nil && len(found.text) > signature.MaxSize {
		err = fmt.Errorf("it is larger than %d KiB", signature.MaxSize>>10)
	}
	return found.text, err
}

// checkSignatures refuses policies that have to be signed and are not, by somebody whom the
// host names, in the text that was read.
func (h *Host) checkSignatures(found []document, config *Config, at time.Time) error {
	var signers *signature.Signers
	for _, document := range found {
		i := slices.IndexFunc(document.origins, func(origin string) bool { return contains(config.RequireSignatures, origin) })
		if i < 0 {
			continue
		}
		if signers == nil {
			var err error
			if signers, err = h.signers(); err != nil {
				return err
			}
		}
		if err := document.signed(signers, at); err != nil {
			return fmt.Errorf("policy %q has to be signed, since this host asks it of what is from: %s (require_signatures): %w", document.name, document.origins[i], err)
		}
	}
	return nil
}

func (h *Host) signers() (*signature.Signers, error) {
	text, err := readHostFile(h.Signers, signature.MaxSigners)
	if err != nil {
		return nil, fmt.Errorf("require_signatures: read who may sign: %w", err)
	}
	return signature.ParseSigners(h.Signers, text, time.Local)
}

func (d document) signed(signers *signature.Signers, at time.Time) error {
	if d.signature == nil {
		return errors.New("a text that is in no file cannot be; name a file")
	}
	armored, err := d.signature()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s beside it; \"actplane sign\" makes one", d.name+signature.Suffix)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.name+signature.Suffix, err)
	}
	_, err = signers.Verify(d.text, armored, "", at)
	return err
}
