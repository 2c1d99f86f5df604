package autosharding

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
	pb "github.com/leasehold-dev/leasehold/proto/autosharding/v1"
)

// Config configures a Service.
type Config struct {
	// Self is the manager's address, for errors.
	Self string
	// MaxStreams is the maximum number of connected clients.
	MaxStreams int
	// MaxSuperseded bounds the bytes of superseded assignments of a namespace that are being sent.
	// Default 64 MiB.
	MaxSuperseded int
	Clock         *clock.Clock
	Logger        *slog.Logger
	// Rand returns a generator for jitter.
	Rand func() *rand.Rand
	// Request hands a request of a feed to the manager's machine. It may block until the context ends.
	// The reply is passed to Answer or Refuse.
	Request func(context.Context, *protocol.LookupRequest)
	// Refused counts a stream that was refused or ended because of an error.
	Refused func(leasehold.Kind)
}

// A Service serves auto-sharding clients. It is safe for concurrent use.
type Service struct {
	pb.UnimplementedAutoshardingServiceServer
	cfg      Config
	ctx      context.Context //nolint:containedctx // of its goroutines
	running  sync.WaitGroup
	rejected *logthrottle.Throttle[leasehold.Namespace]

	mu     sync.Mutex
	count  int
	lastID uint64
	feeds  map[leasehold.Namespace]*feed
	byID   map[uint64]*feed
	stats  map[leasehold.Namespace]*Stats
}

// rejectionLogInterval is the minimum interval of log lines about rejected assignments of a namespace.
const rejectionLogInterval = time.Minute

// firstID is the lowest number of a feed. Streams of lookups have lower ones.
const firstID = 1 << 63

// New returns a service whose streams end with the context.
func New(ctx context.Context, cfg Config) *Service {
	cfg.MaxSuperseded = cmp.Or(cfg.MaxSuperseded, 64<<20)
	return &Service{
		cfg: cfg, ctx: ctx, lastID: firstID, rejected: logthrottle.New[leasehold.Namespace](rejectionLogInterval),
		feeds: make(map[leasehold.Namespace]*feed), byID: make(map[uint64]*feed), stats: make(map[leasehold.Namespace]*Stats),
	}
}

// Close waits for all goroutines. The context has ended, and the gRPC server has stopped.
func (s *Service) Close() { s.running.Wait() }

// IsFeed reports whether a number of a lookup is that of a feed.
func IsFeed(lookup uint64) bool { return lookup >= firstID }

// Answer passes the manager's reply to a feed. It does not block.
func (s *Service) Answer(id uint64, reply *protocol.LookupReply) {
	s.mu.Lock()
	f := s.byID[id]
	s.mu.Unlock()
	if f != nil {
		f.driver.Offer(lookup.Reply{LookupReply: reply})
	}
}

// Broadcast passes changes to the feed of their namespace. It does not block.
func (s *Service) Broadcast(reply *protocol.LookupReply) {
	s.mu.Lock()
	f := s.feeds[reply.Namespace]
	s.mu.Unlock()
	if f != nil {
		f.driver.Offer(lookup.Reply{LookupReply: reply})
	}
}

// Refuse passes the manager's refusal to a feed. It does not block.
func (s *Service) Refuse(id uint64, why error) {
	s.mu.Lock()
	f := s.byID[id]
	s.mu.Unlock()
	if f != nil {
		f.driver.Offer(lookup.Refused{Kind: leasehold.KindOf(why)})
		f.refused(why)
	}
}

// admit counts a stream.
func (s *Service) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count >= s.cfg.MaxStreams {
		return leasehold.Errorf("watch assignment", leasehold.ErrLimit, "", "this manager has %d auto-sharding clients connected, its limit: connect to another manager of the group", s.count)
	}
	s.count++
	return nil
}

// Count returns the number of streams.
func (s *Service) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *Service) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count--
}

// join returns the feed of a namespace for one more client.
func (s *Service) join(ns leasehold.Namespace) (*feed, error) {
	if ns.Validate() != nil {
		return nil, leasehold.Errorf("watch assignment", leasehold.ErrNotFound, string(ns), "there is no such namespace")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[ns]
	if f == nil {
		if len(s.feeds) >= storage.MaxNamespaces {
			return nil, leasehold.Errorf("watch assignment", leasehold.ErrLimit, string(ns), "clients request too many namespaces")
		}
		s.lastID++
		var err error
		if f, err = newFeed(s, ns, s.lastID); err != nil {
			return nil, err
		}
		s.feeds[ns], s.byID[s.lastID] = f, f
		f.id = s.lastID
	}
	if f.idle != nil {
		f.idle.Stop()
	}
	f.clients++
	return f, nil
}

// part is the opposite of join.
func (s *Service) part(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.clients--
	if f.clients == 0 && !f.removed {
		f.idle = time.AfterFunc(linger, func() { s.expire(f) })
	}
}

// expire removes a feed that has no clients.
func (s *Service) expire(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.clients == 0 {
		s.drop(f)
	}
}

// remove removes a feed; the next client gets another one.
func (s *Service) remove(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(f)
}

// drop removes a feed. The lock is held.
func (s *Service) drop(f *feed) {
	if f.removed {
		return
	}
	f.removed = true
	f.cancel()
	delete(s.feeds, f.ns)
	delete(s.byID, f.id)
}
