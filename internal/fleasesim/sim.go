package fleasesim

import (
	"io"
	"runtime/debug"
	"time"

	"github.com/leasehold-dev/leasehold/internal/machine/flease"
)

// stats is what a world counts.
type stats struct {
	events, messages, bereavements uint64
	healed, taken                  time.Duration // the longest that it took
	faults                         [faults]uint64
	notices                        [256]uint64 // by flease.Notable
}

// A Result is how one world went.
type Result struct {
	Seed      uint64
	Kind      Kind
	Violation *Violation // nil if there was none
	Hash      uint64     // of the trace: the same for the same seed and configuration
	Simulated time.Duration
	Events    uint64
	Messages  uint64
	Healed    time.Duration     // from the end of faults until all that is wanted was held
	Taken     time.Duration     // from the death of holders until others were found
	Checks    map[string]uint64 // by invariant
	Faults    map[string]uint64 // by kind
	Notices   map[string]uint64 // by what machines said
}

// Run lets the world of a seed happen. If text is not nil, it is told what
// happens. The configuration must be valid.
func Run(cfg Config, seed uint64, text io.Writer) *Result {
	w := newWorld(cfg, seed, trace{text: text})
	w.runGuarded()
	return w.result()
}

// runGuarded turns a panic of a machine into a violation: in a real process it
// is a crash, which is safe, but it is a bug all the same.
func (w *world) runGuarded() {
	defer func() {
		if r := recover(); r != nil {
			w.failed = nil
			w.oracle.violated(NoCrash, "%v\n%s", r, debug.Stack())
		}
	}()
	w.run()
}

func (w *world) result() *Result {
	r := &Result{
		Seed: w.seed, Kind: w.kind, Violation: w.failed, Hash: w.trace.hash, Simulated: time.Duration(w.now - worldStart),
		Events: w.stats.events, Messages: w.stats.messages, Healed: w.stats.healed, Taken: w.stats.taken,
		Checks: map[string]uint64{}, Faults: map[string]uint64{}, Notices: map[string]uint64{},
	}
	for i, n := range w.oracle.checks {
		if Invariant(i) != NoCrash {
			r.Checks[Invariant(i).String()] = n
		}
	}
	for f, n := range w.stats.faults {
		r.Faults[Fault(f).String()] = n
	}
	for n := flease.Acquired; n <= flease.EqualIDs; n++ {
		r.Notices[n.String()] = w.stats.notices[n]
	}
	return r
}
