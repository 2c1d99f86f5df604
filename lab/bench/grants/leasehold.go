package grants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A system is a manager whose store is an etcd cluster.
type system struct {
	store   *locks.Etcd
	manager *managers.Group

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
	if s.manager, err = managers.Start(ctx, dir, 1, s.store.Addrs...); err != nil {
		return s, err
	}
	s.Add(s.manager.Close)
	return s, nil
}

func (s *system) cpu() (time.Duration, error) {
	used, err := proc.UsageOf(s.manager.All[0].Pid())
	if err != nil {
		return 0, err
	}
	stored, err := s.store.CPU()
	return used.CPU + stored, err
}

// create creates the namespace of a turn: n ranges; adjacent ones have different owners.
func (s *system) create(ctx context.Context, name string, n, owners int) error {
	config := &leaseholdv1.NamespaceConfig{Name: name, Policy: "static", MaxOwners: uint32(owners)}
	for i := range n {
		slot := &leaseholdv1.StaticSlot{Start: uint64(i) * (math.MaxUint64 / uint64(n)), Owner: locks.Resource(name, i%owners)}
		config.Static = append(config.Static, slot)
	}
	return s.manager.CreateNamespace(ctx, config)
}

func (s *system) delete(ctx context.Context, name string) error {
	return s.manager.On(ctx, 0, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		request := &leaseholdv1.DeleteNamespaceRequest{Version: wire.Version, Name: name}
		_, err := leaseholdv1.NewAdminServiceClient(conn).DeleteNamespace(ctx, request)
		return err
	})
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
	owners := cmp.Or(g.owners, n)
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
		Namespace: leasehold.Namespace(g.name), Managers: g.manager.Addrs(), Name: leasehold.OwnerID(name), Addr: "127.0.0.1:1",
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
