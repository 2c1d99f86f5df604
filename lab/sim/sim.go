package sim

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// countFromZero adds the checks and branches of the world with count 0, so that a report includes those that
// are never reached.
func (w *world) countFromZero() {
	engine.Zero(w.Checks, I1Exclusive, I2Generations, I3Held, I4Losses, I5Tables, I6Progress, I7Moved, I8Bounds, I9Fencing, I10Isolation, I11Needless, OneLeader, Workers)
	engine.Zero(w.Checks, Proven...)
	engine.Zero(w.Branches,
		"store: log rebased", "store: write fenced", "store: state moved", "store: state lost",
		"node: standby answers a lookup", "node: promise settled", "clock: at the slow end", "clock: at the fast end")
	zeroNotes[owner.Notable](w, "owner: ", owner.Notables())
	zeroNotes[manager.Notable](w, "manager: ", manager.Notables())
	zeroNotes[lookup.Notable](w, "lookup: ", lookup.Notables())
	if w.cfg.Diskless {
		engine.Zero(w.Checks, Census)
		engine.Zero(w.Branches, "memcatalog: catalog lost", "node: census", "node: hasty takeover")
		for n := flease.Acquired; n <= flease.EqualIDs; n++ {
			engine.Zero(w.Branches, "lease: "+n.String())
		}
	} else {
		engine.Zero(w.Checks, NoLimping)
		zeroNotes[byrecord.Notable](w, "election: ", byrecord.Notables())
	}
	if w.cfg.Supervised {
		engine.Zero(w.Checks, I12Death)
		engine.Zero(w.Branches, "death: at the end")
		for _, name := range outcomeNames {
			engine.Zero(w.Branches, "death: "+name)
		}
	}
	if w.cfg.Agents {
		engine.Zero(w.Branches, "owner: promised", "owner: held back for a promise")
	}
}

func zeroNotes[N interface {
	~uint8
	String() string
}](w *world, machine string, n int) {
	for i := range n {
		engine.Zero(w.Branches, machine+N(i).String())
	}
}

// note counts a note of a machine as a branch.
func (w *world) note(machine string, what interface{ String() string }) {
	w.Branches[machine+what.String()]++
}

// setFields formats the fields of a note that are not zero, with their names. It formats only when a trace is written.
type setFields struct{ note any }

func (f setFields) String() string {
	var b strings.Builder
	v := reflect.ValueOf(f.note)
	fmt.Fprint(&b, v.Field(0)) // What
	for i := 1; i < v.NumField(); i++ {
		if !v.Field(i).IsZero() {
			fmt.Fprintf(&b, " %s=%v", v.Type().Field(i).Name, v.Field(i))
		}
	}
	return b.String()
}

// Run runs the world of a seed, and writes a trace to text if that is not nil. The configuration must be valid.
func (c *Config) Run(seed uint64, text io.Writer) *engine.Result {
	w := newWorld(*c, seed, text)
	return w.Guard(w.run)
}

const (
	restores    = "only with restored stores"
	supervisors = "only with supervisors"
)

// defences are branches that no world reaches unless another part has a bug, and the reason.
var defences = map[string]string{
	"election: dismissed":           "only with appointed leaders",
	"election: outranked":           "only where leaders are appointed",
	"election: disbelieved":         "only where leaders are appointed",
	"election: history lost":        restores,
	"manager: copy":                 "only with copied processes",
	"manager: died":                 supervisors,
	"manager: late message":         supervisors,
	"manager: death notice refused": supervisors,
	"manager: history lost":         restores,
	"manager: log lost":             restores,
	"election: record copied":       restores,
	"owner: old grant refused":      "a leader withdraws an unsent grant before it sends a later one",
}

// Unreachable reports whether a branch is one of defences.
func (*Config) Unreachable(branch string) bool { return defences[branch] != "" }
