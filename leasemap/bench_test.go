package leasemap

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// holder is a Checker that holds all keys at no cost.
type holder struct{}

func (holder) Check(key leasehold.Key) (owner.Lease, bool) {
	return owner.Lease{Lease: leasehold.Lease{Range: leasehold.All, Generation: 1}, Key: key}, true
}
func (holder) Held(owner.Lease) bool                      { return true }
func (holder) Suspended(leasehold.Key) bool               { return false }
func (holder) Await(context.Context, leasehold.Key) error { return nil }

// BenchmarkGetWithStore compares Get of a value in memory with and without a store. They take turns, and medians are
// compared.
func BenchmarkGetWithStore(b *testing.B) {
	const turn = 4096
	names := make([]string, 1024)
	maps := make([]*Map[string], 2)
	for i, cfg := range []Config[string]{{}, plain(newDisk())} {
		maps[i], _ = newMap(cfg)
		maps[i].leases = holder{}
		for n := range names {
			names[n] = fmt.Sprint("user-", n)
			if _, err := maps[i].Set(b.Context(), names[n], "1"); err != nil {
				b.Fatal(err)
			}
		}
	}
	var costs [2][]float64 // nanoseconds of a Get in each turn
	for b.Loop() {
		for i, m := range maps {
			begun := time.Now()
			for n := range turn {
				if _, there, err := m.Get(names[n%len(names)]); !there || err != nil {
					b.Fatal(err)
				}
			}
			costs[i] = append(costs[i], float64(time.Since(begun))/turn)
		}
	}
	for i := range costs {
		slices.Sort(costs[i])
	}
	without, with := costs[0][len(costs[0])/2], costs[1][len(costs[1])/2]
	b.ReportMetric(without, "without-ns")
	b.ReportMetric(with, "with-ns")
	b.ReportMetric(with-without, "more-ns")
}
