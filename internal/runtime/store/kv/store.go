package kv

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

// Limits. MaxPieceChanges is part of the stored format: it bounds the search of a reader for the piece with a change.
const (
	// MaxPiece is the maximum size of a piece of a batch or snapshot in bytes. The default limit of etcd
	// requests is 1.5 MiB.
	MaxPiece = 512 << 10
	// MaxPieceChanges is the maximum number of changes in a piece of a batch.
	MaxPieceChanges = 4096
	// DefaultHistory is the default of Config.History.
	DefaultHistory = 1 << 16
	// maxCatalog is the maximum size of the catalog, which is written in one request.
	maxCatalog = 1 << 20
	// maxAttempts is the maximum number of attempts of a write that conflicts with other writes of the same
	// leader, such as a snapshot with batches.
	maxAttempts = 16
)

// Config configures a [Store].
type Config struct {
	// History is the minimum number of retained changes per namespace, for [Store.History]; 0 means
	// [DefaultHistory]. Each takes about 50 bytes.
	History int
	// Piece is the maximum size of a piece of a batch or snapshot in bytes; 0 means [MaxPiece]. A piece with a single
	// change may be larger.
	Piece int
	// Now is the wall clock for the times of batches; nil means time.Now.
	Now func() time.Time
}

// A Store implements [store.Store] on a DB. It is safe for concurrent use. Stores of several processes may share a
// database.
type Store struct {
	db      DB
	history leasehold.LSN
	piece   int
	now     func() time.Time

	calls  sync.WaitGroup  // calls in progress; Add only with mu, while the store is open
	closed context.Context // ends with the store
	end    context.CancelFunc

	close func() error

	mu    sync.Mutex
	heads map[leasehold.Namespace]*head // last known, possibly stale
}

var _ store.Store = (*Store)(nil)

// New returns a store on a database, which it owns.
func New(db DB, cfg Config) *Store {
	cfg.History = cmp.Or(max(0, cfg.History), DefaultHistory)
	cfg.Piece = cmp.Or(max(0, cfg.Piece), MaxPiece)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Store{
		db: db, history: leasehold.LSN(cfg.History), piece: cfg.Piece, now: cfg.Now,
		heads: make(map[leasehold.Namespace]*head),
	}
	s.closed, s.end = context.WithCancel(context.Background())
	s.close = sync.OnceValue(func() error {
		s.mu.Lock()
		s.end()
		s.mu.Unlock()
		s.calls.Wait()
		return failed("close store", "", s.db.Close())
	})
	return s
}

// Close aborts all calls, waits for them, and closes the database.
func (s *Store) Close() error { return s.close() }

// enter begins a call. The returned context ends with that of the caller or with the store. The caller must call
// leave.
func (s *Store) enter(ctx context.Context, op string) (_ context.Context, leave func(), _ error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, failed(op, "", err)
	}
	if !s.begin() {
		return nil, nil, leasehold.Errorf(op, leasehold.ErrClosed, "", "the store is closed")
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.closed, cancel)
	return ctx, func() { stop(); cancel(); s.calls.Done() }, nil
}

// begin counts a call, unless the store is closed. Close does not hold mu while it waits, so that a call
// during Close fails at once.
func (s *Store) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Err() != nil {
		return false
	}
	s.calls.Add(1)
	return true
}

// seen caches a head, so that the next append need not read it. It evicts a random one if there are too many.
func (s *Store) seen(ns leasehold.Namespace, h *head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h == nil {
		delete(s.heads, ns)
		return
	}
	if len(s.heads) >= storage.MaxNamespaces && s.heads[ns] == nil {
		for other := range s.heads {
			delete(s.heads, other)
			break
		}
	}
	s.heads[ns] = h
}

func (s *Store) lastSeen(ns leasehold.Namespace) *head {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heads[ns]
}

// maxViews is the maximum number of attempts of a read that loses its view by a compaction.
const maxViews = 4

// read reads the state of a namespace in one view.
func read[T any](ctx context.Context, s *Store, op string, ns leasehold.Namespace, from func(context.Context, View, keys) (T, error)) (T, error) {
	var out T
	ctx, leave, err := s.enter(ctx, op)
	if err != nil {
		return out, err
	}
	defer leave()
	k, err := keysOf(ns)
	if err != nil {
		return out, err
	}
	for range maxViews {
		if out, err = from(ctx, s.db.View(), k); !errors.Is(err, ErrViewLost) {
			break
		}
	}
	return out, failed(op, string(ns), err)
}

// ErrViewLost means that a view was compacted. A retry needs a new view.
var ErrViewLost = errors.New("the view was compacted during the read")

// corrupt returns the error for an invalid stored value: another program has written it, or the disk has lost data.
func corrupt(key string, why error) error {
	return leasehold.Errorf("read store", leasehold.ErrInternal, key,
		"corrupt value: %w; restore the store from a backup", why)
}

// failed wraps an error of the database with the operation. It keeps the kind of the error; the default is
// Unavailable.
func failed(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	kind := leasehold.KindOf(err)
	if kind == leasehold.Other {
		kind = leasehold.ErrUnavailable
	}
	return &leasehold.Error{Op: op, Kind: kind, Subject: subject, Err: err}
}
