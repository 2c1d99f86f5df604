package owner

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/mono"
)

// The figure to meet: Check and Held cost at most twice a bare time.Since, with
// 64 leases and no allocation.

func BenchmarkTimeSince(b *testing.B) {
	begin := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		time.Since(begin)
	}
}

func BenchmarkCheck(b *testing.B) {
	o := holder64()
	leases := checked(o)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		o.Check(leases[i%len(leases)].Key)
	}
}

func BenchmarkHeld(b *testing.B) {
	o := holder64()
	leases := checked(o)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		o.Held(leases[i%len(leases)])
	}
}

func BenchmarkCheckParallel(b *testing.B) {
	o := holder64()
	leases := checked(o)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			o.Check(leases[i%len(leases)].Key)
		}
	})
}

func TestChecksDoNotAllocate(t *testing.T) {
	o := holder64()
	var lease Lease
	if n := testing.AllocsPerRun(1000, func() { lease, _ = o.Check(1) }); n != 0 {
		t.Errorf("Check allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() { o.Held(lease) }); n != 0 {
		t.Errorf("Held allocates %v times", n)
	}
}

// checked returns leases on keys that are scattered over what the owner holds,
// so that no search can be predicted.
func checked(o *Owner) []Lease {
	leases := make([]Lease, 0, 1024)
	for key := leasehold.Key(1); len(leases) < cap(leases); key = key*6364136223846793005 + 1442695040888963407 {
		if lease, ok := o.Check(key); ok {
			leases = append(leases, lease)
		}
	}
	return leases
}

// holder64 is an owner without a manager, which holds half of the key space in
// 64 leases.
func holder64() *Owner {
	o := &Owner{clock: clock.New()}
	o.detector = clock.NewDetector(o.clock)
	leases := make([]leasehold.Lease, 64)
	for i := range leases {
		start := leasehold.Key(i) << 58
		leases[i] = leasehold.Lease{Range: leasehold.Range{Start: start, Limit: start + 1<<57}, Generation: leasehold.Generation(i + 1)}
	}
	o.holding.Store(&holding{until: mono.Never, areas: newAreas(leases)})
	return o
}
