package main

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// What we want.
const (
	leastRate  = 200_000 // leases per second, in batches of 10,000
	leastRatio = 20      // times the fastest lock service
	leastFlat  = 0.75    // the slowest size of a batch, of the fastest
	mostChange = 0.10    // with a busy disk
	soughtRate = 500_000 // what we aim at; said, not judged
)

// judge returns what became of each goal that the report has numbers for.
func (r *report) judge() []kit.Goal {
	var all []kit.Goal
	if flease, ok := r.rate(nameFlease); ok {
		all = append(all, kit.Goal{
			Want: fmt.Sprintf("flease: at least %s leases/s (we aim at %s)", kit.Thousands(leastRate), kit.Thousands(soughtRate)),
			Have: kit.Thousands(flease.Median), Met: flease.Median >= leastRate,
		})
		if best, ok := r.best(); ok {
			ratio := flease.Median / best.Rate.Median
			all = append(all, kit.Goal{
				Want: fmt.Sprintf("flease: at least %d times the fastest lock service (%s)", leastRatio, best.Name),
				Have: fmt.Sprintf("%.1f", ratio), Met: ratio >= leastRatio,
			})
		}
	}
	if share, ok := r.flatness(); ok {
		all = append(all, kit.Goal{
			Want: fmt.Sprintf("flease: the slowest size of batches at least %.2f of the fastest", leastFlat),
			Have: fmt.Sprintf("%.2f", share), Met: share >= leastFlat,
		})
	}
	for _, s := range r.Disk {
		if s.Name == nameFlease {
			all = append(all, kit.Goal{
				Want: fmt.Sprintf("flease: less than %.0f %% slower with a busy disk", 100*mostChange),
				Have: kit.Percent(s.Change), Met: s.Change > -mostChange,
			})
		}
	}
	return all
}

// flatness returns what share of the fastest size's rate the slowest has.
func (r *report) flatness() (float64, bool) {
	var low, high float64
	for _, p := range r.Batches {
		if p.Name != nameFlease {
			continue
		}
		if low == 0 || p.Rate.Median < low {
			low = p.Rate.Median
		}
		high = max(high, p.Rate.Median)
	}
	if high == 0 {
		return 0, false
	}
	return low / high, true
}
