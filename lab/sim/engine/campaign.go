package engine

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A Simulation is the configuration of a simulator's worlds.
type Simulation interface {
	// Validate sets defaults and returns an error for invalid values.
	Validate() error
	// Run runs the world of a seed, and writes a trace to text unless it is nil. The
	// configuration must be valid.
	Run(seed uint64, text io.Writer) *Result
	// Unreachable reports whether campaigns are not expected to reach a branch.
	Unreachable(branch string) bool
}

// A Result is the result of one world.
type Result struct {
	Seed      uint64
	Kind      string     // of the world, if the simulator has several
	Violation *Violation // nil if there was none
	Hash      Hash       // of the trace: the same for the same seed and configuration
	Counts
}

// Counts are the counts of a world, or of all worlds of a campaign.
type Counts struct {
	Simulated        time.Duration
	Events, Messages uint64
	Checks           map[string]uint64 // by invariant
	Faults           map[string]uint64 // injected, by kind
	Branches         map[string]uint64 // taken, by name: "owner: race"
}

func newCounts() Counts {
	return Counts{Checks: map[string]uint64{}, Faults: map[string]uint64{}, Branches: map[string]uint64{}}
}

// Digest is the result's part of a campaign's hash. It is the hash of a campaign of one world.
func (r *Result) Digest() uint64 {
	h := Hash(r.Seed)
	h.Mix(uint64(r.Hash), r.Events)
	return uint64(h)
}

// A Campaign runs many worlds: one for each seed from First on.
type Campaign struct {
	Simulation Simulation
	First      uint64
	Seeds      int
	Parallel   int // concurrent worlds; default 1

	// StopAfter ends the campaign after that many violations; 0 means 100, enough for a pattern.
	StopAfter int
	// Progress, if set, is called several times a second, from one goroutine at a time.
	Progress func(*Summary)
}

// A Summary is the result of a campaign.
type Summary struct {
	Counts
	Seeds    int // number of worlds that were run
	Failures []Failure
	Elapsed  time.Duration
	Kinds    map[string]uint64 // of worlds
	// Missed are the branches that no world has reached, except for unreachable ones.
	Missed []string
	// Hash is the sum of the digests of all worlds: it does not depend on their order or on Parallel.
	Hash uint64
}

// A Failure is a world with a violation.
type Failure struct {
	Seed uint64 `json:"seed"`
	*Violation
}

// Speedup returns simulated time by elapsed time.
func (s *Summary) Speedup() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return s.Simulated.Seconds() / s.Elapsed.Seconds()
}

// TotalChecks returns the number of checks of all invariants.
func (s *Summary) TotalChecks() uint64 {
	var n uint64
	for _, c := range s.Checks {
		n += c
	}
	return n
}

// Run runs the campaign until it is complete or ctx ends, and returns the result so far.
func (c Campaign) Run(ctx context.Context) (*Summary, error) {
	if err := c.Simulation.Validate(); err != nil {
		return nil, err
	}
	if c.Seeds < 1 || c.Parallel < 0 || c.StopAfter < 0 {
		return nil, leasehold.Errorf("campaign", leasehold.ErrInvalid, "", "%d seeds, %d at a time, stop after %d: the minima are 1, 0 and 0", c.Seeds, c.Parallel, c.StopAfter)
	}
	if c.StopAfter == 0 {
		c.StopAfter = 100
	}
	start := time.Now()
	s := &Summary{Counts: newCounts(), Kinds: map[string]uint64{}}
	reported := start
	for r := range inOrder(ctx, c.First, c.Seeds, c.Parallel, func(seed uint64) *Result { return c.Simulation.Run(seed, nil) }) {
		s.add(r)
		if now := time.Now(); c.Progress != nil && now.Sub(reported) > 100*time.Millisecond {
			reported, s.Elapsed = now, now.Sub(start)
			c.Progress(s)
		}
		if len(s.Failures) >= c.StopAfter {
			break
		}
	}
	s.Elapsed = time.Since(start)
	for _, name := range slices.Sorted(maps.Keys(s.Branches)) {
		if s.Branches[name] == 0 && !c.Simulation.Unreachable(name) {
			s.Missed = append(s.Missed, name)
		}
	}
	return s, nil
}

func (s *Summary) add(r *Result) {
	s.Seeds++
	s.Simulated += r.Simulated
	s.Events += r.Events
	s.Messages += r.Messages
	s.Hash += r.Digest()
	s.Kinds[r.Kind]++
	for _, sum := range []struct{ into, from map[string]uint64 }{
		{s.Checks, r.Checks}, {s.Faults, r.Faults}, {s.Branches, r.Branches},
	} {
		for k, n := range sum.from {
			sum.into[k] += n
		}
	}
	if r.Violation != nil {
		s.Failures = append(s.Failures, Failure{r.Seed, r.Violation})
	}
}

// Convincing returns an error if a campaign without violations has too little coverage: a branch was not
// reached, a kind of fault not injected, or an invariant not checked.
func (s *Summary) Convincing(kinds Kinds) error {
	if len(s.Missed) > 0 {
		return fmt.Errorf("never reached: %s", strings.Join(s.Missed, ", "))
	}
	for name := range kinds.Default() {
		if s.Faults[name] == 0 {
			return fmt.Errorf("the fault %s was never injected", name)
		}
	}
	for name, n := range s.Checks {
		if n == 0 {
			return fmt.Errorf("%s was never checked", name)
		}
	}
	return nil
}
