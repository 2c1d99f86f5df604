package policylab

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// adopt gives the keys to the owners that a says, and counts what moves.
func (r *run) adopt(a partition.Assignment, period int) Sample {
	spans := make([]span, len(a))
	for i, s := range a {
		spans[i] = span{s.Start, nobody}
		if s.Owner != "" {
			spans[i].owner = r.index[s.Owner]
		}
	}
	had := make([]bool, len(r.present)) // who has keys before
	for _, h := range r.meter.holdings {
		if h.owner != nobody {
			had[h.owner] = true
		}
	}
	s := Sample{Period: period, Ranges: len(a)}
	spent := 0.0
	last := struct {
		end      leasehold.Key
		from, to int
	}{from: nobody}
	r.meter.assign(spans, len(r.present), period, func(keys leasehold.Range, from, to int) {
		if from == nobody {
			return // nothing moves: there was nothing
		}
		if keys.Start != last.end || from != last.from || to != last.to {
			s.Moves++
		}
		last.end, last.from, last.to = keys.Limit, from, to
		s.Moved += share(keys)
		switch {
		case !r.present[from]:
			s.Forced += share(keys)
		case to != nobody && had[to]:
			spent += share(keys)
		}
	})
	r.bucket = r.bucket.Spend(spent)
	r.current = a
	return s
}

// judge completes the sample of a period with how the true load lies on the
// owners: theirs is what it costs each.
func (r *run) judge(s *Sample, load *Load, theirs []float64) {
	s.Owners = len(r.members)
	s.Load = load.Total() / r.usual
	s.MaxOverMean, s.MaxOverUnavoidable, s.Floor = 1, 1, 1
	if mean := load.Total() / r.weight(); mean > 0 {
		s.Unowned /= load.Total()
		r.compare(s, load, theirs, mean)
	}
	r.result.Samples = append(r.result.Samples, *s)
	if r.KeepLoads {
		busy := make([]float32, len(theirs))
		for i, cost := range theirs {
			busy[i] = float32(cost / r.weights[i] * r.busy)
		}
		r.result.Loads = append(r.result.Loads, busy)
	}
}

// compare compares what each owner has with the mean, which is per weight of 1.
func (r *run) compare(s *Sample, load *Load, theirs []float64, mean float64) {
	least, most := partition.MaxWeight+0.0, 0.0
	for _, m := range r.members {
		least, most = min(least, m.Weight), max(most, m.Weight)
	}
	s.HottestOverMean = load.Hottest() / mean
	s.Floor = max(1, s.HottestOverMean/most)
	s.MaxOverMean, s.MaxOverUnavoidable = 0, 0
	hottest := r.meter.largeKeys(load, mean*least, len(theirs))
	for i, cost := range theirs {
		fair := mean * r.weights[i]
		s.MaxOverMean = max(s.MaxOverMean, cost/fair)
		s.MaxOverUnavoidable = max(s.MaxOverUnavoidable, cost/max(fair, hottest[i]))
		if cost/fair > r.Target {
			s.OverTarget++
		}
	}
}

// largeKeys returns for each owner what its hottest key costs, if that is at
// least so much.
func (m *meter) largeKeys(load *Load, least float64, owners int) []float64 {
	hottest := make([]float64, owners)
	if load.Hottest() < least {
		return hottest
	}
	i := 0
	for _, k := range load.keys {
		if k.Cost < least {
			continue
		}
		for m.limit(i)-1 < k.Key {
			i++
		}
		if owner := m.holdings[i].owner; owner != nobody {
			hottest[owner] = max(hottest[owner], k.Cost)
		}
	}
	return hottest
}
