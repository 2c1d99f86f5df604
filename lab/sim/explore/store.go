package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim"
	"github.com/leasehold-dev/leasehold/partition"
)

const namespace leasehold.Namespace = "ns"

// A store is the linearizable store of the managers. It is immutable.
type store struct {
	record  storage.Record
	changes []table.Change
	tables  []*table.Table // by LSN
	digests digests
}

type request struct {
	term leasehold.Term
	what any // byrecord.Read, byrecord.Swap, manager.Commit, manager.ReadEnd, managerproc.Load, managerproc.LoadCatalog
}

func newStore() *store { return &store{tables: []*table.Table{table.New()}} }

func (r *request) unanswered() managerproc.Event { return sim.Unanswered(namespace, r.term, r.what) }

func (st *state) serve(r *request) managerproc.Event {
	s := st.store
	end := leasehold.LSN(len(s.changes))
	switch what := r.what.(type) {
	case byrecord.Read:
		return managerproc.Election{Event: byrecord.Seen{Record: s.record, Uptime: st.uptime()}}
	case byrecord.Swap:
		return managerproc.Election{Event: st.swapRecord(what)}
	case manager.Commit:
		return managerproc.Manager{Namespace: namespace, Term: r.term, Event: manager.Committed{Outcome: st.commit(what.Batch)}}
	case manager.ReadEnd:
		return managerproc.Manager{Namespace: namespace, Term: r.term, Event: manager.LogEnd{Term: s.record.Term, LSN: end}}
	case managerproc.Load:
		return managerproc.Loaded{Namespace: namespace, Term: r.term, State: &storage.State{Term: s.record.Term, Changes: slices.Clip(s.changes)}}
	case managerproc.LoadCatalog:
		return managerproc.Catalogued{Term: r.term, Catalog: catalog(s.record.Term)}
	}
	panic(fmt.Sprintf("invalid store request %T", r.what))
}

// catalog returns the catalog with the namespace, as read in a leader's term.
func catalog(term leasehold.Term) *storage.Catalog {
	t := timing()
	return &storage.Catalog{Version: 1, Term: term, Namespaces: []storage.Namespace{
		{Name: namespace, Lease: t.Lease, Renew: t.Renew, Drift: t.Drift, MaxOwners: 2 * owners},
	}}
}

func (st *state) swapRecord(swap byrecord.Swap) byrecord.Swapped {
	s := st.store
	if swap.Prev != s.record.Version {
		return byrecord.Swapped{Swap: swap, Outcome: storage.Conflict}
	}
	next := *s
	next.record = swap.New
	next.record.Version = s.record.Version + 1
	st.putStore(&next)
	st.notify(next.record)
	return byrecord.Swapped{Swap: swap, Outcome: storage.Done, Version: next.record.Version}
}

// notify is the watch: managers that do not lead receive a new record.
func (st *state) notify(r storage.Record) {
	for i := range managers {
		if p := st.procs[i]; p != nil && managerNames[i] != r.Leader {
			st.post(&message{to: i, epoch: p.epoch, what: managerproc.Election{Event: byrecord.Seen{Record: r, Uptime: st.uptime()}}})
		}
	}
}

// commit appends a batch if its conditions hold. It is I2 at the store: generations strictly rise, and a held
// range is not granted to another owner.
func (st *state) commit(b *storage.Batch) storage.Outcome {
	s := st.store
	if b.Term != s.record.Term || b.Prev != leasehold.LSN(len(s.changes)) {
		return storage.Conflict
	}
	if b.Base != nil {
		st.violated(sim.I2Generations, "the log is rebased, but no store is restored here")
		return storage.Conflict
	}
	next := *s
	next.changes = slices.Concat(s.changes, b.Changes)
	next.tables = slices.Clip(s.tables)
	for i := range b.Changes {
		t := next.tables[len(next.tables)-1].Clone()
		if err := t.Apply(&b.Changes[i]); err != nil {
			st.violated(sim.I2Generations, "%v", err)
			break
		}
		next.tables = append(next.tables, t)
	}
	st.putStore(&next)
	st.checkDied(b.Changes)
	return storage.Done
}

func (s *store) granted(g leasehold.Generation) *table.Change {
	for i := range s.changes {
		if c := &s.changes[i]; c.Generation == g && c.Kind != table.Vacated {
			return c
		}
	}
	return nil
}

// uptime is the uptime of the computer of all managers: it does not reboot, and its boot ID is known.
func (st *state) uptime() time.Duration { return time.Hour + st.now }

// ended reports whether a part of a lease has ended.
func (s *store) ended(l leasehold.Lease) bool {
	return slices.ContainsFunc(s.changes, func(c table.Change) bool {
		return c.Kind == table.Vacated && c.Generation == l.Generation && c.Range.Overlaps(l.Range)
	})
}

const middle leasehold.Key = 1 << 63

// halves is a policy for two owners and two ranges: a single owner has both, and a second one gets one. It
// does not depend on names, so that owners are symmetric. The exception: if both are new and have no range,
// the first by name gets the first range.
type halves struct{}

func (halves) Name() string { return "halves" }

func (halves) Assign(in partition.Input) (partition.Assignment, error) {
	switch len(in.Members) {
	case 0:
		return partition.Assignment{{Start: 0}}, nil
	case 1:
		return partition.Assignment{{Start: 0, Owner: in.Members[0].Owner}}, nil
	}
	first, second := in.Members[0].Owner, in.Members[1].Owner
	low, high := has(in.Current, 0), has(in.Current, middle)
	if low == second || high == first && low != first {
		first, second = second, first
	}
	return partition.Assignment{{Start: 0, Owner: first}, {Start: middle, Owner: second}}, nil
}

func has(a partition.Assignment, k leasehold.Key) leasehold.OwnerID {
	var owner leasehold.OwnerID
	for _, slot := range a {
		if slot.Start <= k {
			owner = slot.Owner
		}
	}
	return owner
}
