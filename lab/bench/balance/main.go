// Command balance measures the balance of load and the number of moved keys of our
// policies, compared with consistent hashing, plain and with bounded loads, and with the
// rule of the papers.
//
//	cd lab/bench && go run ./balance                 about a minute
//	cd lab/bench && go run ./balance -only figure10  one part: zipf, figure10, hot or members
//
// A round is a seed, which changes the distribution of keys, the measured loads, and the
// owners that leave. Package policylab runs the periods.
//
// # Bounded loads
//
// Consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam) limits each
// owner to a factor times the mean: a key of a full owner goes to the next owner on the
// ring. It takes part as a library and as [byLoad], because no library that we know of
// bounds the measured load of keys with one owner; load balancers do it for requests that
// any server can serve.
//
// Both have 64 partitions per initial owner, as many as the points of consistent hashing.
// A partition is a range of keys here, not all keys with the same hash modulo the number of
// partitions. Since keys are hashes, both are equivalent.
package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/policylab"
	"github.com/leasehold-dev/leasehold/partition"
)

func main() {
	report.Main(report.Benchmark{
		Name: "balance", Number: 7, Title: "Balance", About: about, Rounds: 3, Quick: 1,
		Modules: []string{"github.com/buraksezer/consistent"},
		Parts:   []string{zipfPart, figurePart, hotPart, membersPart}, QuickPart: zipfPart,
		Run: run,
	})
}

func run(ctx context.Context, r *report.Run) error {
	asked := slices.DeleteFunc(scenarios(), func(s scenario) bool { return !r.Wants(s.name) })
	steps := 0
	for _, s := range asked {
		steps += s.seeds(r.Rounds)
	}
	r.Expect(steps)
	for _, s := range asked {
		trials, err := s.try(ctx, s.seeds(r.Rounds), func(text string) { r.Step("%s", text) })
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		conclude(r.Result, s, trials)
	}
	return nil
}

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
		{nameBounded, newByLoad},
		{nameTight, newTight},
	}
}

// A scenario is a sequence of events in a pool of owners.
type scenario struct {
	name    string
	owners  int
	periods int // of 10 s
	load    func(seed uint64) (policylab.Workload, error)
	changes []policylab.Change
	// same: policies that move keys for balance start with the assignment of consistent
	// hashing.
	same bool
	once bool // with one seed
}

// The names of the scenarios, as the command line has them.
const (
	zipfPart    = "zipf"
	figurePart  = "figure10"
	hotPart     = "hot"
	membersPart = "members"
)

// minute is the number of periods in a minute.
const minute = 6

// The events, by period.
const (
	hotShare = 0.1         // share of the load of one key,
	hotFrom  = 4 * minute  // from this period on
	oneGoes  = 4 * minute  // an owner leaves
	oneComes = 8 * minute  // an owner joins
	rackGoes = 12 * minute // a fifth leaves at once, like the rack in PRS 7.2
	rackBack = 16 * minute // as many join
	rack     = 50
)

func scenarios() []scenario {
	return []scenario{
		{name: zipfPart, owners: 250, periods: 12 * minute, load: zipf(1e9)},
		{name: figurePart, owners: 500, periods: 60 * minute, load: zipf(1e7), same: true, once: true},
		{name: hotPart, owners: 100, periods: 12 * minute, load: heats},
		{
			name: membersPart, owners: 250, periods: 20 * minute, load: zipf(1e9),
			changes: []policylab.Change{{Period: oneGoes, Owners: -1}, {Period: oneComes, Owners: 1}, {Period: rackGoes, Owners: -rack}, {Period: rackBack, Owners: rack}},
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
	if period < hotFrom {
		return h.before.At(period)
	}
	return h.after.At(period)
}

// heats is zipf until one key becomes hot.
func heats(seed uint64) (policylab.Workload, error) {
	rest := policylab.Zipf{Alpha: policylab.DefaultAlpha, Keys: 1e9, Seed: seed}
	before, err := rest.Workload()
	if err != nil {
		return nil, err
	}
	after, err := policylab.Hot(hotShare, rest)
	return heating{before, after}, err
}

type trial struct {
	name  string
	seeds []*policylab.Result
}

// seeds returns the number of seeds for a number of rounds.
func (s scenario) seeds(rounds int) int {
	if s.once {
		return 1
	}
	return rounds
}

// try runs a scenario with all contestants and a number of seeds. Since nothing is timed, it
// uses all cores.
func (s scenario) try(ctx context.Context, seeds int, step func(string)) ([]trial, error) {
	all := contestants()
	trials := make([]trial, len(all))
	for i, c := range all {
		trials[i] = trial{c.name, make([]*policylab.Result, seeds)}
	}
	for seed := range seeds {
		load, err := s.load(uint64(seed + 1))
		if err != nil {
			return nil, err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i, c := range all {
			group.Go(func() (err error) {
				trials[i].seeds[seed], err = s.config(c, load, uint64(seed+1)).Run(ctx)
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
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
	config.Owners, config.Periods, config.Changes = s.owners, s.periods, s.changes
	config.KeepLoads = s.name == figurePart
	if s.same && (c.name == nameBalanced || c.name == nameAdaptive) {
		config.Start = partition.Consistent{}
	}
	return config
}
