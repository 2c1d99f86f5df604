package procsim

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/memdb"
)

// A database is the store of all managers, with faults.
type database struct {
	memdb.DB

	mu       sync.Mutex
	random   *rand.Rand
	identity storage.Identity
	down     bool
	changed  chan struct{} // closed when a path to the database may be open again
}

func newDatabase(random *rand.Rand) *database {
	return &database{random: random, changed: make(chan struct{}), identity: storage.Identity{Cluster: "1", Directory: "1"}}
}

// A path is one manager's connection to the database. It implements kv.DB.
type path struct {
	db *database

	// Guarded by the mutex of the database.
	lag    lag
	closed bool    // requests are not executed any more
	cut    bool    // requests wait
	fail   float64 // the share of writes that fail; half of them are executed
}

// A lag is a latency of requests.
type lag struct {
	base, most time.Duration // at least and at most
	grows      time.Duration // from base to most in this time since; 0: at once
	since      time.Time
	bursts     bool // most only now and then
	reads      bool // reads, too
}

func (l *lag) of(read bool, random *rand.Rand) time.Duration {
	if l.most == 0 || read && !l.reads || l.bursts && time.Since(l.since)/(8*time.Second)%2 == 1 {
		return l.base + time.Duration(random.Int64N(int64(l.base)+1))
	}
	most := l.most
	if l.grows > 0 {
		most = time.Duration(float64(most) * min(1, float64(time.Since(l.since))/float64(l.grows)))
	}
	return max(l.base, most)
}

// set changes paths, and wakes waiting requests.
func (d *database) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	close(d.changed)
	d.changed = make(chan struct{})
}

var errStore = errors.New("injected store fault")

// pass waits until a request of a path has arrived.
func (p *path) pass(ctx context.Context, read bool) error {
	d := p.db
	d.mu.Lock()
	delay := p.lag.of(read, d.random)
	d.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		d.mu.Lock()
		closed, waits, changed := p.closed, d.down || p.cut, d.changed
		d.mu.Unlock()
		switch {
		case closed:
			return errStore
		case !waits:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Peek implements kv.DB.
func (p *path) Peek(ctx context.Context, key string) (kv.Entry, error) {
	if err := p.pass(ctx, true); err != nil {
		return kv.Entry{}, err
	}
	return p.db.DB.Peek(ctx, key)
}

// View implements kv.DB.
func (p *path) View() kv.View { return &view{path: p} }

// Identity implements kv.DB.
func (p *path) Identity() storage.Identity {
	p.db.mu.Lock()
	defer p.db.mu.Unlock()
	return p.db.identity
}

// Commit implements kv.DB. A request that has been sent is executed, even if its sender does not wait for it.
func (p *path) Commit(ctx context.Context, t kv.Txn) (kv.Result, error) {
	type outcome struct {
		res kv.Result
		err error
	}
	done := make(chan outcome, 1)
	sent, cancel := context.WithTimeout(context.Background(), time.Minute)
	go func() {
		defer cancel()
		res, err := p.commit(sent, t)
		done <- outcome{res, err}
	}()
	select {
	case o := <-done:
		return o.res, o.err
	case <-ctx.Done():
		return kv.Result{}, ctx.Err()
	}
}

func (p *path) commit(ctx context.Context, t kv.Txn) (kv.Result, error) {
	if err := p.pass(ctx, false); err != nil {
		return kv.Result{}, err
	}
	p.db.mu.Lock()
	fate := p.db.random.Float64()
	fail := p.fail
	p.db.mu.Unlock()
	if fate < fail/2 {
		return kv.Result{}, errStore
	}
	res, err := p.db.DB.Commit(ctx, t)
	if fate < fail {
		return kv.Result{}, errStore
	}
	return res, err
}

// Watch implements kv.DB.
func (p *path) Watch(ctx context.Context, key string, seen func(kv.Entry)) {
	p.db.DB.Watch(ctx, key, func(e kv.Entry) {
		if p.pass(ctx, true) == nil {
			seen(e)
		}
	})
}

// Close implements kv.DB.
func (p *path) Close() error { return nil }

// A view is opened by its first read.
type view struct {
	*path
	kv.View
}

func (v *view) open(ctx context.Context) error {
	if v.View != nil {
		return nil
	}
	if err := v.pass(ctx, true); err != nil {
		return err
	}
	v.View = v.db.View()
	return nil
}

func (v *view) Get(ctx context.Context, keys ...string) ([]kv.Entry, error) {
	if err := v.open(ctx); err != nil {
		return nil, err
	}
	return v.View.Get(ctx, keys...)
}

func (v *view) Scan(ctx context.Context, span kv.Span, each func(kv.Entry) error) error {
	if err := v.open(ctx); err != nil {
		return err
	}
	return v.View.Scan(ctx, span, each)
}
