package managerdns_test

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/runtime/managerdns"
)

// Lookup returns all addresses, however many there are: those of a service's servers may be more than managers.
func TestLookupReturnsAllAddresses(t *testing.T) {
	z := &zone{records: map[string][]string{}}
	var hosts []string
	for i := range 100 {
		hosts = append(hosts, fmt.Sprintf("10.0.0.%d", i))
	}
	z.set("servers", hosts...)
	addrs, err := managerdns.Lookup(t.Context(), []string{"dns:///servers:7400"}, z)
	if err != nil || len(addrs) != 100 {
		t.Errorf("%d addresses, %v; want 100", len(addrs), err)
	}
}
