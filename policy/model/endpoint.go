// SPDX-License-Identifier: Apache-2.0

package model

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/actplane/actplane/policy/ir"
	"github.com/actplane/actplane/policy/pattern"
)

// endpoint is an address and port, a host that is known by its name and a port,
// or a Unix socket: exactly one of addr, host and unix is set.
type endpoint struct {
	key  string
	addr netip.Addr
	host string
	port int
	unix string // the path, or @ and the abstract name
}

// parseEndpoint reads an endpoint of a trace: ADDR:PORT, NAME:PORT, either with
// /udp or /tcp, or unix:….
func parseEndpoint(text string) (endpoint, error) {
	if socket, ok := strings.CutPrefix(text, "unix:"); ok && socket != "" {
		return endpoint{key: text, unix: socket}, nil
	}
	plain := strings.TrimSuffix(strings.TrimSuffix(text, "/udp"), "/tcp")
	if a, err := netip.ParseAddrPort(plain); err == nil {
		return endpoint{key: text, addr: a.Addr().Unmap(), port: int(a.Port())}, nil
	}
	host, port, ok := strings.Cut(plain, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if !ok || err != nil || host == "" {
		return endpoint{}, stepErrorf("%q is no endpoint: write ADDRESS:PORT, [ADDRESS]:PORT, NAME:PORT or unix:PATH", text)
	}
	if host = strings.ToLower(strings.TrimSuffix(host, ".")); host == "localhost" {
		return endpoint{key: text, addr: netip.AddrFrom4([4]byte{127, 0, 0, 1}), port: int(n)}, nil // as in patterns
	}
	if pattern.EndsInNumber(host) {
		return endpoint{}, stepErrorf("%q is no host name, and no address in the usual form", host)
	}
	return endpoint{key: text, host: host, port: int(n)}, nil
}

// matches tells whether a pattern matches the endpoint. Of what is known by its
// address nothing is known about names, and the reverse.
func (e endpoint) matches(p ir.Pattern) bool {
	if p.Any {
		return true
	}
	if glob, ok := strings.CutPrefix(p.Text, "unix:"); ok {
		return e.unix != "" && matchSocket(glob, e.unix)
	}
	host, ports := cutPorts(p.Text)
	switch {
	case e.unix != "" || !portIn(ports, e.port):
		return false
	case p.Host:
		return e.host != "" && Match(host, e.host, pattern.Token)
	case host == "*":
		return true
	}
	return e.host == "" && inAddresses(host, e.addr)
}

func matchSocket(glob, socket string) bool {
	if glob == "*" {
		return true
	}
	name, abstract := strings.CutPrefix(glob, "@")
	if !abstract {
		return Match(glob, socket, pattern.Path)
	}
	rest, ok := strings.CutPrefix(socket, "@")
	return ok && Match(name, rest, pattern.Token)
}

// cutPorts splits canonical text in the host and the ports, "" for all.
func cutPorts(text string) (host, ports string) {
	if i := strings.LastIndexByte(text, ']'); text[0] == '[' && i >= 0 {
		return text[1:i], strings.TrimPrefix(text[i+1:], ":")
	}
	host, ports, _ = strings.Cut(text, ":")
	return host, ports
}

func portIn(ports string, port int) bool {
	if ports == "" {
		return true
	}
	low, high, isRange := strings.Cut(ports, "-")
	if !isRange {
		high = low
	}
	lo, _ := strconv.Atoi(low)
	hi, _ := strconv.Atoi(high)
	return lo <= port && port <= hi
}

// inAddresses tells whether an address is in a set, a network or is an address.
func inAddresses(host string, a netip.Addr) bool {
	switch host {
	case "@loopback":
		return a.IsLoopback() || a.IsUnspecified()
	case "@private":
		return a.IsPrivate()
	case "@linklocal":
		return a.IsLinkLocalUnicast()
	case "@public":
		return !a.IsLoopback() && !a.IsUnspecified() && !a.IsPrivate() && !a.IsLinkLocalUnicast()
	case "@metadata":
		return slices.Contains([]string{"169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200",
			"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"}, a.String())
	}
	if p, err := netip.ParsePrefix(host); err == nil {
		return p.Contains(a)
	}
	one, err := netip.ParseAddr(host)
	return err == nil && one.Unmap() == a
}
