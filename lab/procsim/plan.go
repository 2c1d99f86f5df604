package procsim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A plan is what a seed decides before a world begins.
type plan struct {
	diskless bool
	ttl      []time.Duration // of each manager
	drift    float64         // bound of the managers
	clocks   clockPlan
	latency  time.Duration // at least, one way
	jitter   time.Duration // at most, in addition
	spaces   []spacePlan
	faults   []fault // those that are injected
	duration time.Duration
	pause    time.Duration // between two faults, on average
}

// A clockPlan is how clocks differ.
type clockPlan struct {
	spread float64       // of the rates: within the drift bound
	apart  time.Duration // of wall clocks, at most
}

type spacePlan struct {
	name         leasehold.Namespace
	lease        time.Duration
	policy       string
	owners       int
	moving       bool // the owners are maps, and move their state
	lookups      int
	poll, stale  time.Duration
	conservative bool
}

// draw returns a plan in which all of the given faults are possible, if there are any.
func draw(r *rand.Rand, only []string) *plan {
	for range 100 {
		p := drawPlan(r)
		if len(only) == 0 {
			p.faults = p.someFaults(r)
			return p
		}
		for _, f := range faults {
			if slices.Contains(only, f.name) && p.allows(f) {
				p.faults = append(p.faults, f)
			}
		}
		if len(p.faults) == len(only) {
			return p
		}
	}
	panic(fmt.Sprintf("the faults %v do not exist, or not in the same world", only))
}

func drawPlan(r *rand.Rand) *plan {
	p := &plan{
		diskless: r.IntN(4) == 0, drift: 1.2, duration: between(r, time.Minute, 6*time.Minute),
		latency: between(r, 100*time.Microsecond, 2*time.Millisecond), clocks: clockPlan{spread: 0.08 * r.Float64()},
		pause: pick(r, 8*time.Second, 25*time.Second, 60*time.Second),
	}
	if r.IntN(3) == 0 {
		p.jitter = between(r, 0, 60*time.Millisecond)
	}
	p.clocks.apart = pick(r, 0, 200*time.Millisecond, 5*time.Second, 2*time.Minute, time.Hour, time.Hour)
	managers := pick(r, 1, 2, 3, 3)
	if p.diskless {
		managers = 3
		p.clocks.apart = min(p.clocks.apart, 200*time.Millisecond) // the bound epsilon is 250 ms or more
	}
	ttl := pick(r, time.Second, 2*time.Second, 2*time.Second, 4*time.Second)
	for range managers {
		p.ttl = append(p.ttl, ttl)
		if !p.diskless && r.IntN(3) == 0 {
			p.ttl[len(p.ttl)-1] = pick(r, time.Second, 2*time.Second, 3*time.Second)
		}
	}
	for _, name := range []leasehold.Namespace{"red", "blue"}[:pick(r, 1, 2)] {
		p.spaces = append(p.spaces, drawSpace(r, name))
	}
	for _, s := range p.spaces {
		p.jitter = min(p.jitter, s.lease/50) // a renewal takes some round trips
	}
	return p
}

func drawSpace(r *rand.Rand, name leasehold.Namespace) spacePlan {
	s := spacePlan{
		name: name, lease: pick(r, time.Second, 3*time.Second, 10*time.Second, 10*time.Second, 10*time.Second, 30*time.Second, 60*time.Second),
		policy: pick(r, "even", "balanced", "consistent"), owners: 1 + r.IntN(4), lookups: 1 + r.IntN(2),
		poll: pick(r, time.Second, 5*time.Second), conservative: r.IntN(4) == 0, moving: r.IntN(3) == 0,
	}
	if s.moving {
		s.policy = "even" // few moves
	}
	s.stale = s.poll * time.Duration(pick(r, 3, 6))
	return s
}

func (p *plan) allows(f fault) bool { return f.fits == nil || f.fits(p) }

// someFaults returns some kinds of faults: many at once hide rare ones.
func (p *plan) someFaults(r *rand.Rand) (chosen []fault) {
	var possible []fault
	for _, f := range faults {
		if p.allows(f) {
			possible = append(possible, slices.Repeat([]fault{f}, f.weight)...)
		}
	}
	for len(chosen) < 1+r.IntN(4) {
		if f := pick(r, possible...); !slices.ContainsFunc(chosen, func(c fault) bool { return c.name == f.name }) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
