package sim

import (
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/leasehold-dev/leasehold/internal/machine/election"
	"github.com/leasehold-dev/leasehold/internal/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/machine/owner"
)

// stats is what a world counts.
type stats struct {
	events, messages, dropped, storeOps          uint64
	changes, takeovers, fenced, relayed, settles uint64
	slowClocks, fastClocks, moved, lost          uint64
	faults                                       [faults]uint64
	owners                                       []uint64 // by owner.Notable
	managers                                     []uint64
	lookups                                      []uint64
	elections                                    []uint64
	forgotten, censuses, hasty, rebased          uint64
	promised, kept                               uint64 // by owners, to those who rely on it
	leases                                       [flease.EqualIDs + 1]uint64
}

func newStats() stats {
	return stats{
		owners: make([]uint64, owner.Notables()), managers: make([]uint64, manager.Notables()),
		lookups: make([]uint64, lookup.Notables()), elections: make([]uint64, election.Notables()),
	}
}

// A Result is how one world went.
type Result struct {
	Seed      uint64
	Violation *Violation // nil if there was none
	Hash      uint64     // of the trace: the same for the same seed and configuration
	Simulated time.Duration
	Events    uint64
	Messages  uint64
	Checks    map[string]uint64 // by invariant
	Faults    map[string]uint64 // by kind
	Branches  map[string]uint64 // by what machines noted: "owner: race"
}

// Run lets the world of a seed happen. If text is not nil, it is told what
// happens. The configuration must be valid.
func Run(cfg Config, seed uint64, text io.Writer) *Result {
	w := newWorld(cfg, seed, trace{text: text})
	start := w.now
	w.runGuarded()
	return w.result(time.Duration(w.now - start))
}

// runGuarded turns a panic of a machine into a violation: in a real process it
// is a crash, which is safe, but it is a bug all the same.
func (w *world) runGuarded() {
	defer func() {
		if r := recover(); r != nil {
			w.failed = nil
			w.oracle.violated(Crash, "%v\n%s", r, debug.Stack())
		}
	}()
	w.run()
}

func (w *world) result(simulated time.Duration) *Result {
	r := &Result{
		Seed: w.seed, Violation: w.failed, Hash: w.trace.hash, Simulated: simulated,
		Events: w.stats.events, Messages: w.stats.messages,
		Checks: map[string]uint64{}, Faults: map[string]uint64{}, Branches: map[string]uint64{},
	}
	for i, n := range w.oracle.checks {
		if Invariant(i) != Crash && (Invariant(i) != Census || w.cfg.Diskless) && (Invariant(i) != NoLimping || !w.cfg.Diskless) {
			r.Checks[Invariant(i).String()] = n
		}
	}
	for f, n := range w.stats.faults {
		if n > 0 {
			r.Faults[Fault(f).String()] = n
		}
	}
	branches(r.Branches, "owner", w.stats.owners, owner.Notable.String)
	branches(r.Branches, "manager", w.stats.managers, manager.Notable.String)
	branches(r.Branches, "lookup", w.stats.lookups, lookup.Notable.String)
	if w.cfg.Diskless {
		for n := flease.Acquired; n <= flease.EqualIDs; n++ {
			r.Branches["lease: "+n.String()] = w.stats.leases[n]
		}
		r.Branches["council: forgotten"] = w.stats.forgotten
		r.Branches["node: census"] = w.stats.censuses
		r.Branches["node: hasty takeover"] = w.stats.hasty
	} else {
		branches(r.Branches, "election", w.stats.elections, election.Notable.String)
	}
	if w.cfg.Agents {
		r.Branches["owner: promised"] = w.stats.promised
		r.Branches["owner: held back for a promise"] = w.stats.kept
	}
	r.Branches["store: log rebased"] = w.stats.rebased
	r.Branches["store: write fenced"] = w.stats.fenced
	r.Branches["node: standby answers a lookup"] = w.stats.relayed
	r.Branches["node: promise settled"] = w.stats.settles
	r.Branches["store: state moved"] = w.stats.moved
	r.Branches["store: state lost"] = w.stats.lost
	r.Branches["clock: at the slow end"] = w.stats.slowClocks
	r.Branches["clock: at the fast end"] = w.stats.fastClocks
	return r
}

func branches[N ~uint8](into map[string]uint64, machine string, counts []uint64, name func(N) string) {
	for i, n := range counts {
		into[fmt.Sprintf("%s: %s", machine, name(N(i)))] = n
	}
}
