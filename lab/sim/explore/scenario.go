package explore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// Durations in all scenarios. Leases are short relative to the TTL, and everything is renewed only twice in
// its duration, so that few steps do nothing.
const (
	lease = 4 * time.Second
	ttl   = 2 * time.Second
	drift = 1.2
)

func timing() protocol.Timing { return protocol.Timing{Lease: lease, Renew: lease / 2, Drift: drift} }

// The processes: two managers, then two owners, then a lookup, which only some scenarios have.
const (
	managers  = 2
	owners    = 2
	follower  = managers + owners // the lookup
	processes = follower + 1
)

// A Begin is an initial state.
type Begin uint8

// The initial states. All but the first are reached from the first without faults.
const (
	Dawn       Begin = iota // all processes have just been started, and there is no leader
	Joining                 // one owner has everything, and the other has just started
	Settled                 // each owner has a range
	Outage                  // the managers restart after an outage in which all leases were suspended
	Followed                // each owner has a range, and a lookup has the table
	Supervised              // each owner has a range and a supervisor, which reports a crash to both managers
	begins
)

var beginNames = [begins]string{"dawn", "joining", "settled", "outage", "followed", "supervised"}

func (b Begin) String() string { return beginNames[b] }

// A Rate is the speed of a clock, in thousandths of true time.
type Rate int64

// The ratio of fast and slow is nearly the drift bound.
const (
	slow Rate = 917
	even Rate = 1000
	fast Rate = 1100
)

// Clocks are the rates of the clocks of all processes.
type Clocks struct {
	Name  string
	Rates [processes]Rate
}

// clocks are the combinations that are explored. With slow clocks, owners use their leases for longest, and a
// leader its authority.
var clocks = []Clocks{
	{"even", [processes]Rate{even, even, even, even, even}},
	{"slow-owners", [processes]Rate{fast, fast, slow, slow, slow}},
	{"slow-leader", [processes]Rate{slow, fast, slow, slow, slow}},
}

// A Scenario is an initial state, the rates of clocks, and limits of an exploration.
type Scenario struct {
	From   Begin
	Clocks Clocks
	Depth  int // steps
	// Detours limits the steps other than the one without a fault. See [explorer.Unlimited].
	Detours int8
	// Limits of the kinds of faults: a process restarts; a message is duplicated; a process is stopped.
	Crashes, Duplicates, Pauses int8
}

// size returns the number of processes.
func (s *Scenario) size() int {
	if s.From == Followed {
		return processes
	}
	return follower
}

// Name returns the name of the scenario.
func (s *Scenario) Name() string { return s.From.String() + "/" + s.Clocks.Name }

// Steps returns the maximum length of a path.
func (s *Scenario) Steps() int { return s.Depth }

// Worker returns a function that gives a worker a kit of its own.
func (s *Scenario) Worker() func(*state) *state {
	k := newKit(s)
	return func(st *state) *state {
		mine := *st
		mine.kit = k
		return &mine
	}
}

// Figures returns the figures of a report.
func (*Scenario) Figures() []explorer.Figure {
	return []explorer.Figure{
		{Key: "leaders", Text: "up to %d leaders", Of: explorer.HighestOfStates}, // one after the other
		{Key: "changes", Text: "up to %d changes", Of: explorer.HighestOfStates}, // of the table
		{Key: "suspendedStates", Text: "%d states with suspended leases", Of: explorer.SumOfStates},
		{Key: "resumed", Text: "%d resumed", Of: explorer.SumOfSteps},          // steps that resume a suspended lease
		{Key: "refused", Text: "%d refused", Of: explorer.SumOfSteps},          // steps that end one
		{Key: "losses", Text: "%d losses at lookups", Of: explorer.SumOfSteps}, // steps in which a lookup reports one
		{Key: "deaths", Text: "%d deaths recorded", Of: explorer.SumOfSteps},   // steps that acknowledge a death notice
	}
}

// Explorations returns all scenarios for package explorer.
func Explorations(depth int, detours int8) []explorer.Exploration {
	return explorer.Explorations(Scenarios(depth, detours))
}

// Scenarios returns all scenarios, with limits of steps and detours.
func Scenarios(depth int, detours int8) []*Scenario {
	var all []*Scenario
	for b := range begins {
		for _, c := range clocks {
			all = append(all, &Scenario{
				From: b, Clocks: c, Depth: depth, Detours: detours, Crashes: 2, Duplicates: 1, Pauses: 1,
			})
		}
	}
	return all
}

// A swap is a permutation of process names.
type swap struct{ managers, owners bool }

// at returns the index of the process that has the name of process i after the swap.
func (s swap) at(i int) int {
	if i < managers && s.managers || i >= managers && i < follower && s.owners {
		return i ^ 1
	}
	return i
}

// swaps are all permutations; the rates of clocks determine which are symmetries.
var swaps = [...]swap{{}, {owners: true}, {managers: true}, {managers: true, owners: true}}

// symmetries returns the indices of the swaps that do not change a scenario: those of processes with equal
// clock rates.
func (s *Scenario) symmetries() []int {
	var out []int
	r := &s.Clocks.Rates
	for i, sw := range swaps {
		if (!sw.managers || r[0] == r[1]) && (!sw.owners || r[managers] == r[managers+1]) {
			out = append(out, i)
		}
	}
	return out
}
