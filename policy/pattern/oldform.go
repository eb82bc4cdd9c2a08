// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"net/netip"
	"strconv"
	"strings"
)

// EndsInNumber tells whether a host is one that resolvers take for an address and not
// for a name: its last part is a number, decimal, octal or hexadecimal. What is no
// address of the usual form is one as inet_aton(3) reads it, or none.
func EndsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(strings.ToLower(last), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// oldForm reads an IPv4 address as inet_aton(3) does: one to four numbers, of which the
// last has what room is left.
func oldForm(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, p := range parts {
		if strings.Contains(p, "_") { // which Go takes between digits
			return netip.Addr{}, false
		}
		if len(p) > 1 && p[0] == '0' && strings.Trim(p, "01234567") == "" {
			p = "0o" + p[1:]
		}
		n, err := strconv.ParseUint(p, 0, 32)
		limit := uint64(1) << 8
		if i == len(parts)-1 {
			limit = 1 << (8 * (5 - len(parts)))
		}
		if err != nil || n >= limit || strings.HasPrefix(strings.ToLower(p), "0b") {
			return netip.Addr{}, false
		}
		sum = sum<<8 + n
		if i == len(parts)-1 {
			sum = (sum-n)>>8<<(8*(5-len(parts))) + n
		}
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}
