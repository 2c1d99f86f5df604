package loadgen

import (
	"fmt"
	"math/rand/v2"
)

// Asked is the number of keys or names that contestants cycle through: too many for a branch
// predictor.
const Asked = 1 << 14

// Names returns names of 20 bytes, unsorted.
func Names(n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("session-%012d", random.Uint64N(1_000_000_000_000))
	}
	return names
}
