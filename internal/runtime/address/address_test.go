package address_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
)

func TestCheck(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1:7400":       "<nil>",
		"manager-1:7400":      "<nil>",
		"[2001:db8::1]:65535": "<nil>",
		"":                    "an address is missing: want host:port, such as m1:7400",
		"m1":                  "want host:port, such as m1:7400: address m1: missing port in address",
		"2001:db8::1":         "want host:port, such as m1:7400: address 2001:db8::1: too many colons in address",
		"m1:":                 `"m1:": the port is "", want a number from 1 to 65535`,
		"m1:0":                `"m1:0": the port is "0", want a number from 1 to 65535`,
		"m1:65536":            `"m1:65536": the port is "65536", want a number from 1 to 65535`,
		"m1:http":             `"m1:http": the port is "http", want a number from 1 to 65535`,
		strings.Repeat("m", leasehold.MaxAddrLen) + ":1": "an address has 258 bytes, want at most 256",
	} {
		if got := fmt.Sprint(address.Check(addr, "m1:7400")); got != want {
			t.Errorf("%q: %s\nwant %s", addr, got, want)
		}
	}
}

func TestWildcard(t *testing.T) {
	for addr, want := range map[string]bool{
		":8080": true, "0.0.0.0:8080": true, "[::]:8080": true,
		"10.0.0.1:8080": false, "localhost:8080": false, "[::1]:8080": false, "": false,
	} {
		if got := address.Wildcard(addr); got != want {
			t.Errorf("%q: %v", addr, got)
		}
	}
}
