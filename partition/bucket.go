package partition

import "time"

// A Bucket is a token bucket of moves: the share of all keys that may
// move for balancing. It fills at a constant rate, and holds at most the rate of two
// decisions: after an hour without moves, a decision must not move all
// keys at once.
//
// It is a value without a clock. The caller of a policy keeps
// one for each namespace:
//
//	b = b.After(time since the last decision)
//	in.Budget = b.Level()
//	... Assign ...
//	b = b.Spend(the share that moved for balance)
//
// Within any time d at most Churn*d/minute + 2*Churn*Every/minute of the keys
// move.
type Bucket struct {
	// Churn is the share of all keys that may move per minute, 0 to 1.
	Churn float64
	// Every is the usual interval of decisions. The capacity of the bucket is the amount
	// of two intervals.
	Every time.Duration

	level float64
}

// DefaultChurn is the default share of all keys that may move per minute.
const DefaultChurn = 0.09

// Level returns the share of all keys that may move now, 0 to 1: the Budget of an
// [Input].
func (b Bucket) Level() float64 { return b.level }

// After returns the bucket after a time d.
func (b Bucket) After(d time.Duration) Bucket {
	b.level = min(b.level+b.Churn*max(0, d).Minutes(), 2*b.Churn*b.Every.Minutes(), 1)
	return b
}

// Spend returns the bucket after a move of a share of all keys.
func (b Bucket) Spend(share float64) Bucket {
	b.level = max(0, b.level-share)
	return b
}
