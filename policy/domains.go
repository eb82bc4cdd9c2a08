// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/actplane/actplane/policy/diag"
)

var (
	ruleKeys    = []string{"ifc", "policy"}
	domainKeys  = []string{"parent", "bind", "disable"}
	bindingKeys = []string{"rule", "mode"}
)

// Bounds of a file's rules and domains.
const (
	maxNamedRules = 4096
	maxDomains    = 256
)

// namedRule is an entry of `rules:`.
type namedRule struct {
	name string
	text *diag.Text // nil: not to be read
}

// domain is an entry of `domains:`.
type domain struct {
	name    string
	key     *yaml.Node
	parent  *yaml.Node // nil: none
	bind    []binding
	disable []*yaml.Node
	state   uint8 // of resolving: 0 not begun, 1 under way, 2 done
	// locked and defaults are the rules that hold in it.
	locked, defaults map[string]bool
}

type binding struct {
	rule   *yaml.Node
	locked bool
}

// domainReader resolves the domains of a file.
type domainReader struct {
	*reader
	rules   []namedRule
	domains []*domain
	known   map[string]bool // the names of rules
}

// domains reads `rules:` and `domains:` and leaves the rules of the domain that
// holds.
func (r *reader) domains(t *topReader) {
	if t.rulesKey == nil {
		r.report(diag.EmptyBody, t.domainsKey, "the file has domains and no rules").Hint = "define the rules that the domains bind below `rules:`"
		return
	}
	if t.domainsKey == nil {
		r.report(diag.EmptyBody, t.rulesKey, "the file has rules and no domain that binds them").
			Hint = "add `domains: {session: {bind: [{rule: NAME, mode: locked}]}}`, or write the rules below `policy: |`"
	}
	d := domainReader{reader: r, known: map[string]bool{}}
	r.mapping(t.rules, "rules", "rules: {NAME: {ifc: |…}}, with each text below its `ifc: |`", d.rule)
	if t.domainsKey == nil {
		return
	}
	before := len(r.diags)
	r.mapping(t.domains, "domains", "domains: {session: {bind: [{rule: NAME, mode: locked}]}}", d.domain)
	if len(d.domains) == 0 && len(r.diags) == before {
		r.report(diag.EmptyBody, t.domainsKey, "the file has no domain").Hint = "add `session: {bind: [{rule: NAME, mode: locked}]}`"
	}
	if len(d.rules) > maxNamedRules || len(d.domains) > maxDomains {
		r.report(diag.OverLimit, t.domainsKey, "the file has %d rules and %d domains; the limits are %d and %d",
			len(d.rules), len(d.domains), maxNamedRules, maxDomains)
		return
	}
	for _, domain := range d.domains {
		d.resolveDomain(domain)
	}
	chosen := d.choose(t)
	if r.diags.Errors() > 0 || chosen == nil {
		return
	}
	t.file.domain = chosen.name
	for _, rule := range d.rules {
		if chosen.locked[rule.name] || chosen.defaults[rule.name] {
			t.file.policies = append(t.file.policies, rule.text)
		} else {
			t.file.unbound = append(t.file.unbound, rule.text)
		}
	}
	if len(t.file.policies) == 0 {
		r.report(diag.EmptyBody, chosen.key, "the domain %q has no rules", chosen.name).Hint = "bind one: bind: [{rule: NAME, mode: locked}]"
	}
}

func (d *domainReader) rule(key, value *yaml.Node) {
	rule := namedRule{name: key.Value}
	var bodyKey *yaml.Node
	d.mapping(value, "a rule of `rules:`", key.Value+":, and the text below `ifc: |` on the next line", func(k, body *yaml.Node) {
		switch k.Value {
		case "ifc", "policy":
			if bodyKey != nil {
				d.report(diag.TwoPolicies, k, "%s and %s are the same thing, and both are here", bodyKey.Value, k.Value).Hint = "keep one"
				return
			}
			bodyKey = k
			if rule.text = d.policy(k, body); rule.text != nil && strings.TrimSpace(body.Value) == "" {
				d.report(diag.EmptyBody, key, "rule %q is empty", key.Value).Hint = "write its text below `" + k.Value + ": |`, indented"
			}
		default:
			d.unknownKey(k, "rules."+key.Value+".", ruleKeys)
		}
	})
	if bodyKey == nil && value.Kind == yaml.MappingNode {
		d.report(diag.EmptyBody, key, "rule %q has no text", key.Value).Hint = "write it below `ifc: |`, indented"
	}
	d.rules = append(d.rules, rule)
	d.known[rule.name] = true
}

func (d *domainReader) domain(key, value *yaml.Node) {
	out := &domain{name: key.Value, key: key}
	d.domains = append(d.domains, out)
	if value.ShortTag() == "!!null" {
		return // it binds nothing, as {} does
	}
	d.mapping(value, "a domain", key.Value+": {bind: [{rule: NAME, mode: locked}]}", func(k, v *yaml.Node) {
		switch k.Value {
		case "parent":
			if _, ok := d.str(v, "a domain's parent"); ok {
				out.parent = v
			}
		case "bind":
			for _, item := range d.list(v, "bind", "[{rule: NAME, mode: locked}]") {
				if b, ok := d.binding(item); ok {
					out.bind = append(out.bind, b)
				}
			}
		case "disable":
			for _, item := range d.list(v, "disable", "[NAME]") {
				if _, ok := d.str(item, "the name of a rule"); ok {
					out.disable = append(out.disable, item)
				}
			}
		default:
			d.unknownKey(k, "domains."+key.Value+".", domainKeys)
		}
	})
}

func (d *domainReader) list(n *yaml.Node, what, example string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		d.report(diag.WrongType, n, "%s is a list, not %s", what, kindName(n)).Hint = "write " + what + ": " + example
		return nil
	}
	out := make([]*yaml.Node, 0, len(n.Content))
	for _, item := range n.Content {
		out = append(out, resolve(item))
	}
	return out
}

func (d *domainReader) binding(n *yaml.Node) (b binding, ok bool) {
	var mode *yaml.Node
	before := len(d.diags)
	name := n.Value
	if n.Kind != yaml.ScalarNode {
		name = "NAME"
	}
	d.mapping(n, "a binding", "{rule: "+name+", mode: locked}", func(k, v *yaml.Node) {
		switch k.Value {
		case "rule":
			if _, ok := d.str(v, "the name of a rule"); ok {
				b.rule = v
			}
		case "mode":
			mode = v
		default:
			d.unknownKey(k, "bind.", bindingKeys)
		}
	})
	switch {
	case len(d.diags) > before:
		return b, false
	case b.rule == nil || mode == nil:
		d.report(diag.WrongType, n, "a binding names a rule and a mode").Hint = "write {rule: NAME, mode: locked}"
		return b, false
	case mode.Value != "locked" && mode.Value != "default":
		d.report(diag.BadMode, mode, "%q is no mode of a binding", mode.Value).
			Hint = "write locked (inner domains cannot disable the rule) or default (they can)"
		return b, false
	}
	b.locked = mode.Value == "locked"
	return b, true
}

// choose returns the domain that holds: default_domain, or session, or the only
// one.
func (d *domainReader) choose(t *topReader) *domain {
	if t.defaultKey != nil {
		if _, ok := d.str(t.defaultDomain, "default_domain"); !ok {
			return nil
		}
		return d.find(t.defaultDomain)
	}
	for _, domain := range d.domains {
		if domain.name == "session" {
			return domain
		}
	}
	switch len(d.domains) {
	case 0:
		return nil
	case 1:
		return d.domains[0]
	}
	d.report(diag.NoDomain, t.domainsKey, "the file has several domains, and does not say which one holds: %s", strings.Join(d.names(), ", ")).
		Hint = "add default_domain: " + d.domains[0].name
	return nil
}

func (d *domainReader) names() []string {
	var names []string
	for _, domain := range d.domains {
		names = append(names, domain.name)
	}
	return names
}

// find returns the domain that a node names.
func (d *domainReader) find(n *yaml.Node) *domain {
	for _, domain := range d.domains {
		if domain.name == n.Value {
			return domain
		}
	}
	d.unknownName(n, "domain", d.names())
	return nil
}

func (d *domainReader) unknownName(n *yaml.Node, what string, names []string) {
	r := d.report(diag.UnknownName, n, "there is no %s %q", what, n.Value)
	if s := diag.Suggest(n.Value, names); s != "" {
		r.Hint = "did you mean \"" + s + "\"?"
	} else if len(names) > 0 && len(names) <= 20 {
		r.Hint = "there are: " + strings.Join(names, ", ")
	}
}

// knownRule tells whether a rule that a node names is there.
func (d *domainReader) knownRule(n *yaml.Node) bool {
	if d.known[n.Value] {
		return true
	}
	var names []string
	for _, rule := range d.rules {
		names = append(names, rule.name)
	}
	d.unknownName(n, "rule", names)
	return false
}
