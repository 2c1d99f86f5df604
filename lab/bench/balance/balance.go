// Package balance measures the balance of load and the number of moved keys of our
// policies, compared with consistent hashing, plain and with bounded loads, and with the
// rule of the papers.
//
// A round is a seed, which changes the distribution of keys, the measured loads, and the
// owners that leave. Package policylab runs the periods.
package balance

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/policylab"
	"github.com/leasehold-dev/leasehold/partition"
)

// New returns the benchmark.
func New() *report.Benchmark {
	b := &report.Benchmark{
		Name: "balance", Number: 7, Title: "Balance", About: about,
		QuickPart: zipfPart, Rounds: 3, Quick: 1, Seconds: 75, QuickSeconds: 7, Run: run,
	}
	for _, s := range scenarios() {
		b.Parts = append(b.Parts, s.name)
	}
	return b
}

func run(ctx context.Context, r *report.Run) error {
	for _, s := range scenarios() {
		if !r.Wants(s.name) {
			continue
		}
		trials, err := s.try(ctx, r.Rounds, func(text string) { r.Step("%s", text) })
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		conclude(r.Result, s, trials)
	}
	return nil
}

// The contestants.
const (
	nameBalanced = "balanced"
	nameAdaptive = "adaptive"
	namePlain    = "consistent"
	nameLibrary  = "bounded (buraksezer)"
)

// A contestant is a policy, created for each run, since some have state.
type contestant struct {
	name string
	make func(owners int) partition.Policy
}

// contestants returns all contestants. The first is the default policy.
func contestants() []contestant {
	return []contestant{
		{nameBalanced, func(int) partition.Policy { return partition.Balanced{} }},
		{nameAdaptive, func(int) partition.Policy { return partition.Adaptive{} }},
		{namePlain, func(int) partition.Policy { return partition.Consistent{} }},
		{nameLibrary, newLibrary},
	}
}

// minute is the number of periods in a minute, and event is the period in which something happens.
const (
	minute = 6
	event  = 4 * minute
)

// A scenario is a pool of owners, in which at most one event happens.
type scenario struct {
	name    string // on the command line
	title   string
	text    string
	owners  int
	periods int // of 10 s
	from    int // the first period that counts
	load    func(seed uint64) (policylab.Workload, error)
	change  int // number of owners that join, or leave if it is negative, at the event
	// same: policies that move keys for balance start with the assignment of consistent
	// hashing. It has one seed.
	same bool
}

// The scenarios with headlines.
const (
	zipfPart  = "zipf"
	leavePart = "fifty-leave"
	joinPart  = "fifty-join"
)

func scenarios() []scenario {
	const usual = 12 * minute
	return []scenario{
		{
			name: zipfPart, title: "Zipf, 250 owners", text: "A billion keys; 12 minutes, from each policy's initial assignment.",
			owners: 250, periods: usual, load: zipf(1e9),
		},
		{
			name: "figure10", title: "Figure 10 of PRS",
			text: "500 owners, ten million keys, an hour. `balanced` and `adaptive` start from consistent hashing. The hottest key has 4.1\n" +
				"times the mean load. PRS reports several servers significantly above twice the mean at first, and significantly fewer after the hour.",
			owners: 500, periods: 60 * minute, load: zipf(1e7), same: true,
		},
		{
			name: "hot", title: "A hot key",
			text:   "100 owners; after 4 minutes one key has 10 % of the load, ten times the mean. A policy can only move all other keys away from its owner.",
			owners: 100, periods: usual, load: heats,
		},
		{
			name: leavePart, title: "50 of 250 owners leave",
			text:   "A billion keys. A fifth of the owners leaves at once, like the rack of PRS 7.2: the fair share of their keys is 20 %. The table begins then,\n" + "when the load of the moved keys is not measured yet.",
			owners: 250, periods: usual, from: event, load: zipf(1e9), change: -50,
		},
		{
			name: joinPart, title: "50 owners join 200", text: "The same for owners that join.",
			owners: 200, periods: usual, from: event, load: zipf(1e9), change: 50,
		},
	}
}

// zipf is the distribution of PRS 7.3 over a number of keys.
func zipf(keys float64) func(seed uint64) (policylab.Workload, error) {
	return func(seed uint64) (policylab.Workload, error) {
		return policylab.Zipf{Alpha: policylab.DefaultAlpha, Keys: keys, Seed: seed}.Workload()
	}
}

// heating is a load that changes to another one.
type heating struct{ before, after policylab.Workload }

func (h heating) At(period int) *policylab.Load {
	if period < event {
		return h.before.At(period)
	}
	return h.after.At(period)
}

// heats is zipf until one key has a tenth of the load.
func heats(seed uint64) (policylab.Workload, error) {
	const share = 0.1
	rest := policylab.Zipf{Alpha: policylab.DefaultAlpha, Keys: 1e9, Seed: seed}
	before, err := rest.Workload()
	if err != nil {
		return nil, err
	}
	after, err := policylab.Hot(share, rest)
	return heating{before, after}, err
}

// A trial is the result of a contestant: the samples that count, by seed.
type trial struct {
	name  string
	seeds [][]policylab.Sample
}

// try runs a scenario with all contestants and a number of seeds. Since nothing is timed, it
// uses all cores.
func (s scenario) try(ctx context.Context, seeds int, step func(string)) ([]trial, error) {
	if s.same {
		seeds = 1
	}
	all := contestants()
	trials := make([]trial, len(all))
	for i, c := range all {
		trials[i] = trial{c.name, make([][]policylab.Sample, seeds)}
	}
	for seed := range seeds {
		load, err := s.load(uint64(seed + 1))
		if err != nil {
			return nil, err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i, c := range all {
			group.Go(func() error {
				result, err := s.config(c, load, uint64(seed+1)).Run(ctx)
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				trials[i].seeds[seed] = result.Samples[s.from:]
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		step(fmt.Sprintf("%s, seed %d", s.name, seed+1))
	}
	return trials, nil
}

func (s scenario) config(c contestant, load policylab.Workload, seed uint64) policylab.Config {
	config := policylab.Usual()
	config.Policy, config.Workload, config.Seed = c.make(s.owners), load, seed
	config.Owners, config.Periods = s.owners, s.periods
	if s.change != 0 {
		config.Changes = []policylab.Change{{Period: event, Owners: s.change}}
	}
	if s.same && (c.name == nameBalanced || c.name == nameAdaptive) {
		config.Start = partition.Consistent{}
	}
	return config
}
