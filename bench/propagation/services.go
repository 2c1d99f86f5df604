package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/bench/cast"
)

// Who tells of changes.
const (
	nameLeasehold = "leasehold"
	nameEtcd      = "etcd watch"
	namePush      = "bare gRPC push"
)

// patience is how long a change may take before it is taken to be lost.
const patience = 60 * time.Second

func roles() map[string]cast.Start {
	all := cast.LockServices()
	all["manager"], all["pusher"], all["crowd"] = startManager, startPusher, startCrowd
	return all
}

// A change is when it began, and its number.
type change struct {
	begin  time.Time
	number uint64
}

func changeOf(a cast.Answer) change { return change{time.Unix(0, a.Begin), a.Number} }

// A service is a server, in a process of its own, whose changes a crowd hears of.
type service interface {
	addr() string
	// change makes one of so many bytes, if it has a choice.
	change(ctx context.Context, bytes int) (change, error)
	// undo makes another change possible. It returns the last number that a
	// crowd will hear of.
	undo(ctx context.Context, last change) (uint64, error)
	close()
}

// A leaseholdService is a manager.
type leaseholdService struct{ *cast.Process }

func beginLeasehold(ctx context.Context, _ string, s size) (service, error) {
	p, err := beginOne(ctx, "manager", "-most", strconv.Itoa(s.listeners+few))
	return leaseholdService{p}, err
}

func (s leaseholdService) addr() string { return s.Info() }

func (s leaseholdService) change(context.Context, int) (change, error) {
	a, err := s.Ask(cast.Order{Do: orderChange})
	return changeOf(a), err
}

func (s leaseholdService) undo(context.Context, change) (uint64, error) {
	a, err := s.Ask(cast.Order{Do: orderUndo})
	return a.Number, err
}

func (s leaseholdService) close() { s.Close() }

// A pushService does nothing but push.
type pushService struct{ *cast.Process }

func beginPush(ctx context.Context, _ string, _ size) (service, error) {
	p, err := beginOne(ctx, "pusher")
	return pushService{p}, err
}

func (s pushService) addr() string { return s.Info() }

func (s pushService) change(_ context.Context, bytes int) (change, error) {
	a, err := s.Ask(cast.Order{Do: orderChange, Batch: bytes})
	return changeOf(a), err
}

func (pushService) undo(_ context.Context, last change) (uint64, error) { return last.number, nil }

func (s pushService) close() { s.Close() }

// An etcdService is one member of etcd that does not wait for its disk, as the
// manager does not.
type etcdService struct {
	cluster *cast.Etcd
	client  *clientv3.Client
	bytes   int // those of a message, beside the value
}

func beginEtcd(ctx context.Context, dir string, s size) (service, error) {
	dir = filepath.Join(dir, fmt.Sprintf("etcd-%d-%d", s.listeners, s.conns))
	cluster, err := cast.BeginEtcdOf(ctx, 1, dir, false, time.Minute)
	if err != nil {
		return nil, err
	}
	return &etcdService{cluster: cluster, client: cluster.Conn(0), bytes: etcdOverhead}, nil
}

// etcdOverhead is what a WatchResponse has beside the value: a header, an event, a
// key with three revisions.
const etcdOverhead = 60

func (s *etcdService) addr() string { return s.cluster.Addr() }

func (s *etcdService) change(ctx context.Context, bytes int) (change, error) {
	value := string(make([]byte, max(0, bytes-s.bytes)))
	begin := time.Now()
	put, err := s.client.Put(ctx, etcdKey, value)
	if err != nil {
		return change{}, err
	}
	return change{begin, uint64(put.Header.Revision)}, nil
}

func (*etcdService) undo(_ context.Context, last change) (uint64, error) { return last.number, nil }

func (s *etcdService) close() { s.cluster.Close() }

// beginOne starts a process, and waits until it is ready.
func beginOne(ctx context.Context, role string, args ...string) (*cast.Process, error) {
	g, err := cast.BeginGroup(ctx, role, 1, func(int) []string { return args })
	if err != nil {
		return nil, err
	}
	return g[0], nil
}
