package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/protocol"
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
	Begin  Begin
	Clocks Clocks
	Depth  int // steps
	// Detours is how often something else may happen than what would if nothing were
	// wrong. See [Unlimited].
	Detours int8
	// How often each may happen: a process dies and is started again; a message
	// arrives twice; a process stands still for as long as it takes.
	Crashes, Duplicates, Pauses int8
}

// Unlimited detours are all interleavings. Their number is such that they do not
// get far; a few detours on a long way get further.
const Unlimited int8 = -1

// Name is by which a scenario is found again.
func (s *Scenario) Name() string { return s.Begin.String() + "/" + s.Clocks.Name }

// Scenarios returns all that are explored, for a number of steps with a number of
// detours.
func Scenarios(depth int, detours int8) []Scenario {
	var all []Scenario
	for b := range begins {
		for _, c := range clocks {
			all = append(all, Scenario{
				Begin: b, Clocks: c, Depth: depth, Detours: detours, Crashes: 2, Duplicates: 1, Pauses: 1,
			})
		}
	}
	return all
}

// Find returns the scenario with a name among others.
func Find(all []Scenario, name string) (Scenario, error) {
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name() == name })
	if i < 0 {
		var names []string
		for i := range all {
			names = append(names, all[i].Name())
		}
		return Scenario{}, fmt.Errorf("there is no scenario %q: want one of %q", name, names)
	}
	return all[i], nil
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
