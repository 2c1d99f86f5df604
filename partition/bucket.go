package partition

import "time"

// A Bucket is a budget of moves over time: which share of all keys may change
// its owner for the sake of balance. It fills steadily, and what one decision
// leaves, the next may use, but no more than that: a pool that was quiet for an
// hour must not move everything at once.
//
// It is a plain value with no clock of its own. Whoever calls a policy keeps
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
	// Churn is the share of all keys that may move in a minute, 0 to 1.
	Churn float64
	// Every is the usual time between two decisions. The bucket holds what
	// fills it in twice that time.
	Every time.Duration

	level float64
}

// DefaultChurn is the share of all keys that may move in a minute where nothing
// else is set.
const DefaultChurn = 0.09

// Level is the share of all keys that may move now, 0 to 1: the Budget of an
// [Input].
func (b Bucket) Level() float64 { return b.level }

// After returns the bucket when so much time has passed.
func (b Bucket) After(d time.Duration) Bucket {
	b.level = min(b.level+b.Churn*max(0, d).Minutes(), 2*b.Churn*b.Every.Minutes(), 1)
	return b
}

// Spend returns the bucket when that share of all keys has moved.
func (b Bucket) Spend(share float64) Bucket {
	b.level = max(0, b.level-share)
	return b
}
