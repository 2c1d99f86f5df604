package bench

import (
	"fmt"
	"math/rand/v2"
)

// The size of the contest.
const (
	Servers   = 1000
	perServer = 64 // ranges, tokens
	asked     = 1 << 14
)

// A Contestant finds servers.
type Contestant struct {
	Name string
	// Run looks n names up. The loop is part of it, so that no call through a
	// variable is measured. It returns a number that depends on all answers, so
	// that no compiler leaves them out.
	Run func(n int) int
	// Close ends what the contestant started.
	Close func()
}

func nothing() {}

// address is where a server is.
func address(server int) string { return fmt.Sprintf("server-%04d.example:7000", server) }

// names returns what is looked up: more names than a branch predictor learns, in
// no order.
func names() []string {
	random := rand.New(rand.NewPCG(1, 2))
	out := make([]string, asked)
	for i := range out {
		out[i] = fmt.Sprintf("session-%012d", random.Uint64N(1_000_000_000_000)) // 20 bytes
	}
	return out
}

// Contestants returns all who take part. Leasehold is the first.
func Contestants() ([]Contestant, error) {
	var all []Contestant
	for _, start := range []func() (Contestant, error){
		startLookup, startIndex, startRing, startConsistent, startConsistentLarge,
	} {
		c, err := start()
		if err != nil {
			for _, started := range all {
				started.Close()
			}
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
