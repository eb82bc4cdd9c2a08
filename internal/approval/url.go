// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// checkURL says what is wrong with a URL. What decides is on this host, where nobody in
// between can answer for it; what is told may go elsewhere, encrypted.
func (t *Target) checkURL(remote bool) error {
	u, err := url.Parse(t.URL)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("url: %q does not begin with http:// or https:// and a host", t.URL)
	case u.User != nil:
		return errors.New("url: it has a user's name in it")
	case u.Fragment != "":
		return errors.New("url: it has a fragment")
	case t.Socket != "" && u.Scheme != "http":
		return errors.New("url: through a socket it is http://")
	case t.Socket != "" || Loopback(u.Hostname()):
		return nil
	case !remote:
		return fmt.Errorf("url: %q is not on this host; who decides has to be at 127.0.0.1, [::1], localhost or a socket (let a program there ask further)", u.Host)
	case u.Scheme != "https":
		return fmt.Errorf("url: %q is not on this host, so it has to be https://", u.Host)
	}
	return nil
}

// Loopback tells whether a host in a URL is this one, without asking anybody.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() && address.Zone() == ""
}

func join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
