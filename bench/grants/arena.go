package main

import (
	"context"
	"fmt"
	"path/filepath"
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
	closers   []func()
}

// The leases of a turn. Those who bring a connection each are a thousand. There are
// as many ranges as a namespace may be told the owners of. Lock services' clients go
// on until a turn is over.
const (
	arriving = 1_000
	leases   = 4_096
	endless  = 1 << 20
)

func open(ctx context.Context, dir string, fsync bool, turn time.Duration, skip func(string, error)) (a *arena, err error) {
	a = &arena{}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	s, err := beginSystem(ctx, 3, filepath.Join(dir, "store"), fsync)
	if err != nil {
		return nil, fmt.Errorf("leasehold: %w", err)
	}
	a.closers = append(a.closers, s.close)
	a.all = append(a.all,
		entry{nameJoins, leases, &sharers{space: space{system: s}, limit: turn, clock: clock.New()}},
		entry{nameNewcomers, arriving, &newcomers{space: space{system: s}}},
		entry{nameLeases, leases, &newcomers{space: space{system: s}, owners: cast.Clients}})
	if err := a.openEtcd(ctx, filepath.Join(dir, "etcd"), fsync, turn); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	if err := cast.HaveZooKeeper(); err != nil {
		skip("ZooKeeper", err)
		return a, nil
	}
	z, err := cast.BeginZooKeeper(ctx, filepath.Join(dir, "zookeeper"), fsync, turn)
	if err != nil {
		return nil, fmt.Errorf("ZooKeeper: %w", err)
	}
	a.closers = append(a.closers, z.Close)
	a.zooKeeper = z.Version
	a.all = append(a.all, entry{nameZooKeeper, endless, z})
	return a, nil
}

// openEtcd starts one cluster for four ways to use it.
func (a *arena) openEtcd(ctx context.Context, dir string, fsync bool, turn time.Duration) error {
	c, err := cast.BeginEtcd(ctx, dir, fsync, turn)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, c.Close)
	perClient, err := cast.NewEtcdPerClient(ctx, c)
	if err != nil {
		return err
	}
	mutex, err := cast.NewEtcdMutex(c)
	if err != nil {
		return err
	}
	a.all = append(a.all,
		entry{nameEtcdLock, endless, &cast.EtcdPerLock{Etcd: c}},
		entry{nameEtcdNewcomers, arriving, &cast.EtcdNewcomers{Etcd: c}},
		entry{nameEtcdPut, endless, perClient},
		entry{nameEtcdMutex, endless, mutex})
	return nil
}

// close ends all at the same time.
func (a *arena) close() {
	_ = cast.Each(len(a.closers), func(i int) error {
		a.closers[i]()
		return nil
	})
}
