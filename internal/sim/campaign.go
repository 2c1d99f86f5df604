package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
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

	// StopAfter ends the campaign early, after so many violations; 0 means 100,
	// which is enough to see a pattern.
	StopAfter int
	// Progress, if set, is called now and then, from one goroutine at a time.
	Progress func(*Summary)
}

// A Summary is what came out of a campaign.
type Summary struct {
	Seeds     int // worlds that were run
	Failures  []Failure
	Simulated time.Duration
	Elapsed   time.Duration
	Events    uint64
	Messages  uint64
	Checks    map[string]uint64
	Faults    map[string]uint64
	Branches  map[string]uint64
	// Hash is made of the traces of all worlds, in no order: the same for the
	// same campaign, however many ran at a time.
	Hash uint64
}

// A Failure is a world in which something was violated.
type Failure struct {
	Seed uint64 `json:"seed"`
	*Violation
}

// Speedup is how much faster than real the simulated time went by.
func (s *Summary) Speedup() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return s.Simulated.Seconds() / s.Elapsed.Seconds()
}

// TotalChecks is how many times an invariant was checked.
func (s *Summary) TotalChecks() uint64 {
	var n uint64
	for _, c := range s.Checks {
		n += c
	}
	return n
}

// Run runs the campaign until it is done or ctx ends; then it returns what
// there is so far.
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
	s := &Summary{Checks: map[string]uint64{}, Faults: map[string]uint64{}, Branches: map[string]uint64{}}
	reported := start
	for r := range seeds.InOrder(ctx, c.First, c.Seeds, c.Parallel, func(seed uint64) *Result { return Run(c.Config, seed, nil) }) {
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
	return s, nil
}

// Digest is the result's part of a campaign's hash; the hash of a campaign of
// one world.
func (r *Result) Digest() uint64 {
	h := trace{hash: r.Seed}
	h.mix(r.Hash, r.Events)
	return h.hash
}

func (s *Summary) add(r *Result) {
	s.Seeds++
	s.Simulated += r.Simulated
	s.Events += r.Events
	s.Messages += r.Messages
	s.Hash += r.Digest()
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

const restores = "only where stores are restored"

// defences are branches that only a bug elsewhere could reach, and why.
var defences = map[string]string{
	"election: dismissed":      "only where leaders are appointed",
	"election: outranked":      "only where leaders are appointed",
	"election: disbelieved":    "only where leaders are appointed",
	"election: forgotten":      restores,
	"manager: copy":            "no computer is copied",
	"manager: forgotten":       restores,
	"manager: log forgotten":   restores,
	"election: record copied":  restores,
	"owner: old grant refused": "a leader takes back a grant that it has not offered before it offers a later one",
}

// Missed names the interesting branches that no world has reached.
func (s *Summary) Missed() []string {
	var missed []string
	for _, name := range slices.Sorted(maps.Keys(s.Branches)) {
		if s.Branches[name] == 0 && defences[name] == "" {
			missed = append(missed, name)
		}
	}
	return missed
}

// Convincing says why a campaign without violations does not prove much:
// because something that should have happened never did.
func (s *Summary) Convincing() error {
	if missed := s.Missed(); len(missed) > 0 {
		return fmt.Errorf("never reached: %s", strings.Join(missed, ", "))
	}
	for _, name := range FaultNames() {
		if s.Faults[name] == 0 && name != ManagerRelapse.String() && name != StoreRestore.String() {
			return fmt.Errorf("the fault %s never happened", name)
		}
	}
	for name, n := range s.Checks {
		if n == 0 {
			return fmt.Errorf("%s was never checked", name)
		}
	}
	return nil
}
