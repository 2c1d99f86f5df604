package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/flease"
)

// The contestants' names, in tables and plots.
const (
	nameFlease        = "flease"
	nameSealed        = "flease, sealed"
	nameFloor         = "datagrams alone"
	nameEtcd          = "etcd"
	nameEtcdClient    = "etcd, lease per client"
	nameEtcdSync      = "etcd, fsync"
	nameZooKeeper     = "ZooKeeper"
	nameZooKeeperSync = "ZooKeeper, fsync"

	nameWidth = len(nameEtcdClient)
)

// whatItDoes says what one acquisition is.
func whatItDoes(name string) string {
	switch name {
	case nameFlease:
		return "a lease agreed upon by 2 of 3 processes, AcquireAll"
	case nameSealed:
		return "the same, packets encrypted and authenticated"
	case nameFloor:
		return "two rounds of questions and answers, 64 in a datagram, no leases"
	case nameEtcd:
		return "a lease granted, a key put if it is absent; UnsafeNoFsync"
	case nameEtcdClient:
		return "a key put if it is absent, under the client's one lease; UnsafeNoFsync"
	case nameEtcdSync:
		return "a lease granted, a key put if it is absent"
	case nameZooKeeper:
		return "an ephemeral node created; forceSync=no"
	case nameZooKeeperSync:
		return "an ephemeral node created"
	}
	return ""
}

// An arena is all who take part, each as three processes on this computer.
type arena struct {
	all       []entry
	zooKeeper string // its version
	skipped   []string
}

// An opener starts contestants; several, if they share processes.
type opener func(ctx context.Context) ([]entry, error)

// openArena starts everyone at the same time. Lock services keep their data under
// dir, and begin nothing new when a turn has lasted for as long as it should.
func openArena(ctx context.Context, dir string, length time.Duration) (*arena, error) {
	a := &arena{}
	openers := []opener{
		one(nameFlease, func(ctx context.Context) (contestant, error) {
			return beginFlease(ctx, proposers, flease.DefaultLease, false)
		}),
		one(nameSealed, func(ctx context.Context) (contestant, error) {
			return beginFlease(ctx, proposers, flease.DefaultLease, true)
		}),
		one(nameFloor, func(ctx context.Context) (contestant, error) { return beginFloor(ctx) }),
		func(ctx context.Context) ([]entry, error) {
			return openEtcd(ctx, filepath.Join(dir, "etcd"), length)
		},
		one(nameEtcdSync, func(ctx context.Context) (contestant, error) {
			c, err := cast.BeginEtcd(ctx, filepath.Join(dir, "etcd-fsync"), true, length)
			return locks{&cast.EtcdPerLock{Etcd: c}}, err
		}),
	}
	if err := cast.HaveZooKeeper(); err != nil {
		a.skipped = append(a.skipped, "ZooKeeper: "+err.Error())
	} else {
		for _, fsync := range []bool{false, true} {
			openers = append(openers, a.zooKeeperOpener(dir, fsync, length))
		}
	}
	err := a.open(ctx, openers)
	return a, err
}

// one starts one contestant.
func one(name string, begin func(context.Context) (contestant, error)) opener {
	return func(ctx context.Context) ([]entry, error) {
		c, err := begin(ctx)
		if err != nil {
			return nil, err
		}
		return []entry{{name, c}}, nil
	}
}

// openEtcd starts one cluster for two ways to use it.
func openEtcd(ctx context.Context, dir string, length time.Duration) ([]entry, error) {
	c, err := cast.BeginEtcd(ctx, dir, false, length)
	if err != nil {
		return nil, err
	}
	perClient, err := cast.NewEtcdPerClient(ctx, c)
	if err != nil {
		c.Close()
		return nil, err
	}
	return []entry{{nameEtcd, locks{&cast.EtcdPerLock{Etcd: c}}}, {nameEtcdClient, locks{perClient}}}, nil
}

func (a *arena) zooKeeperOpener(dir string, fsync bool, length time.Duration) opener {
	name, under := nameZooKeeper, filepath.Join(dir, "zookeeper")
	if fsync {
		name, under = nameZooKeeperSync, filepath.Join(dir, "zookeeper-fsync")
	}
	return one(name, func(ctx context.Context) (contestant, error) {
		z, err := cast.BeginZooKeeper(ctx, under, fsync, length)
		if err == nil && !fsync {
			a.zooKeeper = z.Version
		}
		return locks{z}, err
	})
}

// open starts all, or none.
func (a *arena) open(ctx context.Context, openers []opener) error {
	opened := make([][]entry, len(openers))
	err := cast.Each(len(openers), func(i int) (err error) {
		opened[i], err = openers[i](ctx)
		return err
	})
	for _, entries := range opened {
		a.all = append(a.all, entries...)
	}
	if err != nil {
		a.close()
	}
	return err
}

// named returns those of the names that take part, in the order of the names.
func (a *arena) named(names ...string) []entry {
	var found []entry
	for _, name := range names {
		for _, e := range a.all {
			if e.name == name {
				found = append(found, e)
			}
		}
	}
	return found
}

func (a *arena) close() {
	_ = cast.Each(len(a.all), func(i int) error {
		a.all[i].close()
		return nil
	})
}
