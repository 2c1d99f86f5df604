package explore

import (
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// Times of all scenarios.
const (
	lease   = time.Second
	epsilon = 200 * time.Millisecond
	drift   = 1.2
)

// processes is the size of the group. The first two are proposers, too.
const (
	processes = 3
	proposers = 2
)

// A Scenario is what may happen, and how the clocks go.
type Scenario struct {
	name   string
	Depth  int // steps
	Clocks [processes]Clock
	Passes []time.Duration // by which time may pass in a step

	// Detours is how often something else may happen than what would if nothing
	// were wrong: a letter overtakes another, or is held back, perhaps for ever;
	// a process dies. See [explorer.Unlimited].
	Detours int8
	// How often each may happen.
	Crashes, Duplicates, Tries, Releases, Ticks int8
}

// A Clock is how the clocks of a process go: the monotonic one at a rate, the
// wall clock at another and from another start.
type Clock struct {
	Mono, Wall float64
	Ahead      time.Duration
}

// Scenarios returns those that are explored, for a number of steps with a number
// of detours.
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
		// The first process's clocks are the slowest, so that it believes for
		// longest; wall clocks are within epsilon, monotonic rates within the bound.
		{"both", [processes]Clock{{0.92, 1, -epsilon / 2}, {1.104, 1, epsilon / 2}, {1.104, 1, epsilon / 2}}},
		// Only wall clocks can be trusted: the first one's monotonic clock hardly
		// moves, those of the others race.
		{"wall", [processes]Clock{{0.3, 1, -epsilon / 2}, {3, 1, epsilon / 2}, {3, 1, epsilon / 2}}},
		// Only monotonic clocks can be trusted: the wall clocks of the others race.
		// Within the time of a lease nobody can know.
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

// Name identifies the scenario.
func (s *Scenario) Name() string { return s.name }

// Steps is the number of steps that a way has at most.
func (s *Scenario) Steps() int { return s.Depth }

// Worker changes nothing: states share no scratch space.
func (*Scenario) Worker() func(*state) *state { return func(st *state) *state { return st } }

func (*Scenario) Figures() []explorer.Figure {
	return []explorer.Figure{{Key: "leases", Text: "%d leases", Of: explorer.SumOfStates}} // that were acquired
}
