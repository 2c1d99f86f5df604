package memcatalog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/manager/internal/memcatalog"
)

func TestMain(m *testing.M) { leak.Main(m) }

const longest = 12 * time.Second

// A hall is where managers of a group, or of several, meet.
type hall struct {
	t   *testing.T
	net flease.Memory

	mu   sync.Mutex
	at   map[storage.ManagerID]*bufconn.Listener
	deaf map[storage.ManagerID]bool // nobody answers its calls
	logs strings.Builder
}

// A seat is a manager in it.
type seat struct {
	*memcatalog.Group
	hall   *hall
	id     storage.ManagerID
	clock  *clock.Clock
	server *grpc.Server

	mu    sync.Mutex
	heard []bylease.Event
	term  leasehold.Term // 0 while it does not lead
	until mono.Instant
	rank  leasehold.Term // that another has heard of
}

func inHall(t *testing.T, test func(t *testing.T, h *hall)) {
	synctest.Test(t, func(t *testing.T) {
		test(t, &hall{t: t, at: map[storage.ManagerID]*bufconn.Listener{}, deaf: map[storage.ManagerID]bool{}})
	})
}

// Write takes what the managers log.
func (h *hall) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.logs.Write(line)
}

func (h *hall) log() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.logs.String()
}

func (h *hall) logged(what string) bool { return strings.Contains(h.log(), what) }

func ids(n int) (out []memcatalog.Peer) {
	for i := range n {
		out = append(out, memcatalog.Peer{Manager: storage.ManagerID(fmt.Sprintf("m%d:7400", i)), Addr: fmt.Sprintf("m%d:7400", i)})
	}
	return out
}

// enter starts a manager of a group of three.
func (h *hall) enter(i int, change ...func(*memcatalog.Config)) *seat {
	h.t.Helper()
	return h.enterAs(ids(3)[i].Manager, change...)
}

// enterAs starts a manager of some name.
func (h *hall) enterAs(self storage.ManagerID, change ...func(*memcatalog.Config)) *seat {
	h.t.Helper()
	s := &seat{hall: h, clock: clock.New()}
	cfg := memcatalog.Config{
		Self: self, Peers: ids(3), Transport: &h.net, Secure: true,
		Lease: 2 * time.Second, Epsilon: 200 * time.Millisecond, Drift: 1.2, Longest: longest,
		Clock: s.clock, Logger: slog.New(slog.NewTextHandler(h, nil)), Hear: s.hear, Outranked: s.outranked,
	}
	for _, c := range change {
		c(&cfg)
	}
	s.id = cfg.Self
	cfg.Dial = func(to storage.ManagerID) (*grpc.ClientConn, error) { return h.dial(s.id, to) }
	g, err := memcatalog.Start(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	s.Group = g
	s.server = grpc.NewServer(wire.ServerOptions()...)
	g.Register(s.server)
	listener := bufconn.Listen(1 << 16)
	h.mu.Lock()
	h.at[s.id] = listener
	h.mu.Unlock()
	go func() { _ = s.server.Serve(listener) }()
	h.t.Cleanup(s.leave)
	return s
}

func (h *hall) dial(from, id storage.ManagerID) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+string(id), append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			h.mu.Lock()
			l := h.at[storage.ManagerID(addr)]
			deaf := h.deaf[from]
			h.mu.Unlock()
			if l == nil || deaf {
				return nil, errors.New("nobody listens")
			}
			return l.DialContext(ctx)
		}))...)
}

func (s *seat) hear(e bylease.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case bylease.Appointed:
		s.term, s.until = e.Term, e.Until
	case bylease.Extended:
		s.until = e.Until
	case bylease.Dismissed:
		if s.term != 0 {
			s.StepDown(s.term, 0) // as the machine has it done
		}
		s.term = 0
	}
	s.heard = append(s.heard, e)
}

func (s *seat) outranked(by leasehold.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rank = by
}

// told returns what it has heard of leadership.
func (s *seat) told() []bylease.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

// leads returns the term in which it leads, and for how much longer; 0 if it does not.
func (s *seat) leads() (leasehold.Term, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.until.Sub(s.clock.Now())
	if left <= 0 {
		return 0, 0
	}
	return s.term, left
}

// stepDown gives up what it leads by, and waits until it is told that it has.
func (s *seat) stepDown() {
	s.hall.t.Helper()
	term, _ := s.leads()
	s.StepDown(term, 0)
	for range 1000 {
		time.Sleep(time.Millisecond)
		if now, _ := s.leads(); now != term {
			return
		}
	}
	s.hall.t.Fatal("it has not given up its lease")
}

func (s *seat) leave() {
	s.hall.mu.Lock()
	if s.hall.at[s.id] != nil {
		delete(s.hall.at, s.id)
	}
	s.hall.mu.Unlock()
	s.server.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = s.Close(ctx)
}

// leader waits until one of them leads, and knows the catalog.
func (h *hall) leader(seats ...*seat) (*seat, *storage.Catalog) {
	h.t.Helper()
	s, c := h.leaderWithin(2*time.Minute, seats...)
	if s == nil {
		h.t.Fatal("nobody leads")
	}
	return s, c
}

// leaderWithin is leader for those who expect that there may be none.
func (h *hall) leaderWithin(d time.Duration, seats ...*seat) (*seat, *storage.Catalog) {
	h.t.Helper()
	for deadline := time.Now().Add(d); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var found []*seat
		for _, s := range seats {
			if term, _ := s.leads(); term != 0 {
				found = append(found, s)
			}
		}
		if len(found) > 1 {
			h.t.Fatalf("%d managers lead", len(found))
		}
		if len(found) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(h.t.Context(), time.Second)
		c, err := found[0].Catalog(ctx)
		cancel()
		if err == nil {
			return found[0], c
		}
	}
	return nil, nil
}

func with(c *storage.Catalog, names ...leasehold.Namespace) *storage.Catalog {
	next := *c
	next.Namespaces = nil
	for _, name := range names {
		next.Namespaces = append(next.Namespaces, storage.Namespace{Name: name, Lease: time.Second})
	}
	return &next
}

func names(c *storage.Catalog) (out []leasehold.Namespace) {
	for _, n := range c.Namespaces {
		out = append(out, n.Name)
	}
	return out
}
