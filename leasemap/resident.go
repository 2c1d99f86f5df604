package leasemap

import (
	"context"
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// residents are the running functions of Config.Resident. All uses of a lock are brief.
type residents[V any] struct {
	mu    sync.Mutex
	areas []*area
}

// An area is the range of a lease that this server serves, with its residents.
type area struct {
	leasehold.Range
	ctx     context.Context      // ends when the lease is not served, or is about to move
	running map[string]*resident // the latest of each name
	all     sync.WaitGroup
}

type resident struct {
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}
}

// runResidents runs residents on the leases of the owner until the context ends. [owner.Each] ends the context of
// serveResidents before a range moves, and waits for it.
func (m *Map[V]) runResidents(ctx context.Context) {
	if o, owns := m.leases.(*owner.Owner); owns {
		_ = owner.Each(ctx, o, m.serveResidents)
	}
}

func (m *Map[V]) serveResidents(ctx context.Context, l leasehold.Lease) error {
	rs, a := m.residents, &area{Range: l.Range, ctx: ctx, running: make(map[string]*resident)}
	rs.mu.Lock()
	rs.areas = append(rs.areas, a)
	rs.mu.Unlock()
	// From here on an operation starts a resident. Those of values that are there already follow.
	for i := shardOf(l.Range.Start); i <= shardOf(l.Range.Last()) && ctx.Err() == nil; i++ {
		for _, name := range m.shards[i].names() {
			if l.Range.Contains(m.cfg.Key(name)) && ctx.Err() == nil {
				_, _, _ = m.GetContext(ctx, name)
			}
		}
	}
	<-ctx.Done()
	rs.mu.Lock()
	rs.areas = slices.DeleteFunc(rs.areas, func(other *area) bool { return other == a })
	rs.mu.Unlock()
	a.all.Wait()
	return nil
}

// updateResident starts the resident of a locked entry with a value, and ends that of one without.
func (m *Map[V]) updateResident(e *entry[V], name string) {
	exists := e.version.Exists() && !e.removed.Load()
	switch {
	case m.residents == nil || exists == e.attended.Load():
	case exists:
		m.startResident(e, name)
	default:
		m.endResident(e, name)
	}
}

func (m *Map[V]) startResident(e *entry[V], name string) {
	rs := m.residents
	rs.mu.Lock()
	defer rs.mu.Unlock()
	a := rs.area(m.cfg.Key(name))
	if a == nil {
		return // serveResidents follows
	}
	before, now := a.running[name], &resident{ended: make(chan struct{})}
	now.ctx, now.cancel = context.WithCancel(a.ctx)
	a.running[name] = now
	e.attended.Store(true)
	a.all.Go(func() {
		defer close(now.ended)
		if before != nil {
			<-before.ended
		}
		if now.ctx.Err() == nil {
			m.cfg.Resident(now.ctx, name)
		}
		now.cancel()
		rs.mu.Lock()
		defer rs.mu.Unlock()
		if a.running[name] == now {
			delete(a.running, name)
			e.attended.Store(false)
		}
	})
}

// endResident ends the context of the resident of an entry that is removed or has no value any more.
func (m *Map[V]) endResident(e *entry[V], name string) {
	if m.residents == nil || !e.attended.Load() {
		return
	}
	rs := m.residents
	rs.mu.Lock()
	defer rs.mu.Unlock()
	e.attended.Store(false)
	if a := rs.area(m.cfg.Key(name)); a != nil && a.running[name] != nil {
		a.running[name].cancel()
	}
}

// area returns the area of a key, nil if no lease on it is served.
func (rs *residents[V]) area(key leasehold.Key) *area {
	for _, a := range rs.areas {
		if a.Contains(key) {
			return a
		}
	}
	return nil
}
