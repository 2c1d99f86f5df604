package policylab

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
)

// hotShare is the minimum share of its owner's load of a hot key.
const hotShare = 0.01

// carry distributes a load to the owners, and adds the true cost of each to theirs. It returns the cost of
// unowned keys.
func (m *meter) carry(load *Load, theirs []float64) (unowned float64) {
	m.charge(load)
	for i := range m.holdings {
		sum := 0.0
		first, end := m.cellsOf(i)
		for _, cost := range m.costs[first:end] {
			sum += cost
		}
		if owner := m.holdings[i].owner; owner != noOwner {
			theirs[owner] += sum
		} else {
			unowned += sum
		}
	}
	return unowned
}

// charge computes the costs of the cells. Usually neither the cells nor the load have changed since the last
// period.
func (m *meter) charge(load *Load) {
	if m.charged == load {
		return
	}
	m.charged = load
	m.costs = slices.Grow(m.costs[:0], len(m.cells))[:len(m.cells)]
	c := cursor{load: load}
	for j := range m.cells {
		m.costs[j] = c.to(limitOf(m.cells, j))
	}
}

// measured reports whether the owner of a holding measures it in this period: not in the first one.
func (h *holding) measured(period int) bool { return h.owner != noOwner && period > h.since }

// measure makes owners count the load that carry has distributed: theirs has the cost of each.
func (m *meter) measure(load *Load, theirs []float64, period int) {
	before, hot := m.hot, m.candidates(load, theirs, period)
	m.hot = hot
	for i := range m.holdings {
		h := &m.holdings[i]
		if !h.measured(period) {
			continue
		}
		gain := m.gain(h, period)
		first, end := m.cellsOf(i)
		for j := first; j < end; j++ {
			rest, count := m.costs[j], 0.0
			for ; len(hot) > 0 && hot[0].cell == j; hot = hot[1:] {
				rest -= hot[0].rate
				n := m.count(hot[0].rate)
				count += n
				before = hot[0].estimate(n, gain, before)
			}
			count += m.count(rest)
			m.cells[j].rate += gain * (count - m.cells[j].rate)
		}
	}
}

// gain returns the weight of the newest count in an estimate. The estimate is a mean of all counts so far,
// with weights that decrease by the factor decay.
func (m *meter) gain(h *holding, period int) float64 {
	return (1 - m.decay) / (1 - math.Pow(m.decay, float64(period-h.since)))
}

// count returns the number of requests that an owner counts for a cost.
func (m *meter) count(cost float64) float64 {
	if m.rng == nil {
		return max(0, cost*m.scale)
	}
	return poisson(m.rng, cost*m.scale)
}

// candidates returns the keys that may be hot, in order, with their true cost as their rate. Noise does not
// lift any other key above hotShare.
func (m *meter) candidates(load *Load, theirs []float64, period int) []hotKey {
	var hot []hotKey
	keys := load.keys
	for i := range m.holdings {
		h := &m.holdings[i]
		least := math.Inf(1)
		if h.measured(period) {
			least = theirs[h.owner] * hotShare / 2
		}
		last := limitOf(m.holdings, i) - 1
		j := h.cells
		for ; len(keys) > 0 && keys[0].Key <= last; keys = keys[1:] {
			if keys[0].Cost < least {
				continue
			}
			for j+1 < len(m.cells) && m.cells[j+1].start <= keys[0].Key {
				j++
			}
			hot = append(hot, hotKey{keys[0].Key, keys[0].Cost, j, h.owner})
		}
	}
	return hot
}

// estimate merges a count into the previous estimate of the key, and returns the previous estimates of later
// keys.
func (h *hotKey) estimate(count, gain float64, before []hotKey) []hotKey {
	for len(before) > 0 && before[0].key < h.key {
		before = before[1:]
	}
	h.rate = count
	if len(before) > 0 && before[0].key == h.key && before[0].owner == h.owner {
		h.rate = before[0].rate + gain*(count-before[0].rate)
	}
	return before
}

// loads returns the owners' reports, per second, after they have measured a period. The result is valid until
// the next call.
func (m *meter) loads(owners, period int) partition.Loads {
	r := &m.report
	r.Cells, r.Hot = r.Cells[:0], r.Hot[:0]
	perSecond := 1 / m.period.Seconds()
	totals := make([]float64, owners)
	for i := range m.holdings {
		h := &m.holdings[i]
		if !h.measured(period) {
			continue
		}
		first, end := m.cellsOf(i)
		for j := first; j < end; j++ {
			rate := m.cells[j].rate
			totals[h.owner] += rate
			r.Cells = append(r.Cells, partition.Cell{Range: keysOf(m.cells, j), Rate: rate * perSecond})
		}
	}
	for _, h := range m.reportedHot(totals) {
		r.Hot = append(r.Hot, partition.HotKey{Key: h.key, Rate: h.rate * perSecond})
	}
	return *r
}

// reportedHot returns the hot keys in the owners' reports, in order: the hottest of each owner, up to the
// limit of a message.
func (m *meter) reportedHot(totals []float64) []hotKey {
	var hot []hotKey
	for _, h := range m.hot {
		if h.rate > 0 && h.rate >= hotShare*totals[h.owner] {
			hot = append(hot, h)
		}
	}
	slices.SortFunc(hot, func(a, b hotKey) int {
		return cmp.Or(cmp.Compare(a.owner, b.owner), -cmp.Compare(a.rate, b.rate), cmp.Compare(a.key, b.key))
	})
	kept, run := hot[:0], 0
	for i, h := range hot {
		if run++; i == 0 || len(kept) == 0 || kept[len(kept)-1].owner != h.owner {
			run = 1
		}
		if run <= protocol.MaxHotKeys {
			kept = append(kept, h)
		}
	}
	slices.SortFunc(kept, func(a, b hotKey) int { return cmp.Compare(a.key, b.key) })
	return kept
}

// manyEvents is the mean from which on a Poisson distribution is approximated by a normal one. Mean and
// variance are the same, and the lost skew, 1/sqrt(manyEvents), is small in a sum of two counts. Drawing a
// Poisson number takes time proportional to its mean, and there are millions to draw.
const manyEvents = 16

// poisson draws the number of events with a mean.
func poisson(rng *rand.Rand, mean float64) float64 {
	switch {
	case mean <= 0:
		return 0
	case mean >= manyEvents:
		return max(0, math.Round(mean+math.Sqrt(mean)*rng.NormFloat64()))
	}
	// Inversion: sum the distribution until the sum exceeds a number between 0 and 1. The limit is for
	// rounding, which could keep the sum just below that number.
	draw, n := rng.Float64(), 0.0
	chance := math.Exp(-mean)
	for sum := chance; draw > sum && n < 8*manyEvents; sum += chance {
		n++
		chance *= mean / n
	}
	return n
}
