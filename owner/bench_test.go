package owner

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/loadmeter"
)

// Target: Check and Held cost at most twice a time.Since, with
// 64 leases and without allocations.

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

// BenchmarkCounting measures the cost of counting load in a check. Checks with and
// without it alternate, and the medians are compared, so
// that other load on the machine has little effect.
func BenchmarkCounting(b *testing.B) {
	o := holder64()
	leases := checked(o)
	const turn = 4096
	var with, without []float64 // nanoseconds of a check in each round
	i := 0
	for b.Loop() {
		begin := time.Now()
		for range turn {
			i++
			o.Check(leases[i%len(leases)].Key)
		}
		middle := time.Now()
		for range turn {
			i++
			o.checkUncounted(leases[i%len(leases)].Key)
		}
		without = append(without, float64(time.Since(middle))/turn)
		with = append(with, float64(middle.Sub(begin))/turn)
		if now := o.clock.Now(); now.Sub(o.loads.at) > reportInterval {
			o.loads.measure(now, o.meter)
		}
	}
	slices.Sort(with)
	slices.Sort(without)
	bare := without[len(without)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(bare, "ns/check")
	b.ReportMetric(with[len(with)/2]-bare, "ns/count")
}

// checkUncounted is Check without counting load.
//
//go:noinline
func (o *Owner) checkUncounted(key leasehold.Key) (Lease, bool) {
	l, _ := o.find(key)
	if l == nil || l.Generation == 0 {
		return Lease{}, false
	}
	return Lease{Lease: *l, Key: key}, true
}

func BenchmarkReport(b *testing.B) {
	o := holder64()
	o.meter = loadmeter.New(o.clock.Now(), false)
	leases := checked(o)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		o.Report(leases[i%len(leases)].Key, 1)
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
	o.meter = loadmeter.New(o.clock.Now(), false)
	if n := testing.AllocsPerRun(10_000, func() { o.Report(1, 1) }); n != 0 {
		t.Errorf("Report allocates %v times", n)
	}
}

// checked returns leases on keys that are distributed over the held ranges,
// so that branch prediction does not help.
func checked(o *Owner) []Lease {
	leases := make([]Lease, 0, 1024)
	for key := leasehold.Key(1); len(leases) < cap(leases); key = key*6364136223846793005 + 1442695040888963407 {
		if lease, ok := o.Check(key); ok {
			leases = append(leases, lease)
		}
	}
	return leases
}

// holder64 returns an owner without a manager that holds half of the key space in
// 64 leases.
func holder64() *Owner {
	o := &Owner{clock: clock.New()}
	o.detector = clock.NewDetector(o.clock)
	o.meter = loadmeter.New(o.clock.Now(), true)
	leases := make([]leasehold.Lease, 64)
	for i := range leases {
		start := leasehold.Key(i) << 58
		leases[i] = leasehold.Lease{Range: leasehold.Range{Start: start, Limit: start + 1<<57}, Generation: leasehold.Generation(i + 1)}
	}
	o.holding.Store(&holding{until: mono.Never, areas: newAreas(leases), view: &machine.View{}, superseded: make(chan struct{})})
	o.meter.Hold(o.clock.Now(), leases)
	return o
}
