// Package hostport says what is wrong with an address, for people who have typed it.
package hostport

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
)

// Check reports what keeps an address from being dialled, nil if nothing does. Names
// of ports are refused, because the other side may not know them. The example is what
// such an address looks like.
func Check(addr, example string) error {
	if addr == "" {
		return fmt.Errorf("an address is missing: want host:port, such as %s", example)
	}
	if len(addr) > leasehold.MaxAddrLen {
		return fmt.Errorf("an address has %d bytes, want at most %d", len(addr), leasehold.MaxAddrLen)
	}
	if strings.ContainsFunc(addr, unprintable) {
		return fmt.Errorf("%q: an address has no white space, and nothing that cannot be read", addr)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("want host:port, such as %s: %w", example, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q: the port is %q, want a number from 1 to 65535", addr, port)
	}
	return nil
}

// unprintable reports whether no host's name has that in it: it would not come through, or do
// something to the terminal of whoever sees it.
func unprintable(r rune) bool {
	return r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r)
}

// ToListenOn reports whether an address is one to listen on, but not to call: that of all
// of a computer's.
func ToListenOn(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// Loopback reports whether only this computer reaches an address, going by what it says: a
// name but localhost may lead anywhere.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
