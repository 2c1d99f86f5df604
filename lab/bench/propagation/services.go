package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// The contestants.
const (
	nameLeasehold = "leasehold"
	nameEtcd      = "etcd watch"
	namePush      = "bare gRPC push"
)

// patience is how long a change may take before it is taken to be lost.
const patience = 60 * time.Second

const (
	roleManager   = "manager"
	rolePusher    = "pusher"
	roleListeners = "listeners"
)

func roles() map[string]proc.Role {
	all := locks.Roles()
	all[roleManager] = proc.RoleOf(startManager)
	all[rolePusher] = proc.RoleOf(startPusher)
	all[roleListeners] = proc.RoleOf(startListeners)
	return all
}

// A Change is when it began, and its number.
type Change struct {
	Begin  time.Time
	Number uint64
}

// A service is a server, in a process of its own, whose changes listeners receive.
type service struct {
	name string
	addr string
	// change makes a change of so many bytes, if it has a choice.
	change func(ctx context.Context, bytes int) (Change, error)
	// undo makes another change possible. It returns the last number that listeners
	// will receive. nil if there is nothing to do.
	undo  func() (uint64, error)
	close func()
	bytes int // of a message beside the value, for etcd
}

// A starter starts a service.
type starter struct {
	name  string
	start func(ctx context.Context, dir string, s size) (*service, error)
}

func starters() []starter {
	return []starter{{nameLeasehold, startLeasehold}, {nameEtcd, startEtcd}, {namePush, startPush}}
}

// startProcess starts a service that is a process with a method Change.
func startProcess(ctx context.Context, role string, config any) (*service, *proc.Process, error) {
	p, err := proc.Start(ctx, role, config)
	if err != nil {
		return nil, nil, err
	}
	s := &service{
		change: func(_ context.Context, bytes int) (c Change, err error) {
			err = p.Call("Change", bytes, &c)
			return c, err
		},
		addr: p.Addr, close: p.Close,
	}
	return s, p, nil
}

func startLeasehold(ctx context.Context, _ string, s size) (*service, error) {
	served, p, err := startProcess(ctx, roleManager, s.listeners+few)
	if err == nil {
		served.undo = func() (uint64, error) {
			var c Change
			err := p.Call("Undo", nil, &c)
			return c.Number, err
		}
	}
	return served, err
}

func startPush(ctx context.Context, _ string, _ size) (*service, error) {
	s, _, err := startProcess(ctx, rolePusher, nil)
	return s, err
}

const etcdKey = "table"

// etcdOverhead is what a WatchResponse has beside the value: a header, an event, a
// key with three revisions.
const etcdOverhead = 60

// startEtcd starts one member of etcd that does not wait for its disk, as the manager
// does not.
func startEtcd(ctx context.Context, dir string, s size) (*service, error) {
	cluster, err := locks.StartEtcd(ctx, 1, filepath.Join(dir, fmt.Sprintf("etcd-%d-%d", s.listeners, s.conns)), false)
	if err != nil {
		return nil, err
	}
	served := &service{addr: cluster.Leader, close: cluster.Close, bytes: etcdOverhead}
	served.change = func(ctx context.Context, bytes int) (Change, error) {
		value := string(make([]byte, max(0, bytes-served.bytes)))
		begin := time.Now()
		put, err := cluster.Conns[0].Put(ctx, etcdKey, value)
		if err != nil {
			return Change{}, err
		}
		return Change{begin, uint64(put.Header.Revision)}, nil
	}
	return served, nil
}
