package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

const roleManager = "manager"

// ManagerMember is a manager in a separate process, whose store is an etcd cluster. It is
// exported for net/rpc.
type ManagerMember struct {
	m     *manager.Manager
	store *etcd.Store
	addr  string
}

func startManager(ctx context.Context, endpoints []string) (*ManagerMember, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	ctx, cancel := context.WithTimeout(ctx, proc.StartLimit)
	defer cancel()
	s, err := etcd.Open(ctx, etcd.Config{Endpoints: endpoints, Logger: log})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	m, err := manager.Start(manager.Config{Store: s, Listener: l, Logger: log})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &ManagerMember{m, s, l.Addr().String()}, nil
}

// Addr returns the address for clients.
func (m *ManagerMember) Addr() string { return m.addr }

// Close closes the manager, and then its store.
func (m *ManagerMember) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), proc.EndLimit/2)
	defer cancel()
	return errors.Join(m.m.Close(ctx), m.store.Close())
}

// connections is the number of connections that sharers use, as many as etcd's clients.
const connections = 4

type system struct {
	store   *locks.Etcd
	manager *proc.Process
	conns   []*grpc.ClientConn

	proc.Cleanup
}

func startSystem(ctx context.Context, members int, dir string, fsync bool) (s *system, err error) {
	s = &system{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.store, err = locks.StartEtcd(ctx, members, dir, fsync); err != nil {
		return s, err
	}
	s.Add(s.store.Close)
	if s.manager, err = proc.Start(ctx, roleManager, s.store.Addrs); err != nil {
		return s, err
	}
	s.Add(s.manager.Close)
	for range connections {
		conn, err := proc.Dial(s.manager.Addr)
		if err != nil {
			return s, err
		}
		s.Add(func() { _ = conn.Close() })
		s.conns = append(s.conns, conn)
	}
	return s, nil
}

func (s *system) cpu() (time.Duration, error) {
	used, err := proc.Group{s.manager}.CPU()
	if err != nil {
		return 0, err
	}
	stored, err := s.store.CPU()
	return used + stored, err
}

// create creates the namespace of a turn: n ranges; adjacent ones have different owners.
func (s *system) create(ctx context.Context, name string, n, owners int) error {
	config := &leaseholdv1.NamespaceConfig{Name: name, Policy: "static", MaxOwners: uint32(owners)}
	for i := range n {
		slot := &leaseholdv1.StaticSlot{Start: uint64(i) * (math.MaxUint64 / uint64(n)), Owner: locks.Resource(name, i%owners)}
		config.Static = append(config.Static, slot)
	}
	return proc.CreateNamespace(ctx, s.conns[0], config)
}

func (s *system) delete(ctx context.Context, name string) error {
	admin := leaseholdv1.NewAdminServiceClient(s.conns[0])
	_, err := admin.DeleteNamespace(ctx, &leaseholdv1.DeleteNamespaceRequest{Version: wire.Version, Name: name})
	return wire.ToError(err)
}

const limit = 90 * time.Second

// newcomers are owners of the library that are started at the same time, each with its own
// connection.
type newcomers struct {
	*system
	owners int // 0: one per lease

	mu     sync.Mutex
	name   string
	joined []*owner.Owner
}

// Acquire waits until each owner has all its ranges.
func (g *newcomers) Acquire(ctx context.Context, n int, name string) (locks.Turn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("not all leases were granted in time"))
	defer cancel()
	owners := g.owners
	if owners == 0 {
		owners = n
	}
	g.name = name
	if err := g.create(ctx, name, n, owners); err != nil {
		return locks.Turn{}, err
	}
	return locks.Measure(g.cpu, func() (int, error) {
		var got atomic.Int64
		all := make(chan struct{})
		granted := func(leases []leasehold.Lease) {
			if now := got.Add(int64(len(leases))); now >= int64(n) && now-int64(len(leases)) < int64(n) {
				close(all)
			}
		}
		if err := proc.Each(owners, func(i int) error { return g.join(ctx, locks.Resource(name, i), granted) }); err != nil {
			return 0, err
		}
		select {
		case <-all:
			return n, nil
		case <-ctx.Done():
			return 0, fmt.Errorf("%d of %d leases: %w", got.Load(), n, context.Cause(ctx))
		}
	})
}

// join joins an owner, without proof of the end of its predecessor: a thousand owners share this
// process.
func (g *newcomers) join(ctx context.Context, name string, granted func([]leasehold.Lease)) error {
	o, err := owner.Join(ctx, owner.Config{
		Namespace: leasehold.Namespace(g.name), Managers: []string{g.manager.Addr}, Name: leasehold.OwnerID(name), Addr: "127.0.0.1:1",
		OnGrant: granted, WaitForPredecessor: true,
	})
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joined = append(g.joined, o)
	return nil
}

func (g *newcomers) Release(ctx context.Context) error {
	joined := g.joined
	g.joined = nil
	ended, leave := context.WithCancel(ctx)
	leave() // without waiting for acks
	_ = proc.Each(len(joined), func(i int) error { return joined[i].Close(ended) })
	return g.delete(ctx, g.name)
}

// sharers are owners that share a few connections, like the clients of etcd: each client joins
// one owner after the other, and they stay and renew. They implement only the protocol, like the
// clients of lock services.
type sharers struct {
	*system
	limit time.Duration
	clock *clock.Clock

	mu     sync.Mutex
	name   string
	joined []*sharer
}

// Acquire joins n owners, or as many as possible within the limit, and waits for their grants.
func (g *sharers) Acquire(ctx context.Context, n int, name string) (locks.Turn, error) {
	g.name = name
	if err := g.create(ctx, name, n, n); err != nil {
		return locks.Turn{}, err
	}
	return locks.Swarm{Servers: g.cpu, Limit: g.limit}.Run(ctx, n, name, func(ctx context.Context, client int, resource string) error {
		o, err := g.join(client, resource)
		if err != nil {
			return err
		}
		g.mu.Lock()
		g.joined = append(g.joined, o)
		g.mu.Unlock()
		return o.await(ctx, o.Granted)
	})
}

func (g *sharers) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	joined := g.joined
	g.joined = nil
	return errors.Join(proc.Each(len(joined), func(i int) error { return joined[i].leave(ctx) }), g.delete(ctx, g.name))
}

// A sharer is an owner on a stream of a shared connection.
type sharer struct {
	*loadgen.Owner
	stream grpc.BidiStreamingClient[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]
	hangUp context.CancelFunc
	broken chan error // the error that ended the stream
}

func (g *sharers) join(client int, name string) (o *sharer, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	o = &sharer{hangUp: cancel, broken: make(chan error, 1)}
	if o.stream, err = leaseholdv1.NewOwnerServiceClient(g.conns[client%len(g.conns)]).Hold(ctx); err != nil {
		return nil, err
	}
	o.Owner, err = loadgen.NewOwner(loadgen.OwnerConfig{
		Clock: g.clock, Namespace: leasehold.Namespace(g.name), Name: leasehold.OwnerID(name), Addr: "127.0.0.1:1",
		Send: func(request *leaseholdv1.HoldRequest) { _ = o.stream.Send(request) }, // Recv returns the error
	})
	if err != nil {
		return nil, err
	}
	o.Begin()
	go func() { o.broken <- o.read() }()
	return o, nil
}

func (o *sharer) read() error {
	for {
		r, err := o.stream.Recv()
		if err != nil {
			return err
		}
		if r.GetGrant() == nil {
			continue // not served yet: the machine retries
		}
		if err := o.Receive(r.GetGrant()); err != nil {
			return err
		}
	}
}

func (o *sharer) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case err := <-o.broken:
		return fmt.Errorf("the stream of %s ended: %w", o.Name, err)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", o.Name, context.Cause(ctx))
	}
}

func (o *sharer) leave(ctx context.Context) error {
	err := o.await(ctx, o.Leave())
	o.End()
	o.hangUp()
	return err
}
