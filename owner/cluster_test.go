package owner

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/driver"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const (
	testNamespace = "presence"
	leaderAddr    = "leader:1"
)

// A network connects owners with managers, by address.
type network struct {
	t  *testing.T
	mu sync.Mutex
	at map[string]*bufconn.Listener
}

func newNetwork(t *testing.T) *network {
	return &network{t: t, at: make(map[string]*bufconn.Listener)}
}

// serve starts a manager at an address, with the server options of production.
func (n *network) serve(addr string, service leaseholdv1.OwnerServiceServer) (stop func()) {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(wire.ServerOptions()...)
	leaseholdv1.RegisterOwnerServiceServer(server, service)
	n.mu.Lock()
	n.at[addr] = listener
	n.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	stop = sync.OnceFunc(func() {
		n.mu.Lock()
		delete(n.at, addr)
		n.mu.Unlock()
		server.Stop()
		<-done
	})
	n.t.Cleanup(stop)
	return stop
}

func (n *network) dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	listener := n.at[addr]
	n.mu.Unlock()
	if listener == nil {
		return nil, errors.New("host is unreachable")
	}
	return listener.DialContext(ctx)
}

// config returns the configuration of an owner in this network.
func (n *network) config(addr string) Config {
	return Config{
		Namespace: testNamespace, Managers: []string{leaderAddr}, Addr: addr,
		Credentials: insecure.NewCredentials(), DialOptions: []grpc.DialOption{grpc.WithContextDialer(n.dial)},
	}
}

// A leader runs the manager machine with a store that never fails.
type leader struct {
	leaseholdv1.UnimplementedOwnerServiceServer
	t      *testing.T
	driver *driver.Driver[manager.Event, manager.Action]

	// revise, if set, changes the replies to owners.
	revise func(*leaseholdv1.HoldResponse)

	mu      sync.Mutex
	streams map[leasehold.Session]grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]
	changes []string
}

func (n *network) lead(cfg manager.Config) (l *leader, stop func()) {
	n.t.Helper()
	l = &leader{t: n.t, streams: make(map[leasehold.Session]grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse])}
	cfg.Namespace, cfg.Self, cfg.Rand = testNamespace, leaderAddr, rand.New(rand.NewPCG(1, 2))
	c := clock.New()
	m, err := manager.New(c.Now(), cfg, 1, mono.Never, &storage.State{})
	if err != nil {
		n.t.Fatal(err)
	}
	l.driver = driver.New[manager.Event, manager.Action](c, m, 1024, l.act)
	ctx, cancel := context.WithCancel(context.Background())
	go l.driver.Run(ctx)
	n.t.Cleanup(func() { cancel(); <-l.driver.Done() })
	return l, n.serve(leaderAddr, l)
}

func (l *leader) Hold(stream grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]) error {
	for {
		in, err := stream.Recv()
		if err != nil {
			return err
		}
		r, err := wire.ToLeaseRequest(in, protocol.DefaultLimits)
		if err != nil {
			return wire.FromError(err)
		}
		l.mu.Lock()
		l.streams[r.Holder.Session] = stream
		l.mu.Unlock()
		l.driver.Post(stream.Context(), manager.Request{LeaseRequest: r})
	}
}

func (l *leader) act(_ mono.Instant, actions []manager.Action) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range actions {
		switch a := a.(type) {
		case manager.Send:
			if stream := l.streams[a.Reply.Session]; stream != nil {
				reply := wire.FromLeaseReply(a.Reply)
				if l.revise != nil {
					l.revise(reply)
				}
				_ = stream.Send(reply) // a broken stream drops messages
			}
		case manager.Commit:
			for i := range a.Batch.Changes {
				l.changes = append(l.changes, a.Batch.Changes[i].String())
			}
			if !l.driver.Offer(manager.Committed{Outcome: storage.Done}) {
				l.t.Error("the leader's queue is full")
			}
		}
	}
}

// committed returns the number of committed changes that contain a word.
func (l *leader) committed(word string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, c := range l.changes {
		if strings.Contains(c, word) {
			count++
		}
	}
	return count
}

// A script is a manager that replies to every request by a function.
type script struct {
	leaseholdv1.UnimplementedOwnerServiceServer
	answer func(*leaseholdv1.HoldRequest) *leaseholdv1.HoldResponse // nil: no reply
}

func (s script) Hold(stream grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]) error {
	for {
		in, err := stream.Recv()
		if err != nil {
			return err
		}
		if out := s.answer(in); out != nil {
			if err := stream.Send(out); err != nil {
				return err
			}
		}
	}
}

// An eventLog records callbacks and log lines in order.
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

func (d *eventLog) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *eventLog) count(part string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, line := range d.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// Write records log lines.
func (d *eventLog) Write(line []byte) (int, error) {
	d.add(string(line))
	return len(line), nil
}

func (d *eventLog) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(d, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// keys returns keys from all parts of the key space.
func keys() []leasehold.Key {
	out := make([]leasehold.Key, 256)
	for i := range out {
		out[i] = leasehold.Key(i) << 56
	}
	return out
}

// holds returns the number of keys on which Check succeeds.
func holds(o *Owner) int {
	n := 0
	for _, k := range keys() {
		if _, ok := o.Check(k); ok {
			n++
		}
	}
	return n
}
