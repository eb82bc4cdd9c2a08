// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// TestSchemaKeys wants each key that the reader knows in the schema, and the reverse.
func TestSchemaKeys(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"":                  fileKeys,
		"properties/limits": limitKeys,
		"properties/limits/properties/capabilities":                     capabilityKeys,
		"properties/feedback":                                           append([]string{"path"}, feedbackKeys...),
		"properties/protect/items/anyOf/1":                              protectKeys,
		"properties/rules/additionalProperties":                         ruleKeys,
		"properties/domains/additionalProperties":                       domainKeys,
		"properties/domains/additionalProperties/properties/bind/items": bindingKeys,
	} {
		var at any = schema
		for _, step := range strings.Split(path, "/") {
			switch v := at.(type) {
			case map[string]any:
				if step != "" {
					at = v[step]
				}
			case []any:
				at = v[int(step[0]-'0')]
			}
		}
		object, _ := at.(map[string]any)
		properties, _ := object["properties"].(map[string]any)
		got := slices.Sorted(maps.Keys(properties))
		want = slices.Sorted(slices.Values(want))
		if !slices.Equal(got, want) || object["additionalProperties"] != false {
			t.Errorf("keys of %q are %q, want %q and no others", path, got, want)
		}
	}
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("policy.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate checks a YAML text as an editor does.
func validate(t *testing.T, schema *jsonschema.Schema, text []byte) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(doc)
}

// TestSchemaAccepts validates all valid documents of the tests, of the examples and
// of the reference.
func TestSchemaAccepts(t *testing.T) {
	schema := compiledSchema(t)
	var docs [][]byte
	names, _ := filepath.Glob("testdata/*/*.txtar")
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			docs = append(docs, f.Data)
		}
	}
	examples, _ := filepath.Glob("../examples/*/actplane.yaml")
	if len(examples) == 0 {
		t.Error("no examples")
	}
	for _, name := range append(examples, "../docs/language.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) == ".yaml" {
			docs = append(docs, text)
		}
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
			docs = append(docs, m[1])
		}
	}
	valid := 0
	for _, text := range docs {
		if _, err := Compile([]Document{{Name: "f", Text: text}}, Options{}); err != nil {
			continue
		}
		valid++
		if err := validate(t, schema, text); err != nil {
			t.Errorf("%v\nin\n%s", err, text)
		}
	}
	if valid < 40 {
		t.Errorf("only %d valid documents", valid)
	}
}

// TestSchemaAgrees wants the same answer of the schema and the compiler.
func TestSchemaAgrees(t *testing.T) {
	schema := compiledSchema(t)
	const head = "policy: 'rule a: block exec \"x\"'\n"
	for text, want := range map[string]bool{
		head + "version: 1":                                            true,
		head + "version: '1'":                                          true,
		head + "version: 2":                                            false,
		head + "workspace: /w":                                         true,
		head + "workspace: w":                                          false,
		head + "ifc: 'rule b: block exec \"x\"'":                       false,
		head + "rules: {a: {ifc: 'rule b: block exec \"x\"'}}":         false,
		head + "default_domain: a":                                     true,
		head + "polcy: a":                                              false,
		head + "protect: [a, {path: b}, {path: c, if: true}]":          true,
		head + "protect: a":                                            false,
		head + "protect: [{if: true}]":                                 false,
		head + "protect: [{path: a, then: b}]":                         false,
		head + "feedback: {stderr: true}":                              true,
		head + "feedback: {stderr: 1}":                                 false,
		head + "feedback: {path: /x}":                                  true,
		head + "limits: {pids: 1, memory: 2GiB, cpus: 0.5}":            true,
		head + "limits: {pids: 4194304, memory: 1.5g, cpus: '2'}":      true,
		head + "limits: {memory: 1000}":                                true,
		head + "limits: {memory: 12 KB}":                               true,
		head + "limits: {memory: 12 KX}":                               false,
		head + "limits: {memory: 12 KiBB}":                             false,
		head + "version: 1.0":                                          true,
		head + "version: 1e0":                                          true,
		head + "version: 1.1":                                          false,
		head + "version: '1.0'":                                        false,
		head + "version: true":                                         false,
		head + "limits: {memory: 1e9}":                                 true,
		head + "limits: {memory: 0x1000}":                              true,
		head + "limits: {memory: 1.5}":                                 false,
		head + "limits: {memory: '1.5'}":                               false,
		head + "limits: {memory: '0'}":                                 false,
		head + "limits: {memory: '1e9'}":                               false,
		head + "limits: {memory: 1e30}":                                false,
		head + "limits: {memory: 0.5Ki}":                               true,
		head + "limits: {pids: 1e3}":                                   true,
		head + "limits: {pids: 1e-3}":                                  false,
		head + "limits: {pids: '+12'}":                                 true,
		head + "limits: {pids: '1e3'}":                                 false,
		head + "limits: {cpus: 1e1}":                                   true,
		head + "limits: {cpus: '1e1'}":                                 false,
		head + "limits: {cpus: '0x1p1'}":                               false,
		head + "limits: {memory: 0}":                                   false,
		head + "limits: {pids: 0}":                                     false,
		head + "limits: {pids: 4194305}":                               false,
		head + "limits: {pids: 1.5}":                                   false,
		head + "limits: {cpus: 0}":                                     false,
		head + "limits: {cpus: many}":                                  false,
		head + "limits: {swap: 1}":                                     false,
		head + "limits: {no_new_privileges: true}":                     true,
		head + "limits: {no_new_privileges: maybe}":                    false,
		head + "limits: {capabilities: {drop: [ALL], add: [CHOWN]}}":   true,
		head + "limits: {capabilities: {drop: [cap_chown, all, bpf]}}": true,
		head + "limits: {capabilities: {add: [CAP_CHOWN]}}":            true,
		head + "limits: {capabilities: {add: [ALL]}}":                  false,
		head + "limits: {capabilities: {add: [CHWN]}}":                 false,
		head + "limits: {capabilities: {add: CHOWN}}":                  false,
		"policy: 1":   false,
		"policy:":     false,
		"[a]":         false,
		"domains: {}": false,
		"rules: {a: {ifc: 'rule b: block exec \"x\"'}}":                                                                         false,
		"rules: {a: {ifc: 'rule b: block exec \"x\"'}}\ndomains: {session: {bind: [{rule: a, mode: locked}]}, t: }":             true,
		"rules: {a: {policy: 'rule b: block exec \"x\"'}}\ndomains: {s: {bind: [{rule: a, mode: default}]}}\ndefault_domain: s": true,
		"rules: {a: {ifc: 'rule b: block exec \"x\"'}}\ndomains: {s: {bind: [{rule: a, mode: open}]}}":                          false,
		"rules: {a: {ifc: 'rule b: block exec \"x\"'}}\ndomains: {s: {bind: [{rule: a}]}}":                                      false,
		"rules: {a: {}}\ndomains: {s: {bind: [{rule: a, mode: locked}]}}":                                                       false,
	} {
		_, err := Compile([]Document{{Name: "f", Text: []byte(text)}}, Options{})
		if (err == nil) != want {
			t.Errorf("the compiler says %v, want valid = %v:\n%s", err, want, text)
		}
		if err := validate(t, schema, []byte(text)); (err == nil) != want {
			t.Errorf("the schema says %v, want valid = %v:\n%s", err, want, text)
		}
	}
}
