package nemesis

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

// Times are those of the cluster, by which strikes are longer or shorter.
type Times struct {
	Lease time.Duration
	Hold  time.Duration // of an owner's silence, after which its leases are granted to others
	TTL   time.Duration // of leaders
	Yield time.Duration // of the leader's silence, after which another leads
}

// A Setting decides which kinds of faults are possible.
type Setting struct {
	Shape  cluster.Shape
	Times  Times
	Other  bool // there is another build, to which processes can be upgraded
	Drift  bool // clocks have rates that can be chosen, and wall clocks can be set
	Beyond bool // the rates are beyond the drift bound
	Points bool // processes have failpoints
	Spare  bool // one process of each role is not ended
	Copied bool // the store has a copy which is old enough to be restored
}

// A Strike is one fault.
type Strike struct {
	Kind string        `json:"kind"`
	At   time.Duration `json:"at"`    // since the storm began
	For  time.Duration `json:"for"`   // until it is healed
	Pick uint64        `json:"pick"`  // chooses among those whom it may hit
	How  float64       `json:"level"` // how bad it is, from 0 to 1
}

// Plan draws a storm of n strikes of the kinds that are possible in a setting, or of the named ones.
// It lasts for the given time, or for the longest strike.
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

// pool returns the kinds that are possible in a setting, of the named ones if any are, each as
// often as its weight.
func pool(of []kind, in Setting, named []string) (all []kind) {
	for _, k := range of {
		if k.in(in) && (len(named) == 0 || slices.Contains(named, k.name)) {
			all = append(all, slices.Repeat([]kind{k}, k.weight)...)
		}
	}
	return all
}

// Kinds are the names of the kinds that are possible in a setting.
func Kinds(in Setting) []string {
	var names []string
	for _, k := range every() {
		if k.in(in) {
			names = append(names, k.name)
		}
	}
	return names
}

// A Fault is a kind of fault, for people.
type Fault struct {
	Name  string
	Text  string // what happens
	Takes string // the flags that it takes, empty if none
}

// All are all kinds of faults, whatever they take.
func All() (all []Fault) {
	for _, k := range every() {
		all = append(all, Fault{k.name, k.text, k.takes()})
	}
	return all
}

func every() []kind { return slices.Concat(kinds(), outages()) }
