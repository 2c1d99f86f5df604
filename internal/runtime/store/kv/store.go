package kv

import (
	"context"
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

	closed context.Context // ends with the store
	end    context.CancelFunc
	calls  calls

	closing sync.Once
	failure error // of closing

	mu    sync.Mutex
	heads map[leasehold.Namespace]*head // as last seen, maybe old
}

var _ store.Store = (*Store)(nil)

// New returns a store on a database, which it closes when it is closed itself.
func New(db DB, cfg Config) *Store {
	if cfg.History <= 0 {
		cfg.History = DefaultHistory
	}
	if cfg.Piece <= 0 {
		cfg.Piece = MaxPiece
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Store{
		db: db, history: leasehold.LSN(cfg.History), piece: cfg.Piece, now: cfg.Now,
		heads: make(map[leasehold.Namespace]*head),
	}
	s.closed, s.end = context.WithCancel(context.Background())
	return s
}

// Close aborts all calls, waits for them, and closes the database.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.calls.shut()
		s.end()
		s.calls.wait()
		s.failure = failed("close store", "", s.db.Close())
	})
	return s.failure
}

// enter begins a call: its context ends when the caller's or the store does.
// The caller must leave.
func (s *Store) enter(ctx context.Context, op string) (_ context.Context, leave func(), _ error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, failed(op, "", err)
	}
	if !s.calls.begin() {
		return nil, nil, leasehold.Errorf(op, leasehold.ErrClosed, "", "the store is closed")
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.closed, cancel)
	return ctx, func() { stop(); cancel(); s.calls.finish() }, nil
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

// calls counts the calls under way, and lets none begin once it is shut.
type calls struct {
	mu    sync.Mutex
	ended bool
	group sync.WaitGroup
}

func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.group.Add(1)
	}
	return !c.ended
}

func (c *calls) finish() { c.group.Done() }

func (c *calls) shut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

func (c *calls) wait() { c.group.Wait() }
