package keyindex_test

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// sorted returns keys as valid starts: with 0, sorted, without duplicates.
func sorted(keys []leasehold.Key) []leasehold.Key {
	keys = append(keys, 0)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// hashed starts are uniformly distributed, as with consistent hashing.
func hashed(r *rand.Rand, n int) []leasehold.Key {
	keys := make([]leasehold.Key, n-1)
	for i := range keys {
		keys[i] = leasehold.Key(r.Uint64())
	}
	return sorted(keys)
}

// dense starts are all in a tiny part of the key space, as with numbers that an application assigns
// in order.
func dense(r *rand.Rand, n int) []leasehold.Key {
	keys := make([]leasehold.Key, n-1)
	for i := range keys {
		keys[i] = 1<<40 + leasehold.Key(r.Uint64N(uint64(n)*1000))
	}
	return sorted(keys)
}

// clusters are starts in small, distant parts of the key space, as with consecutive numbers for
// each of a few hundred customers, and one start at the end.
func clusters(r *rand.Rand, n int) []leasehold.Key {
	keys := make([]leasehold.Key, n-1)
	for i := range keys {
		customer := leasehold.Key(r.Uint64N(uint64(n)/200 + 1))
		keys[i] = customer<<48 | leasehold.Key(r.Uint64N(1<<20))
	}
	return sorted(slices.Concat(keys, []leasehold.Key{1<<64 - 1}))
}

// nested starts are clusters within clusters: half of them in the first 2^-8 of the key space, half
// of these in the first 2^-8 of that, and so on.
func nested(r *rand.Rand, n int) []leasehold.Key {
	keys := make([]leasehold.Key, n-1)
	for i := range keys {
		depth := min(bits.TrailingZeros64(r.Uint64()), 5)
		keys[i] = leasehold.Key(r.Uint64() >> (8 * depth))
	}
	return sorted(keys)
}
