// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Endpoint is a parsed endpoint pattern.
type Endpoint struct {
	// Text is the canonical form.
	Text string
	// Unix are the alternatives over the path, or @ and name, of a Unix socket.
	Unix [][]Elem
	// Relative tells that a Unix socket path was put under the workspace.
	Relative bool
	// Host tells that the pattern is one of names; see Names.
	Host bool

	names          [][]Elem
	ranges         []addrRange
	loPort, hiPort int
}

// Addresses returns the alternatives over the 18 bytes of an address key (16 of
// the address, IPv4 as ::ffff:a.b.c.d, and 2 of the port); none for a pattern
// of Unix sockets.
func (e *Endpoint) Addresses() [][]Elem { return addresses(e.ranges, e.loPort, e.hiPort) }

// Names returns the alternatives over the key NAME:PORT of a host that is known
// by its name, in lower case and without a dot at its end.
func (e *Endpoint) Names() [][]Elem {
	ports := [][]Elem{{literal(':'), {Kind: AnyStar}}}
	if e.loPort > 0 || e.hiPort < maxPort {
		ports = decimals(e.loPort, e.hiPort)
	}
	var out [][]Elem
	for _, name := range e.names {
		for _, port := range ports {
			out = append(out, slices.Concat(name, port))
		}
	}
	return out
}

// decimals returns the alternatives over :N for all N of a range.
func decimals(lo, hi int) [][]Elem {
	var out [][]Elem
	for first := 1; first <= hi; first *= 10 {
		from, to := max(lo, first), min(hi, first*10-1)
		if from > to {
			continue
		}
		for _, seq := range sequencesIn([]byte(strconv.Itoa(from)), []byte(strconv.Itoa(to)), Range{'0', '9'}) {
			elems := []Elem{literal(':')}
			for _, r := range seq {
				elems = append(elems, Elem{Kind: Lit, Seqs: [][]Range{{r}}})
			}
			out = append(out, elems)
		}
	}
	return out
}

// AnyEndpoint matches every address and every Unix socket.
func AnyEndpoint() Endpoint {
	all, _ := lookupSet("@any")
	return Endpoint{Text: "*", ranges: all, hiPort: maxPort, Unix: [][]Elem{{{Kind: AnyStar}}}}
}

const maxPort = 65535

// ParseEndpoint reads an endpoint pattern in the form of the language.
func ParseEndpoint(text, workspace string) (Endpoint, error) {
	if text == "*" {
		return AnyEndpoint(), nil
	}
	if rest, ok := strings.CutPrefix(text, "unix:"); ok {
		return parseUnix(rest, workspace)
	}
	if strings.Contains(text, "://") {
		return Endpoint{}, errorf(BadAddress, "write "+strconv.Quote(authority(text)), "%q is a URL", text)
	}
	host, port, err := splitPort(text)
	if err != nil {
		return Endpoint{}, err
	}
	lo, hi, err := parsePort(port)
	if err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{loPort: lo, hiPort: hi}
	e.Text, e.ranges, err = parseHost(host)
	if errors.Is(err, errNotNumeric) {
		e.Host = true
		e.Text, e.names, err = hostName(host)
	} else if host == "*" { // a port of any address, whether a name is known of it or not
		e.names = [][]Elem{{{Kind: AnyStar}}}
	}
	if err != nil {
		return Endpoint{}, err
	}
	switch {
	case port == "":
		e.loPort = 0
	case lo == hi:
		e.Text += ":" + strconv.Itoa(lo)
	default:
		e.Text += ":" + strconv.Itoa(lo) + "-" + strconv.Itoa(hi)
	}
	return e, nil
}

// authority returns the host and the port of a URL.
func authority(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	switch {
	case host == "":
		return "HOST:PORT"
	case strings.Contains(host, ":"):
	case scheme == "https":
		return host + ":443"
	case scheme == "http":
		return host + ":80"
	}
	return host
}

func parseUnix(rest, workspace string) (Endpoint, error) {
	if rest == "*" {
		return Endpoint{Text: "unix:*", Unix: [][]Elem{{{Kind: AnyStar}}}}, nil
	}
	if name, ok := strings.CutPrefix(rest, "@"); ok {
		globs, err := Glob(name, Token)
		if err != nil {
			return Endpoint{}, err
		}
		for i := range globs {
			globs[i] = slices.Insert(globs[i], 0, literal('@'))
		}
		return Endpoint{Text: "unix:@" + name, Unix: globs}, nil
	}
	path, relative, err := File(rest, workspace)
	if err != nil {
		return Endpoint{}, err
	}
	globs, err := Glob(path, Path)
	return Endpoint{Text: "unix:" + path, Unix: globs, Relative: relative}, err
}

// splitPort cuts off what follows the colon of a port. IPv6 addresses have
// colons of their own; with a port they stand in brackets.
func splitPort(text string) (host, port string, err error) {
	if text == "" {
		return "", "", errorf(NeverMatches, "write any to match everything", "an empty pattern matches nothing")
	}
	if text[0] == '[' {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return "", "", errorf(BadAddress, "write [ADDRESS]:PORT", "the bracket of the address is not closed")
		}
		host, rest := text[1:end], text[end+1:]
		if bits, _, _ := strings.Cut(rest, ":"); strings.HasPrefix(bits, "/") && !strings.Contains(host, "/") {
			host, rest = host+bits, rest[len(bits):]
		}
		if !strings.Contains(host, ":") {
			return "", "", errorf(BadAddress, "brackets are for IPv6 addresses only", "%q is no IPv6 address", host)
		}
		if rest != "" && rest[0] != ':' || rest == ":" {
			return "", "", errorf(BadPort, "write [ADDRESS]:PORT", "%q after the address is no port", rest)
		}
		return host, strings.TrimPrefix(rest, ":"), nil
	}
	if strings.Count(text, ":") != 1 {
		return text, "", nil
	}
	host, port, _ = strings.Cut(text, ":")
	if port == "" {
		return "", "", errorf(BadPort, "", "the port after the colon is missing")
	}
	return host, port, nil
}

func parsePort(s string) (lo, hi int, err error) {
	if s == "" {
		return 1, maxPort, nil
	}
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	lo, okLo := portNumber(from)
	hi, okHi := portNumber(to)
	switch {
	case !okLo || !okHi:
		hint := "ports are numbers from 1 to 65535, ranges LOW-HIGH"
		switch n := service(s); {
		case n != "":
			hint = "write " + n
		case strings.Contains(s, ","):
			hint = "a pattern has one port or range; another is another clause"
		case s == "*":
			hint = "for every port leave it out"
		}
		return 0, 0, errorf(BadPort, hint, "%q is no port", s)
	case lo > hi:
		return 0, 0, errorf(BadPort, "did you mean "+strconv.Itoa(hi)+"-"+strconv.Itoa(lo)+"?", "the port range %s runs backwards", s)
	}
	return lo, hi, nil
}

// service returns the port of a service that many know by its name.
func service(name string) string {
	switch strings.ToLower(name) {
	case "http":
		return "80"
	case "https":
		return "443"
	case "ssh":
		return "22"
	case "dns", "domain":
		return "53"
	}
	return ""
}

func portNumber(s string) (int, bool) {
	if s == "" || len(s) > 5 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && n <= maxPort
}

func parseHost(host string) (canonical string, ranges []addrRange, err error) {
	switch {
	case host == "*":
		set, _ := lookupSet("@any")
		return "*", set, nil
	case host == "":
		return "", nil, errorf(BadAddress, `for any address write "*:PORT"`, "the address before the port is missing")
	case strings.EqualFold(host, "localhost"):
		return parseHost("@loopback")
	case host[0] == '@':
		set, ok := lookupSet(host)
		if !ok || host == "@any" {
			return "", nil, errorf(UnknownSet, "the sets are "+strings.Join(SetNames(), ", "), "%q is no set of addresses", host)
		}
		return host, set, nil
	case strings.Trim(host, "0123456789.") == "" && strings.HasSuffix(host, "."):
		return dottedPrefix(host)
	case strings.Contains(host, "/"):
		return cidr(host)
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return prefixRange(netip.PrefixFrom(addr, addr.BitLen()))
	}
	return "", nil, notAnAddress(host)
}

func notAnAddress(host string) error {
	const digits = "0123456789"
	switch {
	case strings.Contains(host, "%"):
		return errorf(BadAddress, "leave out %…: addresses are matched on every interface", "%q names an interface", host)
	case strings.Trim(host, ".*") == "":
		return errorf(BadAddress, "for every endpoint write any", "%q is no address", host)
	case strings.Trim(host, digits+".*") == "" && strings.Contains(host, "*"):
		return errorf(BadAddress, prefixHint(host), "%q is no address", host)
	case strings.Trim(host, digits) == "":
		return errorf(BadAddress, "for a port of any address write \"*:"+host+"\"", "%q is no address", host)
	case strings.Trim(host, digits+".-") == "" && strings.Contains(host, "-"):
		return errorf(BadAddress, "a range of addresses is written as a network, such as 10.0.0.0/24", "%q is no address", host)
	case strings.Trim(host, digits+".") == "":
		return errorf(BadAddress, prefixHint(host+"."), "%q is no address", host)
	case strings.Contains(host, ":"):
		return errorf(BadAddress, "IPv6 with a port is written [ADDRESS]:PORT", "%q is no IPv6 address", host)
	case strings.Contains(host, "@"):
		return errorf(BadAddress, "leave out what stands before the @", "%q is no address", host)
	case strings.ContainsAny(host, " \t"):
		return errorf(BadAddress, "another address is another clause", "%q is no address", host)
	case strings.ContainsAny(host, "/\\"):
		return errorf(BadAddress, "", "%q is no address", host)
	}
	return errNotNumeric
}

// prefixHint is about what looks like a prefix: with asterisks, or without its dot.
func prefixHint(host string) string {
	prefix := strings.TrimRight(host, ".*") + "."
	if _, _, err := dottedPrefix(prefix); err == nil && !strings.Contains(prefix, "*") {
		return "write " + strconv.Quote(prefix) + ": a prefix ends in a dot"
	}
	return "an address has four numbers from 0 to 255; a prefix ends in a dot, such as 10.0., and a network is written as 10.0.0.0/16"
}

// errNotNumeric says that a host is no address, and may be a name.
var errNotNumeric = errors.New("not an address")

// hostName reads a glob over host names. Its asterisks match dots as well.
func hostName(host string) (string, [][]Elem, error) {
	dots := strings.Contains(host, "..")
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, c := range host {
		switch {
		case c >= 0x80:
			return "", nil, errorf(BadAddress, "write the name as it is looked up: xn--…", "the host name %q has the character %q", host, c)
		case !letter(byte(c)) && !strings.ContainsRune("0123456789-_.*?[]!^{},", c):
			return "", nil, errorf(BadAddress, "", "%q is neither an address nor a host name", host)
		}
	}
	if host == "" || strings.HasPrefix(host, ".") || dots {
		return "", nil, errorf(BadAddress, `for all hosts of a domain write "*.DOMAIN"`, "the host name %q has an empty part", host)
	}
	if EndsInNumber(host) {
		hint := "an address has four numbers from 0 to 255"
		if a, ok := oldForm(host); ok {
			hint = "write " + strconv.Quote(a.String())
		}
		return "", nil, errorf(BadAddress, hint, "%q is no host name, and no address in the usual form", host)
	}
	globs, err := Glob(host, Token)
	return host, globs, err
}

// dottedPrefix reads 10. or 10.0. or 10.0.0. as the network it is.
func dottedPrefix(host string) (string, []addrRange, error) {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	var a [4]byte
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if i > 2 || err != nil || n > 255 || len(p) > 1 && p[0] == '0' {
			return "", nil, errorf(BadAddress, "a prefix has one to three numbers from 0 to 255, each followed by a dot", "%q is no address prefix", host)
		}
		a[i] = byte(n)
	}
	return prefixRange(netip.PrefixFrom(netip.AddrFrom4(a), 8*len(parts)))
}

func cidr(host string) (string, []addrRange, error) {
	address, length, _ := strings.Cut(host, "/")
	addr, err := netip.ParseAddr(address)
	if err != nil || addr.Zone() != "" {
		return "", nil, notANetwork(host, address, length)
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > addr.BitLen() || length != strconv.Itoa(n) {
		hint := "the prefix length of this address is 0 to " + strconv.Itoa(addr.BitLen())
		if length == "tcp" || length == "udp" {
			hint = "leave it out: a pattern is about every protocol"
		} else if mask, err := netip.ParseAddr(length); err == nil && mask.Is4() && addr.Is4() {
			if ones := maskBits(mask.As4()); ones >= 0 {
				hint = "write " + strconv.Quote(address+"/"+strconv.Itoa(ones))
			}
		}
		return "", nil, errorf(BadAddress, hint, "%q is no network: %q is no prefix length", host, length)
	}
	if addr.Is4In6() && n >= 96 {
		addr, n = addr.Unmap(), n-96
	}
	return prefixRange(netip.PrefixFrom(addr, n).Masked())
}

// maskBits returns the prefix length of a netmask, -1 for what is none.
func maskBits(mask [4]byte) int {
	n := binary.BigEndian.Uint32(mask[:])
	ones := bits.LeadingZeros32(^n)
	if n<<ones != 0 {
		return -1
	}
	return ones
}

// notANetwork is about a / behind what is no address.
func notANetwork(host, address, length string) error {
	switch {
	case address == "":
		return errorf(BadAddress, "a Unix socket is written "+strconv.Quote("unix:"+host), "%q is a path", host)
	case length == "" || strings.Trim(length, "0123456789") != "":
		return errorf(BadAddress, "write "+strconv.Quote(address)+": endpoints have no paths", "%q is no network: %q is no prefix length", host, length)
	}
	return errorf(BadAddress, "a network is written ADDRESS/BITS, such as 10.0.0.0/8", "%q is no network: %q is no address", host, address)
}

func prefixRange(p netip.Prefix) (string, []addrRange, error) {
	text := p.String()
	if p.IsSingleIP() {
		text = p.Addr().String()
	}
	if p.Addr().Is6() {
		text = "[" + text + "]"
	}
	r := rangeOf(p)
	if p.Addr().Is6() { // IPv6 patterns don't reach into the mapped IPv4 addresses
		return text, subtract([]addrRange{r}, mapped()), nil
	}
	return text, []addrRange{r}, nil
}
