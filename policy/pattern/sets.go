// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"bytes"
	"net/netip"
	"slices"
)

// addrRange is a range of 16-byte addresses, both ends included.
type addrRange struct{ lo, hi [16]byte }

// mapped returns the range that stands for IPv4.
func mapped() []addrRange { return ranges("0.0.0.0/0") }

// SetNames lists the named sets.
func SetNames() []string {
	return []string{"@loopback", "@private", "@public", "@linklocal", "@metadata"}
}

// lookupSet returns a named set. @loopback, @private, @linklocal and @public
// split all addresses among them; @metadata lies across them.
func lookupSet(name string) ([]addrRange, bool) {
	switch name {
	case "@any":
		return []addrRange{{hi: allOnes()}}, true
	case "@loopback": // 0.0.0.0 and :: connect to the loopback
		return ranges("127.0.0.0/8", "0.0.0.0/32", "::1/128", "::/128"), true
	case "@private":
		return ranges("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"), true
	case "@linklocal":
		return ranges("169.254.0.0/16", "fe80::/10"), true
	case "@metadata":
		return ranges("169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "100.100.100.200/32",
			"fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128"), true
	case "@public":
		rest := []addrRange{{hi: allOnes()}}
		for _, other := range []string{"@loopback", "@private", "@linklocal"} {
			set, _ := lookupSet(other)
			rest = subtract(rest, set)
		}
		return rest, true
	}
	return nil, false
}

func ranges(prefixes ...string) []addrRange {
	var out []addrRange
	for _, p := range prefixes {
		out = append(out, rangeOf(netip.MustParsePrefix(p)))
	}
	return out
}

func rangeOf(p netip.Prefix) addrRange {
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	r := addrRange{lo: p.Masked().Addr().As16(), hi: p.Masked().Addr().As16()}
	for i := bits; i < 128; i++ {
		r.hi[i/8] |= 1 << (7 - i%8)
	}
	return r
}

func allOnes() (a [16]byte) {
	for i := range a {
		a[i] = 0xFF
	}
	return a
}

// subtract returns from without the addresses of what, sorted.
func subtract(from, what []addrRange) []addrRange {
	for _, w := range what {
		var out []addrRange
		for _, f := range from {
			if bytes.Compare(w.hi[:], f.lo[:]) < 0 || bytes.Compare(w.lo[:], f.hi[:]) > 0 {
				out = append(out, f)
				continue
			}
			if bytes.Compare(f.lo[:], w.lo[:]) < 0 {
				out = append(out, addrRange{f.lo, netip.AddrFrom16(w.lo).Prev().As16()})
			}
			if bytes.Compare(w.hi[:], f.hi[:]) < 0 {
				out = append(out, addrRange{netip.AddrFrom16(w.hi).Next().As16(), f.hi})
			}
		}
		from = out
	}
	slices.SortFunc(from, func(a, b addrRange) int { return bytes.Compare(a.lo[:], b.lo[:]) })
	return from
}

// addresses returns the elements of the 18-byte keys in the ranges.
func addresses(set []addrRange, lo, hi int) [][]Elem {
	ports := sequencesIn([]byte{byte(lo >> 8), byte(lo)}, []byte{byte(hi >> 8), byte(hi)}, Range{0, 0xFF})
	var out [][]Elem
	for _, r := range set {
		for _, a := range sequencesIn(r.lo[:], r.hi[:], Range{0, 0xFF}) {
			for _, p := range ports {
				var elems []Elem
				for _, b := range slices.Concat(a, p) {
					elems = append(elems, Elem{Kind: Lit, Seqs: [][]Range{{b}}})
				}
				out = append(out, elems)
			}
		}
	}
	return out
}
