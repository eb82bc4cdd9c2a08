// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"strings"
)

// schemaNode is a JSON Schema, or a part of one.
type schemaNode map[string]any

// Schema returns the JSON Schema (2020-12) of a policy file, for editors. It knows
// the file's keys and the forms of their values; what is in the policy texts only
// the compiler knows.
func Schema() []byte {
	text, err := json.MarshalIndent(fileSchema(), "", "  ")
	if err != nil {
		panic(err) // the tree below is all literals
	}
	return append(text, '\n')
}

func fileSchema() schemaNode {
	body := textNode("The policy text. Write it as a literal block: policy: |")
	out := object("A policy of ActPlane.", schemaNode{
		"version":        schemaNode{"description": "The version of the file's format; may be left out.", "enum": []any{1, "1"}},
		"workspace":      schemaNode{"description": "The root of relative patterns: an absolute path in the container.", "type": "string", "pattern": "^/"},
		"policy":         body,
		"ifc":            textNode("Another name of policy."),
		"rules":          rulesSchema(),
		"domains":        domainsSchema(),
		"default_domain": textNode("The domain that holds. Default: session, or the only one."),
		"protect":        protectSchema(),
		"feedback": object("How reasons are given.", schemaNode{
			"stderr": schemaNode{"description": "Also write the reason of a denial to the denied process's standard error.", "type": "boolean"},
			"path":   schemaNode{"description": "Has no effect: reasons are on the container's feedback socket.", "deprecated": true},
		}),
		"limits": limitsSchema(),
	})
	out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out["title"] = "ActPlane policy"
	out["dependentRequired"] = schemaNode{"rules": []string{"domains"}, "domains": []string{"rules"}}
	out["allOf"] = []schemaNode{exclude("policy", "ifc"), exclude("policy", "rules"), exclude("ifc", "rules")}
	return out
}

func object(description string, properties schemaNode) schemaNode {
	return schemaNode{
		"description": description, "type": "object",
		"properties": properties, "additionalProperties": false,
	}
}

func textNode(description string) schemaNode {
	return schemaNode{"description": description, "type": "string", "minLength": 1}
}

func list(description string, items schemaNode) schemaNode {
	return schemaNode{"description": description, "type": "array", "items": items}
}

// exclude says that two keys are not both there.
func exclude(a, b string) schemaNode {
	return schemaNode{"not": schemaNode{"required": []string{a, b}}}
}

func rulesSchema() schemaNode {
	rule := object("A named policy text.", schemaNode{
		"ifc":    textNode("The rule's text. Write it as a literal block: ifc: |"),
		"policy": textNode("Another name of ifc."),
	})
	rule["oneOf"] = []schemaNode{{"required": []string{"ifc"}}, {"required": []string{"policy"}}}
	return schemaNode{
		"description": "Policy texts by name, for domains to bind.",
		"type":        "object", "additionalProperties": rule,
	}
}

func domainsSchema() schemaNode {
	binding := object("A rule that holds in the domain.", schemaNode{
		"rule": textNode("The rule's name."),
		"mode": schemaNode{"description": "locked: domains below cannot disable it; default: they can.", "enum": []string{"locked", "default"}},
	})
	binding["required"] = []string{"rule", "mode"}
	domain := object("A set of rules.", schemaNode{
		"parent":  textNode("The domain whose rules hold here too."),
		"bind":    list("The rules that hold.", binding),
		"disable": list("Rules of the parent that don't hold here; none that is locked.", textNode("A rule's name.")),
	})
	domain["type"] = []string{"object", "null"}
	return schemaNode{
		"description": "Sets of rules by name.",
		"type":        "object", "minProperties": 1, "additionalProperties": domain,
	}
}

func protectSchema() schemaNode {
	entry := object("Files that some processes cannot change.", schemaNode{
		"path": textNode("A pattern of files."),
		"if": schemaNode{
			"description": "A condition over labels: the files are protected from processes for which it holds.",
			"anyOf":       []schemaNode{{"type": "string", "minLength": 1}, {"const": true}},
		},
	})
	entry["required"] = []string{"path"}
	return list("Files that can be read and not changed.", schemaNode{
		"anyOf": []schemaNode{textNode("A pattern of files."), entry},
	})
}

func limitsSchema() schemaNode {
	drop, add := capabilitySchemas()
	return object("Limits on the container; of several files the strictest holds.", schemaNode{
		"pids": schemaNode{
			"description": "The most processes and threads.",
			"anyOf":       []schemaNode{{"type": "integer", "minimum": 1, "maximum": 1 << 22}, {"type": "string", "pattern": `^\+?[0-9]+$`}},
		},
		"memory": schemaNode{
			"description": "The most memory, in bytes or with a unit: 512MiB, 2GiB. KiB, Ki and k are 1024, KB is 1000.",
			"anyOf": []schemaNode{
				{"type": "integer", "minimum": 1, "exclusiveMaximum": float64(1 << 63)},
				{"type": "string", "pattern": `^0*[1-9][0-9]*\.?0* *[Bb]? *$`},
				{"type": "string", "pattern": `^([0-9]+\.?[0-9]*|\.[0-9]+) *[KMGTkmgt](i?[Bb]?) *$`},
			},
		},
		"cpus": schemaNode{
			"description": "The most processors, such as 2 or 0.5.",
			"anyOf":       []schemaNode{{"type": "number", "minimum": 0.01, "maximum": 4096}, {"type": "string", "pattern": `^\+?[0-9.]+$`}},
		},
		"capabilities": object("The kernel's capabilities.", schemaNode{
			"drop": list("What the container loses: names, or ALL.", drop),
			"add":  list("What it keeps of what drop takes.", add),
		}),
		"no_new_privileges": schemaNode{"description": "No program gains privileges by set-user-ID bits or file capabilities.", "type": "boolean"},
	})
}

// capabilitySchemas returns what can be dropped and added. Names are as capitals,
// with CAP_ or without; in small letters they are valid too, and not suggested.
func capabilitySchemas() (drop, add schemaNode) {
	names := append([]string{}, capabilityNames...)
	long := `^[Cc][Aa][Pp]_(` + strings.Join(capabilityNames, "|") + `)$`
	small := `^([Cc][Aa][Pp]_)?(` + strings.ToLower(strings.Join(capabilityNames, "|")) + `)$`
	add = schemaNode{"anyOf": []schemaNode{{"enum": names}, {"type": "string", "pattern": long}, {"type": "string", "pattern": small}}}
	drop = schemaNode{"anyOf": []schemaNode{{"enum": append([]string{"ALL"}, names...)}, {"type": "string", "pattern": long},
		{"type": "string", "pattern": small}, {"type": "string", "pattern": `^([Cc][Aa][Pp]_)?([Aa][Ll][Ll])$`}}}
	return drop, add
}
