// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"

	"github.com/actplane/actplane/policy/diag"
)

// resolveDomain finds the rules that hold in a domain:
//
//	locked(D)  = locked(parent) ∪ own locked
//	default(D) = default(parent) − disabled + own default
func (d *domainReader) resolveDomain(leaf *domain) {
	var chain []*domain
	for at := leaf; at != nil && at.state != 2; {
		if at.state == 1 {
			d.report(diag.DomainCycle, at.parent, "the domain %q is its own parent, by way of %q", at.name, at.parent.Value).
				Hint = "leave one `parent:` out"
			break
		}
		at.state = 1
		chain = append(chain, at)
		if at.parent == nil {
			break
		}
		at = d.find(at.parent)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		d.inherit(chain[i])
		chain[i].state = 2
	}
}

// inherit resolves a domain whose parent is resolved.
func (d *domainReader) inherit(at *domain) {
	at.locked, at.defaults = map[string]bool{}, map[string]bool{}
	if at.parent != nil {
		for _, parent := range d.domains {
			if parent.name == at.parent.Value {
				maps.Copy(at.locked, parent.locked)
				maps.Copy(at.defaults, parent.defaults)
			}
		}
	}
	for _, n := range at.disable {
		switch {
		case at.locked[n.Value]:
			d.report(diag.BadDisable, n, "the domain %q cannot disable %q: a domain above it has locked it", at.name, n.Value).
				Hint = "leave it out, or bind it there with mode: default"
		case at.defaults[n.Value]:
			delete(at.defaults, n.Value)
		case d.knownRule(n):
			d.report(diag.BadDisable, n, "the domain %q cannot disable %q: no domain above it binds it", at.name, n.Value).Hint = "leave it out"
		}
	}
	for _, b := range at.bind {
		name := b.rule.Value
		switch {
		case !d.knownRule(b.rule):
		case b.locked:
			delete(at.defaults, name)
			at.locked[name] = true
		case !at.locked[name]:
			at.defaults[name] = true
		}
	}
}
