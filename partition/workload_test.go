package partition_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// A workload is the true distribution of requests: some keys
// individually, sorted, and all others uniformly. The sum of the shares is 1.
type workload struct {
	keys []partition.HotKey
	rest float64
}

// zipf returns the workload in which the key of rank r of n gets
// r^-alpha times the requests of the first. The top million keys are at places
// that hashing determines; the others are so many that they are uniform.
func zipf(alpha, n float64) workload {
	const top = 1_000_000
	random := rand.New(rand.NewPCG(7, 7))
	w := workload{keys: make([]partition.HotKey, top)}
	sum := 0.0
	for i := range w.keys {
		w.keys[i] = partition.HotKey{Key: leasehold.Key(random.Uint64()), Rate: math.Pow(float64(i+1), -alpha)}
		sum += w.keys[i].Rate
	}
	w.rest = (math.Pow(n, 1-alpha) - math.Pow(top, 1-alpha)) / (1 - alpha) // the integral
	sum += w.rest
	w.rest /= sum
	for i := range w.keys {
		w.keys[i].Rate /= sum
	}
	slices.SortFunc(w.keys, func(a, b partition.HotKey) int { return cmp.Compare(a.Key, b.Key) })
	return w
}

// with returns w with a key that has the given share of all requests.
func (w workload) with(k leasehold.Key, share float64) workload {
	keys := []partition.HotKey{{Key: k, Rate: share}}
	for _, h := range w.keys {
		keys = append(keys, partition.HotKey{Key: h.Key, Rate: h.Rate * (1 - share)})
	}
	slices.SortFunc(keys, func(a, b partition.HotKey) int { return cmp.Compare(a.Key, b.Key) })
	return workload{keys, w.rest * (1 - share)}
}

// loads returns the true load of each owner.
func (w workload) loads(a partition.Assignment) map[leasehold.OwnerID]float64 {
	loads := a.Shares()
	for o := range loads {
		loads[o] *= w.rest
	}
	keys := w.keys
	for r, o := range a.All() {
		for len(keys) > 0 && keys[0].Key <= r.Last() {
			loads[o] += keys[0].Rate
			keys = keys[1:]
		}
	}
	return loads
}

// maxOverMean returns the highest load per weight, relative to the mean.
func (w workload) maxOverMean(members []partition.Member, a partition.Assignment) float64 {
	loads, weights, highest := w.loads(a), 0.0, 0.0
	for _, m := range members {
		weights += m.Weight
		highest = max(highest, loads[m.Owner]/m.Weight)
	}
	return highest * weights
}

// A survey is the exact load report of all owners: the cells of their
// ranges, and their hottest keys.
type survey struct {
	loads partition.Loads
}

// survey splits every range of a into n cells. An owner reports its 64 hottest keys
// that are at least 1 % of its load.
func (w workload) survey(a partition.Assignment, n int) survey {
	var out survey
	keys := w.keys
	owned := w.loads(a)
	hot := map[leasehold.OwnerID][]partition.HotKey{}
	for r, o := range a.All() {
		for _, cell := range split(r, n) {
			c := partition.Cell{Range: cell, Rate: w.rest * math.Ldexp(float64(cell.Size()), -64)}
			for len(keys) > 0 && keys[0].Key <= cell.Last() {
				c.Rate += keys[0].Rate
				if keys[0].Rate >= 0.01*owned[o] {
					hot[o] = append(hot[o], keys[0])
				}
				keys = keys[1:]
			}
			out.loads.Cells = append(out.loads.Cells, c)
		}
	}
	for _, keys := range hot {
		slices.SortFunc(keys, func(a, b partition.HotKey) int { return cmp.Compare(b.Rate, a.Rate) })
		out.loads.Hot = append(out.loads.Hot, keys[:min(64, len(keys))]...)
	}
	slices.SortFunc(out.loads.Hot, func(a, b partition.HotKey) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// split cuts r into up to n equal ranges.
func split(r leasehold.Range, n int) []leasehold.Range {
	step := leasehold.Key(r.Size() / uint64(n))
	if step == 0 {
		return []leasehold.Range{r}
	}
	var out []leasehold.Range
	for i := range n {
		c := leasehold.Range{Start: r.Start + leasehold.Key(i)*step, Limit: r.Start + leasehold.Key(i+1)*step}
		if i == n-1 {
			c.Limit = r.Limit
		}
		out = append(out, c)
	}
	return out
}

// measured returns the survey of a period with a number of requests.
func (s survey) measured(random *rand.Rand, requests float64) partition.Loads {
	count := func(share float64) float64 {
		mean := share * requests
		if mean > 30 {
			return max(0, math.Round(mean+random.NormFloat64()*math.Sqrt(mean)))
		}
		n, p := 0.0, random.Float64()
		for limit := math.Exp(-mean); p > limit; n++ {
			p *= random.Float64()
		}
		return n
	}
	l := partition.Loads{Cells: slices.Clone(s.loads.Cells), Hot: slices.Clone(s.loads.Hot)}
	hot := l.Hot
	for i := range l.Cells {
		c := &l.Cells[i]
		others, sum := c.Rate, 0.0
		for len(hot) > 0 && hot[0].Key <= c.Range.Last() {
			others -= hot[0].Rate
			hot[0].Rate = count(hot[0].Rate)
			sum += hot[0].Rate
			hot = hot[1:]
		}
		c.Rate = sum + count(max(0, others))
	}
	return l
}
