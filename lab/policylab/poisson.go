package policylab

import (
	"math"
	"math/rand/v2"
)

// manyEvents is from where on a Poisson distribution is drawn as a normal one.
// Mean and variance are the same, and the skew that is lost, 1/sqrt(manyEvents),
// is hard to see in a sum of two counts; but drawing a Poisson number takes time
// in proportion to its mean, and there are millions to draw.
const manyEvents = 16

// poisson draws how many events happen where mean are expected.
func poisson(rng *rand.Rand, mean float64) float64 {
	switch {
	case mean <= 0:
		return 0
	case mean >= manyEvents:
		return max(0, math.Round(mean+math.Sqrt(mean)*rng.NormFloat64()))
	}
	// Inversion: walk up the distribution until its sum passes a number
	// between 0 and 1. The bound is for rounding, which could keep the sum
	// just below that number.
	draw, n := rng.Float64(), 0.0
	chance := math.Exp(-mean)
	for sum := chance; draw > sum && n < 8*manyEvents; sum += chance {
		n++
		chance *= mean / n
	}
	return n
}
