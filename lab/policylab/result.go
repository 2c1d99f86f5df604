package policylab

import "time"

// A Sample is the result of one period: the decision at its start, and the distribution of the true load to
// the owners. Shares are from 0 to 1. An owner's load is per weight, and the mean is that of all owners.
type Sample struct {
	Period int
	Owners int
	Ranges int     // of the assignment
	Load   float64 // of all keys, relative to the first period

	Moves  int     // ranges that changed their owner
	Moved  float64 // share of all keys in them
	Forced float64 // the part of it whose owner had left

	MaxOverMean float64 // load of the most loaded owner divided by the mean
	// Floor is the minimum of MaxOverMean for any assignment: the share of the hottest key on the strongest
	// owner, and at least 1.
	Floor float64
	// HottestOverMean is the load of the hottest key divided by the mean.
	HottestOverMean float64
	// MaxOverUnavoidable is the maximum of an owner's load divided by its fair share or, if that is more, by
	// the cost of its hottest key. It shows whether the other load is balanced if Floor is high.
	MaxOverUnavoidable float64
	OverTarget         int     // owners above the target
	Unowned            float64 // share of the load of unowned keys
}

// A Result is the result of a policy.
type Result struct {
	Policy  string
	Target  float64
	Period  time.Duration
	Samples []Sample
	// Loads has, if KeepLoads is set, the load of each owner in each period. Owners that joined later are
	// missing at the end of earlier ones.
	Loads [][]float32
}

// First returns the first sample.
func (r *Result) First() Sample { return r.Samples[0] }

// Last returns the last sample.
func (r *Result) Last() Sample { return r.Samples[len(r.Samples)-1] }

// PeriodsToTarget returns the first period after which no owner is above the target; -1 if one is at the end.
func (r *Result) PeriodsToTarget() int {
	first := -1
	for i := len(r.Samples) - 1; i >= 0 && r.Samples[i].MaxOverMean <= r.Target; i-- {
		first = i
	}
	return first
}

// KeysMoved returns the share of all keys that changed their owner, in all periods together; a key that moved
// twice counts twice. Forced is the part whose owners had left.
func (r *Result) KeysMoved() (moved, forced float64) {
	for _, s := range r.Samples {
		moved += s.Moved
		forced += s.Forced
	}
	return moved, forced
}

// stableTime is the time at the end of a run in which a stable pool has no moves.
const stableTime = 10 * time.Minute

// MovesAfterStable returns the number of moves in the last ten minutes, or in all periods if the run is
// shorter.
func (r *Result) MovesAfterStable() int {
	moves := 0
	for _, s := range r.Samples[len(r.Samples)-min(len(r.Samples), r.stablePeriods()):] {
		moves += s.Moves
	}
	return moves
}

func (r *Result) stablePeriods() int { return int((stableTime + r.Period - 1) / r.Period) }
