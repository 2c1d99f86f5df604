package fleasesim

import (
	"io"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// Run runs the world of a seed. The configuration must be valid.
func (c *Config) Run(seed uint64, text io.Writer) *engine.Result {
	w := newWorld(*c, seed, text)
	w.Guard(NoCrash, w.run)
	return w.result()
}

func (w *world) result() *engine.Result {
	r := w.Result()
	r.Kind = w.kind.String()
	for i, n := range w.oracle.checks {
		if Invariant(i) != NoCrash {
			r.Checks[Invariant(i).String()] = n
		}
	}
	for n := flease.Acquired; n <= flease.EqualIDs; n++ {
		r.Branches[n.String()] = w.notices[n]
	}
	return r
}

// Unreachable reports whether campaigns are not expected to reach a branch.
func (*Config) Unreachable(string) bool { return false }
