package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A system is a manager and the cluster of its store.
type system struct {
	store   *cast.Etcd
	manager cast.Group
	conn    *grpc.ClientConn
	admin   leaseholdv1.AdminServiceClient
}

func beginSystem(ctx context.Context, members int, dir string, fsync bool) (*system, error) {
	cluster, err := cast.BeginEtcdOf(ctx, members, dir, fsync, 0)
	if err != nil {
		return nil, err
	}
	s := &system{store: cluster}
	s.manager, err = cast.BeginGroup(ctx, "manager", 1, func(int) []string {
		return []string{"-etcd", strings.Join(cluster.Addrs(), ",")}
	})
	if err == nil {
		s.conn, err = grpc.NewClient("passthrough:///"+s.addr(), append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	s.admin = leaseholdv1.NewAdminServiceClient(s.conn)
	return s, nil
}

func (s *system) addr() string { return s.manager[0].Info() }

func (s *system) cpu() (time.Duration, error) {
	of, err := s.manager.CPU()
	if err != nil {
		return 0, err
	}
	stored, err := s.store.CPU()
	return of + stored + cast.CPUTime(), err
}

func (s *system) close() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	s.manager.Close()
	s.store.Close()
}

// A grantee acquires as owners do: they join a namespace that says who has which
// range, are granted theirs, and leave. Each turn has a namespace of its own.
type grantee struct {
	*system
	owners int // that join; 0: as many as there are leases
	name   string
	joined []*owner.Owner
}

// Acquire lets owners join, all at the same time, and waits until each has all its
// ranges. The namespace is there before.
func (g *grantee) Acquire(ctx context.Context, n int, name string) (cast.Turn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cast.OrderLimit, errors.New("not all leases were granted in time"))
	defer cancel()
	owners := g.owners
	if owners == 0 {
		owners = n
	}
	g.name = name
	if err := g.create(ctx, n, owners); err != nil {
		return cast.Turn{}, err
	}
	before, err := g.cpu()
	if err != nil {
		return cast.Turn{}, err
	}
	a := arrivals{want: int64(n), all: make(chan struct{})}
	begin := time.Now()
	err = g.join(ctx, owners, &a)
	if err == nil {
		select {
		case <-a.all:
		case <-ctx.Done():
			err = fmt.Errorf("%d of %d leases: %w", a.got.Load(), n, context.Cause(ctx))
		}
	}
	took := time.Since(begin)
	if err != nil {
		return cast.Turn{}, err
	}
	after, err := g.cpu()
	return cast.Turn{Leases: n, Took: took, CPU: after - before}, err
}

// arrivals counts leases.
type arrivals struct {
	want int64
	got  atomic.Int64
	all  chan struct{}
}

func (a *arrivals) add(leases []leasehold.Lease) {
	n := int64(len(leases))
	if got := a.got.Add(n); got >= a.want && got-n < a.want {
		close(a.all)
	}
}

func (g *grantee) join(ctx context.Context, owners int, a *arrivals) error {
	var mu sync.Mutex
	return cast.Each(owners, func(i int) error {
		o, err := owner.Join(ctx, owner.Config{
			Namespace: leasehold.Namespace(g.name), Managers: []string{g.addr()}, Name: leasehold.OwnerID(ownerName(i)), Addr: fmt.Sprintf("127.0.0.1:%d", i+1),
			OnGrant: a.add,
		})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		g.joined = append(g.joined, o)
		return nil
	})
}

func ownerName(i int) string { return fmt.Sprintf("owner-%05d", i) }

// create makes a namespace of n ranges, whose neighbours have different owners.
func (g *grantee) create(ctx context.Context, n, owners int) error {
	config := &leaseholdv1.NamespaceConfig{Name: g.name, Policy: "static", MaxOwners: uint32(owners)}
	for i := range n {
		config.Static = append(config.Static, &leaseholdv1.StaticSlot{Start: uint64(i) * (math.MaxUint64 / uint64(n)), Owner: ownerName(i % owners)})
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for { // until it leads
		_, err := g.admin.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
		err = wire.ToError(err)
		if kind := leasehold.KindOf(err); kind != leasehold.Unavailable && kind != leasehold.NotLeader {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// Release lets all leave, and deletes the namespace.
func (g *grantee) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cast.OrderLimit)
	defer cancel()
	joined := g.joined
	g.joined = nil
	ended, leave := context.WithCancel(ctx)
	leave() // nobody wants what they have: none waits until all know
	_ = cast.Each(len(joined), func(i int) error { return joined[i].Close(ended) })
	_, err := g.admin.DeleteNamespace(ctx, &leaseholdv1.DeleteNamespaceRequest{Version: wire.Version, Name: g.name})
	return wire.ToError(err)
}
