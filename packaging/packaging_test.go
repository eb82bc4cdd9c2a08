// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The file is of the form of oci-hooks(5), which refuses unknown keys; the annotations are
// ours and no other's, and the runtime waits for longer than the hook takes.
func TestHook(t *testing.T) {
	var file struct {
		Version string `json:"version"`
		Hook    struct {
			Path    string   `json:"path"`
			Args    []string `json:"args"`
			Env     []string `json:"env"`
			Timeout int      `json:"timeout"`
		} `json:"hook"`
		When struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"when"`
		Stages []string `json:"stages"`
	}
	decoder := json.NewDecoder(strings.NewReader(Hook))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if file.Version != "1.0.0" || !filepath.IsAbs(file.Hook.Path) || !slices.Equal(file.Hook.Args, []string{"actplane-hook", "alone"}) || file.Hook.Timeout < 60 ||
		!slices.Equal(file.Stages, []string{"createRuntime", "poststop"}) {
		t.Errorf("%+v", file)
	}
	for key := range file.When.Annotations {
		form, err := regexp.Compile(key)
		if err != nil || !form.MatchString("dev.actplane.policy") || form.MatchString("dev-actplane.policy") || form.MatchString("x.dev.actplane.policy") {
			t.Errorf("%q: %v", key, err)
		}
	}
}
