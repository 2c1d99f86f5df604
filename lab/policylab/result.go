package policylab

import "time"

// A Sample is one period: what was decided when it began, and how its load, the
// true one, lay on the owners. Shares are from 0 to 1. An owner's load is taken
// per weight, and the mean is that of the pool.
type Sample struct {
	Period int
	Owners int
	Ranges int     // of the assignment
	Load   float64 // of all keys, against the first period's

	Moves  int     // stretches of keys that went from one owner to another
	Moved  float64 // the share of all keys in them
	Forced float64 // that part of it whose owner had left

	MaxOverMean float64 // the most loaded owner against the mean
	// Floor is what no assignment brings MaxOverMean below: what the hottest
	// key makes of it on the strongest owner, and 1.
	Floor float64
	// HottestOverMean is the hottest key's load against the mean.
	HottestOverMean float64
	// MaxOverUnavoidable is the greatest load of an owner against what is its
	// fair share or, if that is more, what its hottest key costs alone. It
	// shows whether the rest is balanced where Floor is high.
	MaxOverUnavoidable float64
	OverTarget         int     // owners above the target
	Unowned            float64 // the share of the load on keys of nobody
}

// A Result is how a policy did.
type Result struct {
	Policy  string
	Target  float64
	Period  time.Duration
	Samples []Sample
	// Loads has, if they were to be kept, how busy each owner was in each
	// period. Owners that joined later are missing at the end of earlier ones.
	Loads [][]float32
}

// First is the sample at the beginning.
func (r *Result) First() Sample { return r.Samples[0] }

// Last is the sample at the end.
func (r *Result) Last() Sample { return r.Samples[len(r.Samples)-1] }

// PeriodsToTarget returns the first period from which on no owner is above the
// target; -1 if there is one at the end.
func (r *Result) PeriodsToTarget() int {
	first := -1
	for i := len(r.Samples) - 1; i >= 0 && r.Samples[i].MaxOverMean <= r.Target; i-- {
		first = i
	}
	return first
}

// KeysMoved is the share of all keys that changed their owner, in all periods
// together; a key that moved twice counts twice. Of that, forced is the part
// whose owners had left.
func (r *Result) KeysMoved() (moved, forced float64) {
	for _, s := range r.Samples {
		moved += s.Moved
		forced += s.Forced
	}
	return moved, forced
}

// stableTime is how long a pool should have nothing to do at the end.
const stableTime = 10 * time.Minute

// MovesAfterStable counts the moves of the last ten minutes, or of all that
// there is of them after period 0.
func (r *Result) MovesAfterStable() int {
	moves := 0
	for _, s := range r.Samples[len(r.Samples)-min(len(r.Samples), r.stablePeriods()):] {
		moves += s.Moves
	}
	return moves
}

func (r *Result) stablePeriods() int { return int((stableTime + r.Period - 1) / r.Period) }
