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

// A cluster is managers of one or more groups, with a network in memory.
type cluster struct {
	t   *testing.T
	net flease.Memory

	mu       sync.Mutex
	at       map[storage.ManagerID]*bufconn.Listener
	isolated map[storage.ManagerID]bool // calls from it fail
	logs     strings.Builder
}

// A member is a manager of a cluster.
type member struct {
	*memcatalog.Group
	cluster *cluster
	id      storage.ManagerID
	clock   *clock.Clock
	server  *grpc.Server

	mu       sync.Mutex
	notified []bylease.Event
	term     leasehold.Term // 0 unless it leads
	until    mono.Instant
	rank     leasehold.Term // the newest argument of Outranked
}

func inBubble(t *testing.T, test func(t *testing.T, cl *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		test(t, &cluster{t: t, at: map[storage.ManagerID]*bufconn.Listener{}, isolated: map[storage.ManagerID]bool{}})
	})
}

// Write appends to the managers' log.
func (cl *cluster) Write(line []byte) (int, error) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.logs.Write(line)
}

func (cl *cluster) log() string {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.logs.String()
}

func (cl *cluster) logged(what string) bool { return strings.Contains(cl.log(), what) }

func ids(n int) (out []memcatalog.Peer) {
	for i := range n {
		out = append(out, memcatalog.Peer{Manager: storage.ManagerID(fmt.Sprintf("m%d:7400", i)), Addr: fmt.Sprintf("m%d:7400", i)})
	}
	return out
}

// enter starts a manager of a group of three.
func (cl *cluster) start(i int, change ...func(*memcatalog.Config)) *member {
	cl.t.Helper()
	return cl.startAs(ids(3)[i].Manager, change...)
}

// enterAs starts a manager of some name.
func (cl *cluster) startAs(self storage.ManagerID, change ...func(*memcatalog.Config)) *member {
	cl.t.Helper()
	s := &member{cluster: cl, clock: clock.New()}
	cfg := memcatalog.Config{
		Self: self, Peers: ids(3), Transport: &cl.net, Secure: true,
		Lease: 2 * time.Second, Epsilon: 200 * time.Millisecond, Drift: 1.2, Longest: longest,
		Clock: s.clock, Logger: slog.New(slog.NewTextHandler(cl, nil)), Notify: s.notify, Outranked: s.outranked,
	}
	for _, c := range change {
		c(&cfg)
	}
	s.id = cfg.Self
	cfg.Dial = func(to storage.ManagerID) (*grpc.ClientConn, error) { return cl.dial(s.id, to) }
	g, err := memcatalog.Start(cfg)
	if err != nil {
		cl.t.Fatal(err)
	}
	s.Group = g
	s.server = grpc.NewServer(wire.ServerOptions()...)
	g.Register(s.server)
	listener := bufconn.Listen(1 << 16)
	cl.mu.Lock()
	cl.at[s.id] = listener
	cl.mu.Unlock()
	go func() { _ = s.server.Serve(listener) }()
	cl.t.Cleanup(s.stop)
	return s
}

func (cl *cluster) dial(from, id storage.ManagerID) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+string(id), append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			cl.mu.Lock()
			l := cl.at[storage.ManagerID(addr)]
			isolated := cl.isolated[from]
			cl.mu.Unlock()
			if l == nil || isolated {
				return nil, errors.New("connection refused")
			}
			return l.DialContext(ctx)
		}))...)
}

func (s *member) notify(e bylease.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case bylease.Appointed:
		s.term, s.until = e.Term, e.Until
	case bylease.Extended:
		s.until = e.Until
	case bylease.Dismissed:
		if s.term != 0 {
			s.StepDown(s.term, 0) // as the machine requests
		}
		s.term = 0
	}
	s.notified = append(s.notified, e)
}

func (s *member) outranked(by leasehold.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rank = by
}

// events returns the events that it received.
func (s *member) events() []bylease.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.notified)
}

// leads returns the term in which it leads and the remaining time, 0 if it does not lead.
func (s *member) leads() (leasehold.Term, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.until.Sub(s.clock.Now())
	if left <= 0 {
		return 0, 0
	}
	return s.term, left
}

// stepDown releases the lease of leadership, and waits for the event.
func (s *member) stepDown() {
	s.cluster.t.Helper()
	term, _ := s.leads()
	s.StepDown(term, 0)
	for range 1000 {
		time.Sleep(time.Millisecond)
		if now, _ := s.leads(); now != term {
			return
		}
	}
	s.cluster.t.Fatal("the lease is not released after a second")
}

func (s *member) stop() {
	s.cluster.mu.Lock()
	if s.cluster.at[s.id] != nil {
		delete(s.cluster.at, s.id)
	}
	s.cluster.mu.Unlock()
	s.server.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = s.Close(ctx)
}

// leader waits until one of the members leads and has the catalog.
func (cl *cluster) leader(members ...*member) (*member, *storage.Catalog) {
	cl.t.Helper()
	s, c := cl.leaderWithin(2*time.Minute, members...)
	if s == nil {
		cl.t.Fatal("no leader after 2 minutes")
	}
	return s, c
}

// leaderWithin is leader with a timeout, after which it returns nil.
func (cl *cluster) leaderWithin(d time.Duration, members ...*member) (*member, *storage.Catalog) {
	cl.t.Helper()
	for deadline := time.Now().Add(d); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var found []*member
		for _, s := range members {
			if term, _ := s.leads(); term != 0 {
				found = append(found, s)
			}
		}
		if len(found) > 1 {
			cl.t.Fatalf("%d managers lead", len(found))
		}
		if len(found) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(cl.t.Context(), time.Second)
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
