package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// lookups are the followed lease tables: each from its first request until it is evicted, or the agent
// stops.
type lookups struct {
	ctx context.Context // ends when no more tables may be opened
	cfg *Config

	mu      sync.Mutex
	at      map[leasehold.Namespace]*followed
	closed  bool
	running sync.WaitGroup // tables being opened or closed
}

// A followed is one table. Its lookup or its error is set when opened is closed.
type followed struct {
	namespace leasehold.Namespace
	opened    chan struct{}
	lookup    *lookup.Lookup
	err       error

	// Guarded by lookups.mu.
	users int // requests in flight
	used  time.Time
}

// openTimeout is the timeout of opening a table.
const openTimeout = 5 * time.Second

func newLookups(ctx context.Context, cfg *Config) *lookups {
	return &lookups{ctx: ctx, cfg: cfg, at: make(map[leasehold.Namespace]*followed)}
}

// get returns a lookup of a namespace, which stays open until done is called.
func (l *lookups) get(ctx context.Context, ns leasehold.Namespace) (_ *lookup.Lookup, done func(), err error) {
	if err := ns.Validate(); err != nil {
		return nil, nil, err
	}
	f, err := l.reserve(ns)
	if err != nil {
		return nil, nil, err
	}
	select {
	case <-f.opened:
	case <-ctx.Done():
		l.release(f)
		return nil, nil, leasehold.Errorf("find", leasehold.ErrUnavailable, string(ns), "the client disconnected: %w", ctx.Err())
	}
	if f.err != nil {
		l.release(f)
		return nil, nil, f.err
	}
	return f.lookup, func() { l.release(f) }, nil
}

func (l *lookups) reserve(ns leasehold.Namespace) (*followed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed()
	}
	f := l.at[ns]
	if f == nil {
		if len(l.at) >= l.cfg.MaxNamespaces && !l.evict() {
			return nil, leasehold.Errorf("find", leasehold.ErrLimit, string(ns), "%d namespaces are in use through this agent: raise --max-namespaces", l.cfg.MaxNamespaces)
		}
		f = &followed{namespace: ns, opened: make(chan struct{})}
		l.at[ns] = f
		l.running.Go(func() { l.open(f) })
	}
	f.users++
	f.used = time.Now()
	return f, nil
}

// open opens a table for all waiting requests. After a failure the next request retries.
func (l *lookups) open(f *followed) {
	ctx, cancel := context.WithTimeout(l.ctx, openTimeout)
	defer cancel()
	f.lookup, f.err = lookup.Open(ctx, lookup.Config{
		Namespace: f.namespace, Managers: l.cfg.Managers, Credentials: l.cfg.Credentials,
		DialOptions: l.cfg.DialOptions, Logger: l.cfg.Logger, Metrics: l.cfg.Metrics,
	})
	if f.err != nil {
		l.mu.Lock()
		if l.at[f.namespace] == f {
			delete(l.at, f.namespace)
		}
		l.mu.Unlock()
	}
	close(f.opened)
}

func (l *lookups) release(f *followed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.users--
	f.used = time.Now()
}

// evict closes the least recently used table without users, and reports whether there was one.
func (l *lookups) evict() bool {
	var oldest *followed
	for _, f := range l.at {
		if f.users == 0 && (oldest == nil || f.used.Before(oldest.used)) {
			oldest = f
		}
	}
	if oldest == nil {
		return false
	}
	delete(l.at, oldest.namespace)
	l.running.Go(func() {
		<-oldest.opened
		if oldest.lookup != nil {
			_ = oldest.lookup.Close(context.Background()) // it does not fail
		}
	})
	return true
}

// close closes all tables, which ends the streams of losses.
func (l *lookups) close() {
	l.mu.Lock()
	l.closed = true
	for len(l.at) > 0 {
		for _, f := range l.at {
			f.users = 0
		}
		l.evict()
	}
	l.mu.Unlock()
	l.running.Wait()
}

// A lookupDocument is a table, in the answer to GET /v1/status.
type lookupDocument struct {
	Namespace string        `json:"namespace"`
	LSN       leasehold.LSN `json:"lsn,string"`
	AgeMS     int64         `json:"age_ms"`
	Ready     bool          `json:"ready"`
}

func (l *lookups) status() []lookupDocument {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []lookupDocument{}
	for ns, f := range l.at {
		select {
		case <-f.opened:
			if f.lookup != nil {
				out = append(out, lookupDocument{string(ns), f.lookup.LSN(), f.lookup.Age().Milliseconds(), f.lookup.Ready()})
			}
		default:
		}
	}
	slices.SortFunc(out, func(a, b lookupDocument) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return out
}
