package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Who grants.
const (
	nameJoins         = "leasehold, an owner per lease"
	nameNewcomers     = "leasehold, an owner per lease, with its connection"
	nameLeases        = "leasehold, 256 owners"
	nameEtcdLock      = "etcd lease and put-if-absent"
	nameEtcdNewcomers = "etcd lease and put-if-absent, with its connection"
	nameEtcdPut       = "etcd put-if-absent, lease per client"
	nameEtcdMutex     = "etcd mutex"
	nameZooKeeper     = "ZooKeeper ephemeral node"
)

// A service grants leases.
type service interface {
	// Acquire acquires n leases, or as many as there is time for, under names that
	// begin with name, which is new.
	Acquire(ctx context.Context, n int, name string) (cast.Turn, error)
	// Release gives back what the last turn acquired. Nobody measures it.
	Release(ctx context.Context) error
}

// An entry is a service under a name, and how many leases a turn has.
type entry struct {
	name  string
	batch int
	service
}

// An arena is everyone, each with three processes that keep what was granted.
type arena struct {
	all       []entry
	zooKeeper string // its version

	mu      sync.Mutex
	closers []func()
}

// The leases of a turn. Those who bring a connection each are a thousand. There are
// as many ranges as a namespace may be told the owners of. Lock services' clients go
// on until a turn is over.
const (
	arriving = 1_000
	leases   = 4_096
	endless  = 1 << 20
)

// open starts everyone at the same time: most of it is waiting for elections.
func open(ctx context.Context, dir string, fsync bool, turn time.Duration, skip func(string, error)) (*arena, error) {
	a := &arena{}
	openers := []func() ([]entry, error){
		func() ([]entry, error) { return a.openLeasehold(ctx, filepath.Join(dir, "store"), fsync, turn) },
		func() ([]entry, error) { return a.openEtcd(ctx, filepath.Join(dir, "etcd"), fsync, turn) },
	}
	if err := cast.HaveZooKeeper(); err != nil {
		skip("ZooKeeper", err)
	} else {
		openers = append(openers, func() ([]entry, error) { return a.openZooKeeper(ctx, filepath.Join(dir, "zookeeper"), fsync, turn) })
	}
	opened := make([][]entry, len(openers))
	err := cast.Each(len(openers), func(i int) (err error) {
		opened[i], err = openers[i]()
		return err
	})
	if err != nil {
		a.close()
		return nil, err
	}
	a.all = slices.Concat(opened...)
	return a, nil
}

// closes remembers what to end.
func (a *arena) closes(what func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closers = append(a.closers, what)
}

// openLeasehold starts one manager for three ways to use it.
func (a *arena) openLeasehold(ctx context.Context, dir string, fsync bool, turn time.Duration) ([]entry, error) {
	s, err := beginSystem(ctx, 3, dir, fsync)
	if err != nil {
		return nil, fmt.Errorf("leasehold: %w", err)
	}
	a.closes(s.close)
	return []entry{
		{nameJoins, leases, &sharers{space: space{system: s}, limit: turn, clock: clock.New()}},
		{nameNewcomers, arriving, &newcomers{space: space{system: s}}},
		{nameLeases, leases, &newcomers{space: space{system: s}, owners: cast.Clients}},
	}, nil
}

// openEtcd starts one cluster for four ways to use it.
func (a *arena) openEtcd(ctx context.Context, dir string, fsync bool, turn time.Duration) ([]entry, error) {
	c, err := cast.BeginEtcd(ctx, dir, fsync, turn)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	a.closes(c.Close)
	perClient, err := cast.NewEtcdPerClient(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	mutex, err := cast.NewEtcdMutex(c)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	return []entry{
		{nameEtcdLock, endless, &cast.EtcdPerLock{Etcd: c}},
		{nameEtcdNewcomers, arriving, &cast.EtcdNewcomers{Etcd: c}},
		{nameEtcdPut, endless, perClient},
		{nameEtcdMutex, endless, mutex},
	}, nil
}

func (a *arena) openZooKeeper(ctx context.Context, dir string, fsync bool, turn time.Duration) ([]entry, error) {
	z, err := cast.BeginZooKeeper(ctx, dir, fsync, turn)
	if err != nil {
		return nil, fmt.Errorf("ZooKeeper: %w", err)
	}
	a.closes(z.Close)
	a.zooKeeper = z.Version
	return []entry{{nameZooKeeper, endless, z}}, nil
}

// close ends all at the same time.
func (a *arena) close() {
	_ = cast.Each(len(a.closers), func(i int) error {
		a.closers[i]()
		return nil
	})
}
