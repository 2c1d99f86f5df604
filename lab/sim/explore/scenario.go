package explore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// Times of all scenarios. Leases are short against the time of a leader, and everything
// is renewed just twice in its time, so that few steps go by in which nothing happens.
const (
	lease = 4 * time.Second
	ttl   = 2 * time.Second
	drift = 1.2
)

func timing() protocol.Timing { return protocol.Timing{Lease: lease, Renew: lease / 2, Drift: drift} }

// Who there is: two managers, then two owners.
const (
	managers  = 2
	owners    = 2
	processes = managers + owners
)

// A Begin is the state that an exploration begins in.
type Begin uint8

// The beginnings. All but the first are reached from there if nothing goes wrong.
const (
	Dawn    Begin = iota // all processes have just been started, and there is no leader
	Joining              // one owner has everything, and the other has just been started
	Settled              // each owner has a range
	Outage               // the managers restart after an outage in which all leases were suspended
	begins
)

var beginNames = [begins]string{"dawn", "joining", "settled", "outage"}

func (b Begin) String() string { return beginNames[b] }

// A Rate is how fast a clock runs, in thousandths of true time.
type Rate int64

// The rates. Slow and fast are nearly as far apart as the drift bound allows.
const (
	slow Rate = 917
	even Rate = 1000
	fast Rate = 1100
)

// Clocks are how fast the clocks of all processes run.
type Clocks struct {
	Name  string
	Rates [processes]Rate
}

// clocks are those that are tried. Owners that are slow believe in their leases for
// longest; a leader that is slow believes in its authority for longest.
var clocks = []Clocks{
	{"even", [processes]Rate{even, even, even, even}},
	{"slow-owners", [processes]Rate{fast, fast, slow, slow}},
	{"slow-leader", [processes]Rate{slow, fast, slow, slow}},
}

// A Scenario is where an exploration begins, how clocks go, and what may happen.
type Scenario struct {
	From   Begin
	Clocks Clocks
	Depth  int // steps
	// Detours is how often something else may happen than what would if nothing were
	// wrong. See [explorer.Unlimited].
	Detours int8
	// How often each may happen: a process dies and is started again; a message
	// arrives twice; a process stands still for as long as it takes.
	Crashes, Duplicates, Pauses int8
}

// Name is by which a scenario is found again.
func (s *Scenario) Name() string { return s.From.String() + "/" + s.Clocks.Name }

// Steps is the number of steps that a way has at most.
func (s *Scenario) Steps() int { return s.Depth }

// Worker gives each worker a kit of its own.
func (s *Scenario) Worker() func(*state) *state {
	k := newKit(s)
	return func(st *state) *state {
		mine := *st
		mine.kit = k
		return &mine
	}
}

// Figures are what a report counts besides states and steps.
func (*Scenario) Figures() []explorer.Figure {
	return []explorer.Figure{
		{Key: "leaders", Text: "up to %d leaders", Of: explorer.HighestOfStates}, // one after the other
		{Key: "changes", Text: "up to %d changes", Of: explorer.HighestOfStates}, // of the table
		{Key: "suspendedStates", Text: "%d states with suspended leases", Of: explorer.SumOfStates},
		{Key: "resumed", Text: "%d resumed", Of: explorer.SumOfSteps}, // steps that resume a suspended lease
		{Key: "refused", Text: "%d refused", Of: explorer.SumOfSteps}, // steps that end one
	}
}

// Explorations returns all scenarios for package explorer.
func Explorations(depth int, detours int8) []explorer.Exploration {
	return explorer.Explorations(Scenarios(depth, detours))
}

// Scenarios returns all that are explored, for a number of steps with a number of
// detours.
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

// A swap is a way to give processes each other's names.
type swap struct{ managers, owners bool }

// at is where the process that is called i is found.
func (s swap) at(i int) int {
	if i < managers && s.managers || i >= managers && s.owners {
		return i ^ 1
	}
	return i
}

// swaps are all of them; which ones change nothing depends on the clocks.
var swaps = [...]swap{{}, {owners: true}, {managers: true}, {managers: true, owners: true}}

// symmetries returns which swaps leave a scenario as it is: those of processes whose
// clocks run alike.
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
