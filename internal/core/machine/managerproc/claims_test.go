package managerproc_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A group of 100 namespaces is started with another data directory: the claims of owners in each of
// them are kept. Above the limit the oldest claim is removed.
func TestClaimsOfManyNamespaces(t *testing.T) {
	p := elected(t)
	p.reads(0, catalog(1))
	now := mono.Instant(10 * ms)
	name := func(i int) leasehold.Namespace { return leasehold.Namespace(fmt.Sprintf("ns%03d", i)) }
	for range 3 {
		for i := range 100 {
			r := p.request(name(i), "ann", 1)
			r.Leases = []leasehold.Lease{{Range: leasehold.All, Generation: 7}}
			now += mono.Instant(10 * time.Microsecond)
			p.machine.Step(now, r)
		}
	}
	missing := 0
	for i := range 100 {
		if p.machine.Claimed(now, name(i)) == "" {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of 100 claimed namespaces could be created", missing)
	}
	for i := 100; i <= 4096; i++ {
		r := p.request(leasehold.Namespace(fmt.Sprintf("ns%04d", i)), "ann", 1)
		r.Leases = []leasehold.Lease{{Range: leasehold.All, Generation: 7}}
		now++
		p.machine.Step(now, r)
	}
	if p.machine.Claimed(now, name(0)) != "" || p.machine.Claimed(now, name(1)) == "" || p.machine.Claimed(now, "ns4096") == "" {
		t.Error("want only the oldest claim to be removed")
	}
}
