package transcript

import (
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

const storeName = "store"

// A store is the linearizable store of the managers.
type store struct {
	world   *world
	record  storage.Record
	catalog *storage.Catalog
	table   *table.Table
	changes []table.Change
}

// create creates the namespace before the first manager of a script.
func (s *store) create(t protocol.Timing) {
	if s.catalog == nil {
		s.catalog = &storage.Catalog{}
		s.write(s.catalog.With(storage.Namespace{Name: namespace, Lease: t.Lease, Renew: t.Renew, Drift: t.Drift}))
	}
}

// configure changes the timing of the namespace, like an operator's request to the leader.
func (s *store) configure(t protocol.Timing) {
	s.write(s.catalog.With(s.catalog.Find(namespace).Promising(t.Lease, t.Renew, t.Drift)))
}

func (s *store) write(next *storage.Catalog) {
	next.Version = s.catalog.Version + 1
	s.catalog = next
}

func (s *store) readCatalog() *storage.Catalog {
	c := *s.catalog
	c.Term = s.record.Term
	return &c
}

// startFrom sets the first generation to be granted.
func (s *store) startFrom(g leasehold.Generation) error {
	t, err := table.Restore(0, g-1, keyrange.NewMap(table.Entry{}))
	s.table = t
	return err
}

func (s *store) state() *storage.State {
	return &storage.State{Term: s.record.Term, Table: s.table, Changes: s.changes[:len(s.changes):len(s.changes)]}
}

// A storeRequest is a request of a manager, in a term.
type storeRequest struct {
	term leasehold.Term
	what any // byrecord.Read, byrecord.Swap, managerproc.Load, managerproc.LoadCatalog, managerproc.Settle, or an action of a manager
}

// A storeAnswer is the reply to a manager.
type storeAnswer struct {
	event managerproc.Event
	text  string
}

// atOnce executes a request that the script does not control, unless the store is cut off.
func (s *store) atOnce(asker string, r storeRequest) managerproc.Event {
	if s.world.cut[asker+"->"+storeName] {
		return r.unanswered()
	}
	return s.apply(r).event
}

// serve executes a request, and sends the reply.
func (s *store) serve(m *message) {
	r := m.what.(storeRequest)
	w := s.world
	w.say("store receives from %s: %s", m.from, s.quote(r))
	answer := s.apply(r)
	if answer.event == nil {
		return
	}
	w.send(&message{from: storeName, to: m.from, what: answer, vain: m.vain, abandoned: m.abandoned})
}

// apply executes a request.
func (s *store) apply(r storeRequest) storeAnswer {
	inNamespace := func(e machine.Event) managerproc.Event {
		return managerproc.Manager{Namespace: namespace, Term: r.term, Event: e}
	}
	switch what := r.what.(type) {
	case byrecord.Read:
		return storeAnswer{event: managerproc.Election{Event: byrecord.Seen{Record: s.record}}}
	case byrecord.Swap:
		return storeAnswer{event: managerproc.Election{Event: s.swap(what)}}
	case managerproc.Load:
		return storeAnswer{event: managerproc.Loaded{Namespace: namespace, Term: r.term, State: s.state()}}
	case managerproc.LoadCatalog:
		return storeAnswer{event: managerproc.Catalogued{Term: r.term, Catalog: s.readCatalog()}}
	case managerproc.Settle:
		if next := s.catalog.Settled(what.Entry); next != nil && r.term == s.record.Term {
			s.write(next)
		}
		return storeAnswer{event: managerproc.Catalogued{Term: r.term, Catalog: s.readCatalog()}}
	case machine.Commit:
		o := s.commit(what.Batch)
		return storeAnswer{inNamespace(machine.Committed{Outcome: o}), o.String()}
	case machine.ReadEnd:
		end := machine.LogEnd{Term: s.record.Term, LSN: s.state().End()}
		return storeAnswer{inNamespace(end), fmt.Sprintf("the log ends at LSN %d, in term %d", end.LSN, end.Term)}
	case machine.SaveSnapshot:
		return storeAnswer{} // without effect here
	}
	panic(fmt.Sprintf("invalid store request %T", r.what))
}

func (s *store) swap(swap byrecord.Swap) byrecord.Swapped {
	if swap.Prev != s.record.Version {
		return byrecord.Swapped{Swap: swap, Outcome: storage.Conflict}
	}
	version := s.record.Version + 1
	s.record = swap.New
	s.record.Version = version
	return byrecord.Swapped{Swap: swap, Outcome: storage.Done, Version: version}
}

func (s *store) commit(b *storage.Batch) storage.Outcome {
	if b.Term != s.record.Term || b.Prev != s.state().End() {
		return storage.Conflict
	}
	s.changes = append(s.changes, b.Changes...)
	return storage.Done
}

// unanswered returns the event of a manager without a reply.
func (r storeRequest) unanswered() managerproc.Event {
	switch what := r.what.(type) {
	case byrecord.Read:
		return managerproc.Election{Event: byrecord.ReadFailed{}}
	case byrecord.Swap:
		return managerproc.Election{Event: byrecord.Swapped{Swap: what, Outcome: storage.Unknown}}
	case managerproc.Load:
		return managerproc.Loaded{Namespace: namespace, Term: r.term}
	case managerproc.LoadCatalog, managerproc.Settle:
		return managerproc.Catalogued{Term: r.term}
	case machine.Commit:
		return managerproc.Manager{Namespace: namespace, Term: r.term, Event: machine.Committed{Outcome: storage.Unknown}}
	case machine.ReadEnd:
		return managerproc.Manager{Namespace: namespace, Term: r.term, Event: machine.LogEnd{Err: true}}
	}
	return nil
}

func (s *store) quote(what any) string {
	switch what := what.(type) {
	case storeAnswer:
		return what.text
	case storeRequest:
		switch r := what.what.(type) {
		case machine.Commit:
			b := r.Batch
			return fmt.Sprintf("append LSN %d->%d if the term is %d: %s", b.Prev, b.Last(), b.Term, s.world.changes(b.Changes))
		case machine.ReadEnd:
			return "read the end of the log"
		case machine.SaveSnapshot:
			return fmt.Sprintf("snapshot at LSN %d", r.Snapshot.Table.LSN())
		}
	}
	return fmt.Sprintf("%T", what)
}

func (s *store) show() {
	leads := "leads"
	if s.record.Resigned {
		leads = "has resigned"
	}
	s.world.say("%s %s in term %d; the log ends at LSN %d", s.record.Leader, leads, s.record.Term, s.state().End())
	for i := range s.changes {
		s.world.then("%s", s.world.change(&s.changes[i]))
	}
}
