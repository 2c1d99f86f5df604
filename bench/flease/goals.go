package main

import "fmt"

// What we want.
const (
	leastRate  = 200_000 // leases per second, in batches of 10,000
	leastRatio = 20      // times the fastest lock service
	leastFlat  = 0.75    // the slowest size of a batch, of the fastest
	mostChange = 0.10    // with a busy disk
	soughtRate = 500_000 // what we aim at; said, not judged
)

// A verdict is a goal, and what became of it.
type verdict struct {
	Want string `json:"want"`
	Have string `json:"have"`
	Met  bool   `json:"met"`
}

// judge returns a verdict on each goal that the report has numbers for.
func (r *report) judge() []verdict {
	var all []verdict
	if flease, ok := r.rate(nameFlease); ok {
		all = append(all, verdict{
			fmt.Sprintf("flease: at least %s leases/s (we aim at %s)", thousands(leastRate), thousands(soughtRate)),
			thousands(flease.Median), flease.Median >= leastRate,
		})
		if best, ok := r.best(); ok {
			ratio := flease.Median / best.Rate.Median
			all = append(all, verdict{
				fmt.Sprintf("flease: at least %d times the fastest lock service (%s)", leastRatio, best.Name),
				fmt.Sprintf("%.1f", ratio), ratio >= leastRatio,
			})
		}
	}
	if share, ok := r.flatness(); ok {
		all = append(all, verdict{
			fmt.Sprintf("flease: the slowest size of batches at least %.2f of the fastest", leastFlat),
			fmt.Sprintf("%.2f", share), share >= leastFlat,
		})
	}
	for _, s := range r.Disk {
		if s.Name == nameFlease {
			all = append(all, verdict{
				fmt.Sprintf("flease: less than %.0f %% slower with a busy disk", 100*mostChange),
				percent(s.Change), s.Change > -mostChange,
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
