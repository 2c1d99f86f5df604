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

// A store is the linearizable store of the managers. It is not changed once it is made.
type store struct {
	record  storage.Record
	changes []table.Change
	tables  []*table.Table // by LSN: what is true
	digests digests
}

type request struct {
	term leasehold.Term
	what any // election.Read, election.Swap, manager.Commit, manager.ReadEnd, node.Load, node.LoadCatalog
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
	panic(fmt.Sprintf("store asked for %T", r.what))
}

// catalog is the configuration of the one namespace, read while term is the leader's.
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

// notify is the watch: who does not lead is told of a new record.
func (st *state) notify(r storage.Record) {
	for i := range managers {
		if p := st.procs[i]; p != nil && managerNames[i] != r.Leader {
			st.post(&letter{to: i, epoch: p.epoch, what: managerproc.Election{Event: byrecord.Seen{Record: r, Uptime: st.uptime()}}})
		}
	}
}

// commit appends a batch under its guards. It is I2 at the store: generations strictly
// rise, and nobody is granted what another holds.
func (st *state) commit(b *storage.Batch) storage.Outcome {
	s := st.store
	if b.Term != s.record.Term || b.Prev != leasehold.LSN(len(s.changes)) {
		return storage.Conflict
	}
	if b.Base != nil {
		st.violated(sim.I2Generations, "the log is renumbered, and no store is ever restored here")
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

// uptime is for how long the machine of all managers has run: no store is ever restored here, and
// each of them knows it.
func (st *state) uptime() time.Duration { return time.Hour + st.now }

// ended reports whether a part of a lease has ended.
func (s *store) ended(l leasehold.Lease) bool {
	return slices.ContainsFunc(s.changes, func(c table.Change) bool {
		return c.Kind == table.Vacated && c.Generation == l.Generation && c.Range.Overlaps(l.Range)
	})
}

const middle leasehold.Key = 1 << 63

// halves is a policy for two owners and two ranges: who is alone has both, and who joins
// gets one. It does not go by names, so that owners can be taken for each other; only
// if both are new, and nobody has anything, the first by name gets the first range.
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
