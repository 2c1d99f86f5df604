package address_test

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/runtime/address"
)

func TestCheckPlaintext(t *testing.T) {
	for addr, refused := range map[string]bool{
		"127.0.0.1:7400": false, "127.8.9.1:7400": false, "[::1]:7400": false, "localhost:7400": false, "[::ffff:127.0.0.1]:1": false,
		"10.0.0.1:7400": true, "m1:7400": true, "[2001:db8::1]:7400": true, ":7400": true, "0.0.0.0:1": true,
		"localhost.example.com:1": true, "127.0.0.1.example.com:1": true, "nonsense": true, "": true,
	} {
		err := address.CheckPlaintext("127.0.0.1:1", addr)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "insecure.NewCredentials()") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}
