package explore

import (
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// Durations in all scenarios.
const (
	lease   = time.Second
	epsilon = 200 * time.Millisecond
	drift   = 1.2
)

// processes is the size of the group. The first two are also proposers.
const (
	processes = 3
	proposers = 2
)

// A Scenario has the limits of an exploration, and the rates of clocks.
type Scenario struct {
	name   string
	Depth  int // steps
	Clocks [processes]Clock
	Passes []time.Duration // by which a step may advance the time

	// Detours limits the steps other than the one without a fault: a packet is reordered or delayed, perhaps
	// for ever; a process crashes. See [explorer.Unlimited].
	Detours int8
	// Limits of the kinds of steps.
	Crashes, Duplicates, Tries, Releases, Ticks int8
}

// A Clock has the rates of the monotonic and the wall clock of a process, and the offset of the wall clock.
type Clock struct {
	Mono, Wall float64
	Ahead      time.Duration
}

// Scenarios returns all scenarios, with limits of steps and detours.
func Scenarios(depth int, detours int8) []*Scenario {
	fair := Scenario{
		Depth: depth, Detours: detours, Passes: []time.Duration{lease / 4, lease * 7 / 10},
		Crashes: 1, Duplicates: 1, Tries: 1, Releases: 1, Ticks: 5,
	}
	var all []*Scenario
	for _, s := range []struct {
		name   string
		clocks [processes]Clock
	}{
		// The first process's clocks are the slowest, so that it uses its lease for longest; wall clocks are
		// within epsilon, monotonic rates within the bound.
		{"both", [processes]Clock{{0.92, 1, -epsilon / 2}, {1.104, 1, epsilon / 2}, {1.104, 1, epsilon / 2}}},
		// Only wall clocks are reliable: the monotonic clock of the first process is very slow, those of the
		// others very fast.
		{"wall", [processes]Clock{{0.3, 1, -epsilon / 2}, {3, 1, epsilon / 2}, {3, 1, epsilon / 2}}},
		// Only monotonic clocks are reliable: the wall clocks of the others are fast. That cannot be detected
		// within the duration of a lease.
		{"mono", [processes]Clock{{0.92, 1, 0}, {1.104, 1.7, 0}, {1.104, 1.7, 0}}},
	} {
		next := fair
		next.name, next.Clocks = s.name, s.clocks
		all = append(all, &next)
	}
	return all
}

// Explorations returns all scenarios for package explorer.
func Explorations(depth int, detours int8) []explorer.Exploration {
	return explorer.Explorations(Scenarios(depth, detours))
}

// Name returns the name of the scenario.
func (s *Scenario) Name() string { return s.name }

// Steps returns the maximum length of a path.
func (s *Scenario) Steps() int { return s.Depth }

// Worker returns the identity: states share no scratch space.
func (*Scenario) Worker() func(*state) *state { return func(st *state) *state { return st } }

func (*Scenario) Figures() []explorer.Figure {
	return []explorer.Figure{{Key: "leases", Text: "%d leases", Of: explorer.SumOfStates}} // that were acquired
}
