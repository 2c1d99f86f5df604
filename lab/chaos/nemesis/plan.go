package nemesis

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

// Times are the durations of the cluster that the durations of faults depend on.
type Times struct {
	Lease time.Duration
	Hold  time.Duration // silence of an owner after which its leases are granted to others
	TTL   time.Duration // of leaders
	Yield time.Duration // silence of the leader after which another manager leads
}

// A Setting determines which kinds of faults are possible.
type Setting struct {
	Shape  cluster.Shape
	Times  Times
	Other  bool // another build is available for upgrades
	Drift  bool // clocks have settable rates, and wall clocks can be set
	Beyond bool // the rates are beyond the drift bound
	Points bool // processes have failpoints
	Spare  bool // one process of each role is not ended
	Copied bool // the copy of the store is old enough to be restored
}

// A Strike is one fault.
type Strike struct {
	Kind string        `json:"kind"`
	At   time.Duration `json:"at"`    // since the start of the storm
	For  time.Duration `json:"for"`   // until it is healed
	Pick uint64        `json:"pick"`  // chooses among the possible victims
	How  float64       `json:"level"` // severity, from 0 to 1
}

// Plan draws a storm of n strikes of the kinds that are possible in a setting, or of the named ones. It has
// the given duration, or that of the longest strike.
func Plan(random *rand.Rand, in Setting, n int, lasts time.Duration, named []string) []Strike {
	pool := pool(kinds(), in, named)
	if len(pool) == 0 {
		return nil
	}
	var plan []Strike
	for range n {
		k := pool[random.IntN(len(pool))]
		s := Strike{Kind: k.name, Pick: random.Uint64(), How: random.Float64()}
		s.For = k.lasts(in.Times, random.Float64())
		s.At = time.Duration(random.Float64() * float64(max(0, lasts-s.For)))
		plan = append(plan, s)
	}
	slices.SortFunc(plan, func(a, b Strike) int { return int(a.At - b.At) })
	return plan
}

// pool returns the kinds that are possible in a setting, of the named ones if there are any, each repeated by
// its weight.
func pool(of []kind, in Setting, named []string) (all []kind) {
	for _, k := range of {
		if k.in(in) && (len(named) == 0 || slices.Contains(named, k.name)) {
			all = append(all, slices.Repeat([]kind{k}, k.weight)...)
		}
	}
	return all
}

// Kinds returns the names of the kinds that are possible in a setting.
func Kinds(in Setting) []string {
	var names []string
	for _, k := range every() {
		if k.in(in) {
			names = append(names, k.name)
		}
	}
	return names
}

// A Fault describes a kind of fault.
type Fault struct {
	Name  string
	Text  string // description
	Takes string // required flags, empty if none
}

// All returns all kinds of faults, also those that require flags.
func All() (all []Fault) {
	for _, k := range every() {
		all = append(all, Fault{k.name, k.text, k.takes()})
	}
	return all
}

func every() []kind { return slices.Concat(kinds(), outages()) }
