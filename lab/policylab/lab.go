package policylab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
)

// A Change of the pool: owners that join, or leave if the number is negative, at the start of a period. The
// seed determines those that leave.
type Change struct {
	Period int // 1 and up
	Owners int
}

// name returns the name of the flag of a change.
func (c Change) name() string {
	if c.Owners < 0 {
		return "leave"
	}
	return "join"
}

// Run tries the policy. It ends early with the error of ctx when that ends, or with the error of a policy
// that fails or returns an invalid assignment.
//
// Its time is proportional to the number of periods, and in each to the number of cells, of keys with a cost
// of their own, and to the time of the policy: about 30 ms for 250 owners.
func (c Config) Run(ctx context.Context) (*Result, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := newRun(&c)
	for period := range c.Periods {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.next(period); err != nil {
			return nil, err
		}
		if c.Progress != nil {
			c.Progress(period)
		}
	}
	return r.result, nil
}

// A run is a pool of owners.
type run struct {
	*Config
	result *Result

	members []partition.Member        // present owners, sorted
	index   map[leasehold.OwnerID]int // of all owners so far
	present []bool
	weights []float64 // of all owners so far

	current partition.Assignment
	bucket  partition.Bucket
	meter   *meter
	loads   partition.Loads
	usual   float64 // total cost of the first period with a cost
	busy    float64 // load of an owner of weight 1 for a cost of 1
	leavers *rand.Rand
}

func newRun(c *Config) *run {
	r := &run{
		Config:  c,
		result:  &Result{Policy: c.Policy.Name(), Target: c.Target, Period: c.Period},
		index:   make(map[leasehold.OwnerID]int),
		bucket:  partition.Bucket{Churn: c.Churn, Every: c.Period},
		usual:   firstTotal(c.Workload, c.Periods),
		leavers: rand.New(rand.NewPCG(c.Seed, 0)),
	}
	r.join(c.Owners)
	perCost := r.weight() / r.usual // per load of an owner
	r.meter, r.busy = newMeter(c, c.Requests*perCost), c.MeanLoad*perCost
	return r
}

// firstTotal returns the total cost in the first period with a cost.
func firstTotal(w Workload, periods int) float64 {
	for period := range periods {
		if total := w.At(period).Total(); total > 0 {
			return total
		}
	}
	return 1
}

// next runs one period.
func (r *run) next(period int) error {
	for _, c := range r.Changes {
		if c.Period == period {
			r.change(c.Owners)
		}
	}
	sample, err := r.decide(period)
	if err != nil {
		return err
	}
	load := r.Workload.At(period)
	theirs := make([]float64, len(r.present))
	sample.Unowned = r.meter.carry(load, theirs)
	r.judge(&sample, load, theirs)
	r.meter.measure(load, theirs, period)
	r.loads = r.meter.loads(len(r.present), period)
	return nil
}

// decide makes the policy assign the keys of a period.
func (r *run) decide(period int) (Sample, error) {
	policy := r.Policy
	if period == 0 && r.Start != nil {
		policy = r.Start
	}
	if period > 0 {
		r.bucket = r.bucket.After(r.Period)
	}
	in := partition.Input{
		Members: r.members, Current: r.current, Loads: r.loads, Budget: r.bucket.Level(),
		// The same limit as in the manager: an owner may hold twice as many leases.
		Limits: partition.Limits{MaxRanges: r.MaxRanges, MaxPerOwner: protocol.DefaultLimits.Leases / 2},
	}
	a, err := partition.Apply(policy, in)
	if err != nil {
		return Sample{}, fmt.Errorf("period %d: %w", period, err)
	}
	return r.adopt(a, period), nil
}

// change makes owners join or leave.
func (r *run) change(owners int) {
	if owners > 0 {
		r.join(owners)
		return
	}
	for range -owners {
		i := r.leavers.IntN(len(r.members))
		r.present[r.index[r.members[i].Owner]] = false
		r.members = slices.Delete(r.members, i, i+1)
	}
}

// join adds owners. Their names are sorted by the order in which they join.
func (r *run) join(owners int) {
	for range owners {
		i := len(r.present)
		m := partition.Member{Owner: leasehold.OwnerID(fmt.Sprintf("owner-%06d", i)), Weight: r.Weights[i%len(r.Weights)]}
		r.index[m.Owner] = i
		r.present = append(r.present, true)
		r.weights = append(r.weights, m.Weight)
		r.members = append(r.members, m)
	}
}

// weight returns the total weight of all members.
func (r *run) weight() float64 {
	sum := 0.0
	for _, m := range r.members {
		sum += m.Weight
	}
	return sum
}

// adopt assigns the keys to owners, and counts the moves.
func (r *run) adopt(a partition.Assignment, period int) Sample {
	spans := make([]span, len(a))
	for i, s := range a {
		spans[i] = span{s.Start, noOwner}
		if s.Owner != "" {
			spans[i].owner = r.index[s.Owner]
		}
	}
	had := make([]bool, len(r.present)) // owners with keys before
	for _, h := range r.meter.holdings {
		if h.owner != noOwner {
			had[h.owner] = true
		}
	}
	s := Sample{Period: period, Ranges: len(a)}
	spent := 0.0
	last := struct {
		end      leasehold.Key
		from, to int
	}{from: noOwner}
	r.meter.assign(spans, len(r.present), period, func(keys leasehold.Range, from, to int) {
		if from == noOwner {
			return // not a move
		}
		if keys.Start != last.end || from != last.from || to != last.to {
			s.Moves++
		}
		last.end, last.from, last.to = keys.Limit, from, to
		s.Moved += share(keys)
		switch {
		case !r.present[from]:
			s.Forced += share(keys)
		case to != noOwner && had[to]:
			spent += share(keys)
		}
	})
	r.bucket = r.bucket.Spend(spent)
	r.current = a
	return s
}

// judge completes the sample of a period from the true load of the owners: theirs has the cost of each.
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

// compare compares the load of each owner with the mean, per weight of 1.
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

// largeKeys returns for each owner the cost of its hottest key, if that is at least the given one.
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
		for limitOf(m.holdings, i)-1 < k.Key {
			i++
		}
		if owner := m.holdings[i].owner; owner != noOwner {
			hottest[owner] = max(hottest[owner], k.Cost)
		}
	}
	return hottest
}
