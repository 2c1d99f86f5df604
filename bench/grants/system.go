package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// connections is how many owners share that share some, as etcd's clients do.
const connections = 4

// A system is a manager and the cluster of its store.
type system struct {
	store   *cast.Etcd
	manager cast.Group
	conns   []*grpc.ClientConn
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
	for i := 0; i < connections && err == nil; i++ {
		var conn *grpc.ClientConn
		conn, err = grpc.NewClient("passthrough:///"+s.addr(), append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err == nil {
			s.conns = append(s.conns, conn)
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *system) addr() string { return s.manager[0].Info() }

func (s *system) admin() leaseholdv1.AdminServiceClient {
	return leaseholdv1.NewAdminServiceClient(s.conns[0])
}

// cpu is what the manager and its store have used.
func (s *system) cpu() (time.Duration, error) {
	of, err := s.manager.CPU()
	if err != nil {
		return 0, err
	}
	stored, err := s.store.CPU()
	return of + stored, err
}

func (s *system) close() {
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.manager.Close()
	s.store.Close()
}

// A space is the namespace of a turn, which says who has which range, and the owners
// that have joined it.
type space struct {
	*system
	name string

	mu     sync.Mutex
	joined []*owner.Owner
}

// create makes the namespace, of n ranges whose neighbours have different owners.
func (s *space) create(ctx context.Context, name string, n, owners int) error {
	s.name = name
	config := &leaseholdv1.NamespaceConfig{Name: name, Policy: "static", MaxOwners: uint32(owners)}
	for i := range n {
		config.Static = append(config.Static, &leaseholdv1.StaticSlot{Start: uint64(i) * (math.MaxUint64 / uint64(n)), Owner: s.owner(i % owners)})
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for { // until it leads
		_, err := s.admin().CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
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

// owner is the name of one, as a swarm calls its resources.
func (s *space) owner(i int) string { return fmt.Sprintf("%s-%06d", s.name, i) }

// join lets an owner join. It does not read from the system which process it is, which
// an owner does once: here a thousand are one.
func (s *space) join(ctx context.Context, name string, granted func([]leasehold.Lease)) error {
	o, err := owner.Join(ctx, owner.Config{
		Namespace: leasehold.Namespace(s.name), Managers: []string{s.addr()}, Name: leasehold.OwnerID(name), Addr: "127.0.0.1:1",
		OnGrant: granted, WaitForPredecessor: true,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined = append(s.joined, o)
	return nil
}

// Release lets all leave, and deletes the namespace.
func (s *space) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cast.OrderLimit)
	defer cancel()
	joined := s.joined
	s.joined = nil
	ended, leave := context.WithCancel(ctx)
	leave() // nobody wants what they have: none waits until all know
	_ = cast.Each(len(joined), func(i int) error { return joined[i].Close(ended) })
	_, err := s.admin().DeleteNamespace(ctx, &leaseholdv1.DeleteNamespaceRequest{Version: wire.Version, Name: s.name})
	return wire.ToError(err)
}
