package manager

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// storeIO executes the machine's requests to the store, each on a separate goroutine with a
// deadline, and posts the results as events. Each request results in exactly one event, also
// after a failure or timeout: the machine waits for it.
//
// The machine bounds the requests in flight: one read or swap of the record, one read of the
// catalog, and per namespace one load, one commit or one read of the log's end. Snapshots are
// bounded here: one per namespace.
type storeIO struct {
	m       *Manager
	running sync.WaitGroup

	mu     sync.Mutex
	saving map[leasehold.Namespace]bool
	failed map[string]bool // kinds of requests whose last attempt failed
}

func newStoreIO(m *Manager) *storeIO {
	return &storeIO{m: m, saving: make(map[leasehold.Namespace]bool), failed: make(map[string]bool)}
}

func (s *storeIO) wait() { s.running.Wait() }

// do runs a request in the background, and posts the resulting event.
func (s *storeIO) do(timeout time.Duration, request func(context.Context) managerproc.Event) {
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(s.m.ctx, timeout)
		defer cancel()
		s.m.driver.PostUrgent(s.m.ctx, request(ctx))
	})
}

// table is do for requests about a table. In a diskless group it runs the request at once, in
// order: a log accepts no changes before its first snapshot.
func (s *storeIO) table(timeout time.Duration, request func(context.Context) managerproc.Event) {
	if s.m.group == nil {
		s.do(timeout, request)
		return
	}
	event := request(s.m.ctx)
	s.running.Go(func() { s.m.driver.PostUrgent(s.m.ctx, event) })
}

// note logs the first failure of a kind of request, and the first success after it.
func (s *storeIO) note(what string, err error) {
	s.mu.Lock()
	before := s.failed[what]
	s.failed[what] = err != nil
	s.mu.Unlock()
	switch {
	case s.m.ctx.Err() != nil:
	case err != nil && !before:
		s.m.log.Warn(what+" failed and is retried", "why", err)
	case err == nil && before:
		s.m.log.Info(what + " succeeds again")
	}
}

func (s *storeIO) readRecord(a byrecord.Read) {
	s.do(s.m.recordTimeout(), func(ctx context.Context) managerproc.Event {
		r, err := s.m.cfg.Store.Record(ctx, a.Fresh)
		failpoint.Here("manager/record-read")
		s.note("reading the leader record", err)
		if err != nil {
			return managerproc.Election{Event: byrecord.ReadFailed{}}
		}
		return s.seen(r, a.AtLeast)
	})
}

func (s *storeIO) recordSeen(r storage.Record) {
	s.m.driver.PostUrgent(s.m.ctx, s.seen(r, 0))
}

func (s *storeIO) seen(r storage.Record, atLeast storage.Version) managerproc.Event {
	_, uptime := s.m.cfg.Boot()
	return managerproc.Election{Event: byrecord.Seen{Record: r, AtLeast: atLeast, Wall: s.m.cfg.wall().Unix(), Uptime: uptime, Store: s.m.cfg.Store.Identity()}}
}

func (s *storeIO) swap(a byrecord.Swap) {
	s.do(s.m.recordTimeout(), func(ctx context.Context) managerproc.Event {
		failpoint.Here("manager/before-swap")
		v, outcome, err := s.m.cfg.Store.Swap(ctx, a.Prev, a.New)
		if failpoint.Drop("manager/swapped") {
			outcome = storage.Unknown
		}
		s.note("writing the leader record", err)
		return managerproc.Election{Event: byrecord.Swapped{Swap: a, Outcome: outcome, Version: v}}
	})
}

// tableTimeout is the deadline of requests that transfer a whole table.
const tableTimeout = 30 * time.Second

func (s *storeIO) loadCatalog(a managerproc.LoadCatalog) {
	s.do(s.m.storeTimeout(), func(ctx context.Context) managerproc.Event {
		c, err := s.m.tables.Catalog(ctx)
		failpoint.Here("manager/namespaces-read")
		s.note("reading the namespaces", err)
		if err != nil {
			c = nil
		}
		return managerproc.Catalogued{Term: a.Term, Catalog: c}
	})
}

func (s *storeIO) load(a managerproc.Load) {
	s.table(tableTimeout, func(ctx context.Context) managerproc.Event { return s.loaded(ctx, a) })
}

func (s *storeIO) loaded(ctx context.Context, a managerproc.Load) managerproc.Event {
	begun := time.Now()
	state, err := s.m.tables.Load(ctx, a.Namespace)
	failpoint.Here("manager/table-read")
	s.note("reading the table of "+string(a.Namespace), err)
	if err != nil {
		return managerproc.Loaded{Namespace: a.Namespace, Term: a.Term}
	}
	s.m.log.Debug("read a table", "namespace", a.Namespace, "lsn", state.End(), "took", time.Since(begun))
	return managerproc.Loaded{Namespace: a.Namespace, Term: a.Term, State: state}
}

func (s *storeIO) commit(ns leasehold.Namespace, term leasehold.Term, b *storage.Batch) {
	timeout := max(s.m.storeTimeout(), 5*time.Second)
	if b.Base != nil {
		timeout = tableTimeout
	}
	s.table(timeout, func(ctx context.Context) managerproc.Event {
		failpoint.Here("manager/before-commit")
		outcome, err := s.m.tables.Append(ctx, b)
		if failpoint.Drop("manager/committed-before-reply") {
			outcome = storage.Unknown
		}
		s.note("writing the table of "+string(ns), err)
		return managerproc.Manager{Namespace: ns, Term: term, Event: machine.Committed{Outcome: outcome}}
	})
}

func (s *storeIO) readEnd(ns leasehold.Namespace, term leasehold.Term) {
	s.table(s.m.storeTimeout(), func(ctx context.Context) managerproc.Event {
		end, err := s.m.tables.End(ctx, ns)
		failpoint.Here("manager/log-end-read")
		s.note("reading the end of the log of "+string(ns), err)
		return managerproc.Manager{Namespace: ns, Term: term, Event: machine.LogEnd{Term: end.Term, LSN: end.LSN, Err: err != nil}}
	})
}

// saveSnapshot saves a snapshot, unless an earlier one of the namespace is still being saved.
func (s *storeIO) saveSnapshot(snapshot *storage.Snapshot) {
	if s.m.group != nil {
		_ = s.m.group.SaveSnapshot(s.m.ctx, snapshot) // never fails
		return
	}
	s.mu.Lock()
	busy := s.saving[snapshot.Namespace]
	s.saving[snapshot.Namespace] = true
	s.mu.Unlock()
	if busy {
		return
	}
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(s.m.ctx, tableTimeout)
		defer cancel()
		failpoint.Here("manager/before-snapshot")
		s.note("saving a snapshot of "+string(snapshot.Namespace), s.m.tables.SaveSnapshot(ctx, snapshot))
		failpoint.Here("manager/snapshot-saved")
		s.mu.Lock()
		delete(s.saving, snapshot.Namespace)
		s.mu.Unlock()
	})
}

// settle removes a kept promise from the catalog: see [storage.Catalog.Settled].
func (s *storeIO) settle(a managerproc.Settle) {
	s.do(s.m.storeTimeout(), func(ctx context.Context) managerproc.Event {
		c, err := s.rewrite(ctx, a.Term, func(c *storage.Catalog) (*storage.Catalog, error) {
			return c.Settled(a.Entry), nil
		})
		s.note("writing the namespaces", err)
		return managerproc.Catalogued{Term: a.Term, Catalog: c}
	})
}

// rewrite changes the catalog in a term of this manager, and returns the stored catalog, nil if
// that is unknown. Change returns nil to change nothing. After a concurrent write it retries.
func (s *storeIO) rewrite(ctx context.Context, term leasehold.Term, change func(*storage.Catalog) (*storage.Catalog, error)) (*storage.Catalog, error) {
	const attempts = 8
	for range attempts {
		c, err := s.m.tables.Catalog(ctx)
		if err != nil {
			return nil, err
		}
		if c.Term != term {
			return nil, leasehold.Errorf("write namespaces", leasehold.ErrNotLeader, s.m.cfg.Advertise, "another manager has taken over in term %d", c.Term)
		}
		next, err := change(c)
		if next == nil || err != nil {
			return c, err
		}
		outcome, err := s.m.tables.SaveCatalog(ctx, next)
		failpoint.Here("manager/namespaces-written")
		switch outcome {
		case storage.Done:
			return s.m.tables.Catalog(ctx)
		case storage.Unknown:
			return nil, err
		case storage.Conflict:
			if err != nil {
				return nil, err // too large
			}
		}
	}
	return nil, leasehold.Errorf("write namespaces", leasehold.ErrUnavailable, "", "%d attempts conflicted with other writes; try again", attempts)
}
