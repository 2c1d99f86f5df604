package fleasesim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/seeds"
)

// A Campaign is many worlds: one for each seed from First on.
type Campaign struct {
	Config   Config
	First    uint64
	Seeds    int
	Parallel int // worlds at a time; default 1
	// StopAfter ends the campaign early, after so many violations; default 100.
	StopAfter int
}

// A Summary is what came out of a campaign.
type Summary struct {
	Seeds     int // worlds that were run
	Failures  []Failure
	Simulated time.Duration
	Elapsed   time.Duration
	Events    uint64
	Messages  uint64
	Healed    time.Duration // the longest
	Taken     time.Duration // the longest
	Kinds     map[string]uint64
	Checks    map[string]uint64
	Faults    map[string]uint64
	Notices   map[string]uint64
	// Hash is made of the traces of all worlds, in no order: the same for the
	// same campaign, however many ran at a time.
	Hash uint64
}

// A Failure is a world in which something was violated.
type Failure struct {
	Seed uint64 `json:"seed"`
	*Violation
}

// Run runs the campaign until it is done or ctx ends; then it returns what there
// is so far.
func (c Campaign) Run(ctx context.Context) (*Summary, error) {
	if err := c.Config.Validate(); err != nil {
		return nil, err
	}
	if c.Seeds < 1 || c.Parallel < 0 || c.StopAfter < 0 {
		return nil, leasehold.Errorf("campaign", leasehold.Invalid, "", "%d seeds, %d at a time, stop after %d: want at least 1, 0 and 0", c.Seeds, c.Parallel, c.StopAfter)
	}
	if c.StopAfter == 0 {
		c.StopAfter = 100
	}
	start := time.Now()
	s := &Summary{Kinds: map[string]uint64{}, Checks: map[string]uint64{}, Faults: map[string]uint64{}, Notices: map[string]uint64{}}
	for r := range seeds.InOrder(ctx, c.First, c.Seeds, c.Parallel, func(seed uint64) *Result { return Run(c.Config, seed, nil) }) {
		s.add(r)
		if len(s.Failures) >= c.StopAfter {
			break
		}
	}
	s.Elapsed = time.Since(start)
	return s, nil
}

func (s *Summary) add(r *Result) {
	s.Seeds++
	s.Simulated += r.Simulated
	s.Events += r.Events
	s.Messages += r.Messages
	s.Healed, s.Taken = max(s.Healed, r.Healed), max(s.Taken, r.Taken)
	s.Kinds[r.Kind.String()]++
	h := trace{hash: r.Seed}
	h.mix(r.Hash, r.Events)
	s.Hash += h.hash
	for _, sum := range []struct{ into, from map[string]uint64 }{{s.Checks, r.Checks}, {s.Faults, r.Faults}, {s.Notices, r.Notices}} {
		for k, n := range sum.from {
			sum.into[k] += n
		}
	}
	if r.Violation != nil {
		s.Failures = append(s.Failures, Failure{r.Seed, r.Violation})
	}
}

// Speed is how many events happened in a second.
func (s *Summary) Speed() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Events) / s.Elapsed.Seconds()
}

// Missed names what should have happened and never did: then a campaign without
// violations does not prove much.
func (s *Summary) Missed() []string {
	var missed []string
	for _, counts := range []map[string]uint64{s.Checks, s.Faults, s.Notices} {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if counts[name] == 0 {
				missed = append(missed, name)
			}
		}
	}
	return missed
}

// Convincing says why a campaign without violations does not prove much.
func (s *Summary) Convincing() error {
	if missed := s.Missed(); len(missed) > 0 {
		return fmt.Errorf("this never happened: %q", missed)
	}
	return nil
}
