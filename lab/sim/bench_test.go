package sim

import (
	"testing"
	"time"
)

// BenchmarkWorld measures simulated time by elapsed time: 3 owners, 2 lookups, 2 managers, all faults on, on
// one core.
func BenchmarkWorld(b *testing.B) {
	cfg := valid(b, Config{Managers: 2, Owners: 3, Lookups: 2})
	var simulated time.Duration
	var events uint64
	b.ReportAllocs()
	seed := uint64(0)
	for b.Loop() {
		seed++
		r := cfg.Run(seed, nil)
		if r.Violation != nil {
			b.Fatalf("seed %d: %v", seed, r.Violation)
		}
		simulated += r.Simulated
		events += r.Events
	}
	b.ReportMetric(simulated.Seconds()/b.Elapsed().Seconds(), "x-real-time")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}
