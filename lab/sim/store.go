package sim

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A store is the linearizable store of a manager group. It executes a request at one instant. The nemesis
// determines the latency of the request and of the reply, and whether they are lost.
type store struct {
	*world
	record  storage.Record
	history []storage.Record // earlier records, newest last, for stale reads
	catalog *storage.Catalog
	logs    map[leasehold.Namespace]*stored

	era int // number of restores
	// moves counts the restores into a new cluster, and copies those into data directories that are copies.
	moves, copies int
	saved         *backup // nil if there is none

	down    bool
	slow    time.Duration
	unknown int  // percent of requests that are lost, or whose reply is lost
	stale   bool // reads that allow stale results get them
	waiting []*storeRequest
}

// stored is the content of the store for one namespace.
type stored struct {
	table   *table.Table
	changes []table.Change
	// unfinished: the leader must write the table again as the base of the log.
	unfinished bool
}

func (s *stored) state(term leasehold.Term) *storage.State {
	return &storage.State{Term: term, Table: s.table, Changes: s.changes[:len(s.changes):len(s.changes)], Unfinished: s.unfinished}
}

// A storeRequest is a request of a manager.
type storeRequest struct {
	host  *managerHost
	epoch uint32
	done  bool // answered or timed out
	lost  bool // the reply is lost
	era   int  // era of the store; a request of an earlier era is not executed
	sent  int64
	ns    leasehold.Namespace
	term  leasehold.Term
	what  any // byrecord.Read, byrecord.Swap, manager.Commit, manager.ReadEnd, manager.SaveSnapshot, managerproc.Load, managerproc.LoadCatalog, managerproc.Settle, configure
}

// A storeAnswer is the reply to a storeRequest.
type storeAnswer struct {
	request *storeRequest
	event   managerproc.Event
}

func (s *store) log(ns leasehold.Namespace) *stored {
	l := s.logs[ns]
	if l == nil {
		l = &stored{}
		s.logs[ns] = l
	}
	return l
}

func (s *store) latency() time.Duration {
	d := 200*time.Microsecond + s.Below(calmDelay-200*time.Microsecond)
	if s.slow > 0 {
		d += s.Below(s.slow)
	}
	return d
}

func (s *store) request(h *managerHost, ns leasehold.Namespace, term leasehold.Term, what any) {
	r := &storeRequest{host: h, epoch: h.epoch, ns: ns, term: term, what: what, era: s.era, sent: s.Now}
	if h.storeCut {
		s.giveUp(r)
		return
	}
	if s.unknown > 0 && s.Random.IntN(100) < s.unknown {
		if s.Chance(2) {
			r.lost = true // it is executed, but the reply is lost
		} else {
			s.giveUp(r)
			return
		}
	}
	late := h.lag.of(s.world, what)
	s.Later(s.latency()+late, engine.Nowhere, 0, r)
	if s.slow > 0 || s.down || r.lost {
		s.giveUp(r)
	} else if late > 0 {
		s.giveUpLate(r)
	}
}

// giveUp schedules a timeout of the request: its outcome is then unknown to the manager.
func (s *store) giveUp(r *storeRequest) {
	s.Later(s.nemesis.span(200*time.Millisecond, storeWait), engine.Nowhere, 0, &giveUp{r})
}

// giveUp is the timeout of a request.
type giveUp struct{ request *storeRequest }

func (s *store) serve(r *storeRequest) {
	if r.era != s.era {
		s.giveUp(r)
		return
	}
	if s.down {
		if !s.Chance(2) {
			s.waiting = append(s.waiting, r) // executed when the outage ends
		}
		s.giveUp(r)
		return
	}
	e := s.apply(r)
	if r.lost {
		return
	}
	s.answer(r, e, s.latency())
}

// answer sends a reply. The manager ignores all but the first one.
func (s *store) answer(r *storeRequest, e managerproc.Event, d time.Duration) {
	if r.done || e == nil {
		return
	}
	s.Later(d, r.host.endpoint, r.epoch, &storeAnswer{r, e})
}

// Unanswered returns the event of a manager whose request has timed out; nil if it does not wait for the
// reply.
func Unanswered(ns leasehold.Namespace, term leasehold.Term, request any) managerproc.Event {
	switch what := request.(type) {
	case byrecord.Read:
		return managerproc.Election{Event: byrecord.ReadFailed{}}
	case byrecord.Swap:
		return managerproc.Election{Event: byrecord.Swapped{Swap: what, Outcome: storage.Unknown}}
	case manager.Commit:
		return managerproc.Manager{Namespace: ns, Term: term, Event: manager.Committed{Outcome: storage.Unknown}}
	case manager.ReadEnd:
		return managerproc.Manager{Namespace: ns, Term: term, Event: manager.LogEnd{Err: true}}
	case managerproc.Load:
		return managerproc.Loaded{Namespace: ns, Term: term}
	case managerproc.LoadCatalog:
		return managerproc.Catalogued{Term: term}
	case managerproc.Settle, configure:
		return managerproc.Catalogued{Term: term} // it then reads the catalog
	}
	return nil
}

// apply executes a request.
func (s *store) apply(r *storeRequest) managerproc.Event {
	switch what := r.what.(type) {
	case byrecord.Read:
		rec := s.record
		if s.stale && !what.Fresh && len(s.history) > 0 {
			rec = s.history[len(s.history)-1-s.Random.IntN(len(s.history))]
		}
		return managerproc.Election{Event: byrecord.Seen{Record: rec, AtLeast: what.AtLeast, Wall: r.host.wall(), Uptime: r.host.uptime(), Store: s.identity()}}
	case byrecord.Swap:
		return managerproc.Election{Event: s.swap(what)}
	case manager.Commit:
		return managerproc.Manager{Namespace: r.ns, Term: r.term, Event: manager.Committed{Outcome: s.commit(what.Batch, r.sent)}}
	case manager.ReadEnd:
		return managerproc.Manager{Namespace: r.ns, Term: r.term, Event: manager.LogEnd{Term: s.record.Term, LSN: s.log(r.ns).state(0).End()}}
	case manager.SaveSnapshot:
		s.save(what.Snapshot)
		return nil
	case managerproc.Load:
		return managerproc.Loaded{Namespace: r.ns, Term: r.term, State: s.log(r.ns).state(s.record.Term)}
	case managerproc.LoadCatalog:
		return managerproc.Catalogued{Term: r.term, Catalog: s.readCatalog()}
	case managerproc.Settle:
		if next := s.catalog.Settled(what.Entry); next != nil && r.term == s.record.Term {
			s.replaceCatalog(next)
		}
		return managerproc.Catalogued{Term: r.term, Catalog: s.readCatalog()}
	case configure:
		if r.term == s.record.Term {
			s.configure(r.ns, what)
		}
		return managerproc.Catalogued{Term: r.term, Catalog: s.readCatalog()}
	}
	panic(fmt.Sprintf("invalid store request %T", r.what))
}

// configure is an operator's request to a leader: change the timing of a namespace, which creates it if it
// was deleted, or delete it.
type configure struct {
	timing protocol.Timing
	remove bool
}

// configure executes an operator's request.
func (s *store) configure(ns leasehold.Namespace, c configure) {
	if c.remove && s.nemesis.healed {
		return // faults have stopped: too late for a deletion
	}
	if !c.remove {
		s.replaceCatalog(s.catalog.Configured(s.space(ns).configured(c.timing)))
	} else if next := s.catalog.Deleted(ns); next != nil {
		s.replaceCatalog(next)
	}
}

func (s *store) readCatalog() *storage.Catalog {
	c := *s.catalog
	c.Term = s.record.Term
	return &c
}

func (s *store) replaceCatalog(next *storage.Catalog) {
	s.oracle.noteDeleted(s.catalog)
	s.oracle.noteDeleted(next)
	next.Version++
	s.catalog = next
}

func (s *store) swap(swap byrecord.Swap) byrecord.Swapped {
	if swap.Prev != s.record.Version || swap.New.Term < s.record.Term {
		return byrecord.Swapped{Swap: swap, Outcome: storage.Conflict}
	}
	if len(s.history) == 4 {
		s.history = append(s.history[:0], s.history[1:]...)
	}
	s.history = append(s.history, s.record)
	version := s.record.Version + 1
	s.record = swap.New
	s.record.Version = version
	s.oracle.resignations(s.record)
	s.notifyWatches()
	return byrecord.Swapped{Swap: swap, Outcome: storage.Done, Version: version}
}

// watched is an event of a process's watch.
type watched struct {
	epoch uint32
	seen  byrecord.Seen
}

// notifyWatches sends the new record to the watches: a hint that can be late or lost.
func (s *store) notifyWatches() {
	for _, m := range s.managers {
		if m.alive && !m.storeCut && !s.stale && s.Random.IntN(100) < 80 {
			s.Later(s.latency(), m.endpoint, 0, watched{m.epoch, byrecord.Seen{Record: s.record, Wall: m.wall(), Uptime: m.uptime(), Store: s.identity()}})
		}
	}
}

// commit applies a batch that a leader sent at an earlier instant.
func (s *store) commit(b *storage.Batch, sent int64) storage.Outcome {
	l := s.log(b.Namespace)
	if b.Term != s.record.Term || b.Prev != l.state(0).End() {
		return storage.Conflict
	}
	if b.Base != nil {
		s.oracle.rebased(b, engine.Must(l.state(0).Replay()))
		l.table, l.changes, l.unfinished = b.Base, nil, b.Unfinished
		return storage.Done
	}
	l.changes = append(l.changes, b.Changes...)
	s.oracle.committed(b, sent)
	return storage.Done
}

func (s *store) save(p *storage.Snapshot) {
	if p.Term == s.record.Term {
		s.log(p.Namespace).save(p)
	}
}

func (s *stored) save(p *storage.Snapshot) {
	end := s.state(0).End()
	if p.Table.LSN() > end || s.table != nil && p.Table.LSN() <= s.table.LSN() {
		return
	}
	keep := int(end - p.Table.LSN())
	s.changes = append([]table.Change(nil), s.changes[len(s.changes)-keep:]...)
	s.table = p.Table
}

// up ends an outage, and executes the waiting requests.
func (s *store) up() {
	s.down = false
	for _, r := range s.waiting {
		s.serve(r)
	}
	s.waiting = nil
}
