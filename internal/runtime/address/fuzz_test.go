package address_test

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
)

// FuzzCheck checks that a valid address has a host and a port from 1 to 65535, within the length limit.
func FuzzCheck(f *testing.F) {
	for _, addr := range []string{"", "a:1", ":1", "[::1]:65535", "a:0", "a:+1", "a:http", "a:b:1", "[a]:1", "[::1%eth0]:1", "a:65536", "a:00080", "a b:1", "\x1b[31m:1", "\xff:1"} {
		f.Add(addr)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		if address.Check(addr, "m:7400") != nil {
			address.Wildcard(addr)
			return
		}
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatalf("%q is let through: %v", addr, err)
		}
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 || len(addr) > leasehold.MaxAddrLen {
			t.Fatalf("%q is let through: port %d, %v", addr, n, err)
		}
		if strings.ContainsAny(addr, " \t\r\n\x00\x1b\x7f") || !utf8.ValidString(addr) {
			t.Fatalf("%q is let through", addr)
		}
	})
}
