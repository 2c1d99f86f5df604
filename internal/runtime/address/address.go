// Package address validates network addresses, and restricts plaintext connections to the loopback
// interface unless the configuration allows others.
package address

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

// Check validates an address to dial. Port names are rejected, because the other host may not
// have them. The example appears in error messages.
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

// unprintable reports whether a character is invalid in a host name: white space, or a control
// character that could change the terminal of an operator.
func unprintable(r rune) bool {
	return r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r)
}

// Wildcard reports whether an address listens on all interfaces. Such an address cannot be dialed.
func Wildcard(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// Loopback reports whether an address is on the loopback interface. It does not resolve names:
// only localhost counts.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
