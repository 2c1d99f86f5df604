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

// Sizes. MaxPieceChanges is part of the stored form: a reader that looks for a
// change knows by it how far back the piece can start that has it.
const (
	// MaxPiece bounds a piece of a batch or of a snapshot, in bytes. etcd
	// refuses requests larger than 1.5 MiB unless configured otherwise.
	MaxPiece = 512 << 10
	// MaxPieceChanges bounds the changes in a piece of a batch.
	MaxPieceChanges = 4096
	// DefaultHistory is how many changes are kept for [Store.History].
	DefaultHistory = 1 << 16
	// maxCatalog bounds the catalog, which is written in one request.
	maxCatalog = 1 << 20
	// maxAttempts bounds how often a write is tried again because another
	// write by the same leader, a snapshot beside a batch, came between.
	maxAttempts = 16
)

// A Config says how a [Store] works.
type Config struct {
	// History is how many of the newest changes of each namespace are kept at
	// least, for people to read; 0 means [DefaultHistory]. Each takes about 50
	// bytes.
	History int
	// Piece bounds a piece of a batch or of a snapshot, in bytes; 0 means
	// [MaxPiece]. A batch's piece may be larger if it has a single change.
	Piece int
	// Now is the wall clock that batches are stamped with; nil means time.Now.
	Now func() time.Time
}

// A Store keeps everything in a DB. It may be used from many goroutines at
// once, and several stores, in several processes, may share one database.
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
	heads map[leasehold.Namespace]*head // as last seen, maybe old
}

var _ store.Store = (*Store)(nil)

// New returns a store on a database, which it closes when it is closed itself.
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

// enter begins a call: its context ends when the caller's or the store does.
// The caller must leave.
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

// seen remembers a head, so that the next append need not read it first. It
// forgets one at random when there are too many.
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

// maxViews bounds how often a read that was overtaken by a compaction begins
// again.
const maxViews = 4

// read reads what is stored about a namespace at one instant.
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

// ErrViewLost means that the database no longer has what a view shows. A new
// view does not suffer from it.
var ErrViewLost = errors.New("what was read has been compacted meanwhile")

// corrupt says that a stored value makes no sense. Nothing of ours writes such
// a value, so that somebody else has, or a disk has lost something.
func corrupt(key string, why error) error {
	return leasehold.Errorf("read store", leasehold.ErrInternal, key,
		"the stored value makes no sense: %w; restore the store from a backup", why)
}

// failed wraps a database's error with what was being done. It keeps the
// error's kind, and calls an error without one Unavailable.
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
