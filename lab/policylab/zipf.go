package policylab

import (
	"math"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/leasehold-dev/leasehold"
)

// Zipf is the workload of PRS 7.3: of Keys keys, the one of rank r costs
// 1/r^Alpha, and all together cost 1. The keys are where the hash of their
// names puts them.
//
// How many keys there are decides what balance is possible at all. The first
// costs 1/H of everything, where H is the sum of all 1/r^Alpha: with Alpha 0.8
// that is 1/311 for 1e9 keys and 1/75 for 1e6. As soon as it is more than an
// owner's fair share, the owner of that key has more than the mean whatever
// else it has: see [Sample].Floor. With the default, that is so for more than
// 311 owners; up to there it is the policy that is judged, and not the floor.
//
// PRS does not say how many keys it had. Its figure 10 begins with several
// servers at more than twice the mean, and some are left at the end. With
// consistent hashing over 250 owners, 1e9 keys put none there at first, 1e8 put
// 1, 1e7 put 2 and 1e6 put 4; over 500 owners it is 1, 3, 4 and 9. So to redraw
// that figure, take fewer keys.
//
// Only the first million keys are real. The others are spread evenly over the
// key space: with Alpha 0.8 each costs less than 1/60,000 of the first, and the
// hash scatters so many of them over every range that what they cost together
// is as good as even.
type Zipf struct {
	Alpha float64 // 0 to MaxAlpha; 0 means that all keys cost the same
	Keys  float64 // 1 to MaxKeys, a whole number
	Seed  uint64  // changes the places of the keys
}

// Limits and defaults of a Zipf.
const (
	DefaultAlpha = 0.8
	MaxAlpha     = 10
	DefaultKeys  = 1e9
	MaxKeys      = 1e18
)

// realKeys is the number of keys that have a place of their own.
const realKeys = 1_000_000

// Workload returns the workload that z describes.
func (z Zipf) Workload() (Workload, error) {
	load, err := z.load(1)
	if err != nil {
		return nil, err
	}
	return steady{load}, nil
}

// load returns the load of z with all keys together costing total.
func (z Zipf) load(total float64) (*Load, error) {
	const op = "zipf workload"
	switch { // so written, NaN fails
	case !(z.Alpha >= 0 && z.Alpha <= MaxAlpha):
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "alpha", "is %v, want 0 to %d", z.Alpha, MaxAlpha)
	case !(z.Keys >= 1 && z.Keys <= MaxKeys) || z.Keys != math.Trunc(z.Keys):
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "keys", "is %v, want a whole number from 1 to %g", z.Keys, float64(MaxKeys))
	}
	keys := make([]KeyCost, z.real())
	sum := 0.0
	for i := len(keys) - 1; i >= 0; i-- { // the small ones first, for precision
		keys[i] = KeyCost{z.place(i + 1), math.Pow(float64(i+1), -z.Alpha)}
		sum += keys[i].Cost
	}
	tail := integral(z.Alpha, float64(len(keys))+0.5, z.Keys+0.5)
	scale := total / (sum + tail)
	for i := range keys {
		keys[i].Cost *= scale
	}
	return newLoad(keys, []RangeCost{{leasehold.All, tail * scale}}), nil
}

// real is how many keys have a place of their own. Where there are many and all
// cost the same, none needs one.
func (z Zipf) real() int {
	if z.Alpha == 0 && z.Keys > realKeys {
		return 0
	}
	return int(min(z.Keys, realKeys))
}

// place is the key of a rank, counted from 1. Rank 0 is the place of a key
// that is not part of the distribution.
func (z Zipf) place(rank int) leasehold.Key {
	var text [64]byte
	name := append(strconv.AppendUint(text[:0], z.Seed, 10), '/')
	return leasehold.Key(xxhash.Sum64(strconv.AppendInt(name, int64(rank), 10)))
}

// integral is that of x^-alpha. From half below to half above, it is what the
// ranks between add up to, with an error of 1e-13 beyond the first million.
func integral(alpha, from, to float64) float64 {
	if to <= from {
		return 0
	}
	power, ratio := 1-alpha, math.Log(to/from)
	if power == 0 {
		return ratio
	}
	return math.Pow(from, power) * math.Expm1(power*ratio) / power // exact where power is near 0, too
}
