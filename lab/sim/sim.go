package sim

import (
	"io"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// notes count what machines note, by what it is.
type notes struct {
	owners, managers, lookups, elections, leases []uint64
}

func newNotes() notes {
	return notes{
		owners: make([]uint64, owner.Notables()), managers: make([]uint64, manager.Notables()),
		lookups: make([]uint64, lookup.Notables()), elections: make([]uint64, byrecord.Notables()),
		leases: make([]uint64, flease.EqualIDs+1),
	}
}

// initBranches names the branches that the world itself counts, so that those which
// are never reached are counted as well.
func (w *world) initBranches() {
	names := []string{
		"store: log rebased", "store: write fenced", "store: state moved", "store: state lost",
		"node: standby answers a lookup", "node: promise settled", "clock: at the slow end", "clock: at the fast end",
	}
	if w.cfg.Diskless {
		names = append(names, "council: forgotten", "node: census", "node: hasty takeover")
	}
	if w.cfg.Agents {
		names = append(names, "owner: promised", "owner: held back for a promise")
	}
	for _, name := range names {
		w.Branches[name] = 0
	}
}

// Run runs the world of a seed. The configuration must be valid.
func (c *Config) Run(seed uint64, text io.Writer) *engine.Result {
	w := newWorld(*c, seed, text)
	w.Guard(Crash, w.run)
	return w.result()
}

func (w *world) result() *engine.Result {
	r := w.Result()
	for i, n := range w.oracle.checks {
		if Invariant(i) != Crash && (Invariant(i) != Census || w.cfg.Diskless) && (Invariant(i) != NoLimping || !w.cfg.Diskless) {
			r.Checks[Invariant(i).String()] = n
		}
	}
	branches(r, "owner: ", w.notes.owners, owner.Notable.String)
	branches(r, "manager: ", w.notes.managers, manager.Notable.String)
	branches(r, "lookup: ", w.notes.lookups, lookup.Notable.String)
	if w.cfg.Diskless {
		for n := flease.Acquired; n <= flease.EqualIDs; n++ {
			r.Branches["lease: "+n.String()] = w.notes.leases[n]
		}
	} else {
		branches(r, "election: ", w.notes.elections, byrecord.Notable.String)
	}
	return r
}

func branches[N ~uint8](r *engine.Result, machine string, counts []uint64, name func(N) string) {
	for i, n := range counts {
		r.Branches[machine+name(N(i))] = n
	}
}

const restores = "only where stores are restored"

// defences are branches that only a bug elsewhere could reach, and why.
var defences = map[string]string{
	"election: dismissed":      "only where leaders are appointed",
	"election: outranked":      "only where leaders are appointed",
	"election: disbelieved":    "only where leaders are appointed",
	"election: forgotten":      restores,
	"manager: copy":            "no computer is copied",
	"manager: forgotten":       restores,
	"manager: log forgotten":   restores,
	"election: record copied":  restores,
	"owner: old grant refused": "a leader takes back a grant that it has not offered before it offers a later one",
}

// Unreachable reports whether only a bug elsewhere could reach a branch.
func (*Config) Unreachable(branch string) bool { return defences[branch] != "" }
