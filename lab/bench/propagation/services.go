package propagation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	process "github.com/leasehold-dev/leasehold/server/proc"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// The contestants.
const (
	nameLeasehold = "leasehold"
	nameEtcd      = "etcd watch"
)

// patience is how long a change may take before it is considered lost.
const patience = 60 * time.Second

const (
	roleManager   = "timed-manager"
	roleListeners = "listeners"
)

// Roles returns the roles of the processes, for [proc.Play].
func Roles() map[string]proc.Role {
	return map[string]proc.Role{roleManager: proc.RoleOf(startManager), roleListeners: proc.RoleOf(startListeners)}
}

// A Change has the time at which it began, and its number.
type Change struct {
	Begin  time.Time
	Number uint64
}

// A service is a server, in its own process, whose changes listeners receive.
type service struct {
	name string
	addr string
	// change makes a change, of the given number of bytes if the size can be chosen.
	change func(ctx context.Context, bytes int) (Change, error)
	// undo makes another change possible, which is a change, too. nil: not needed.
	undo    func() (Change, error)
	close   func()
	dialect Dialect
	bytes   int // of a message without the value, for etcd
}

type starter struct {
	name  string
	start func(ctx context.Context, dir string, s size) (*service, error)
}

func starters() []starter { return []starter{{nameLeasehold, startLeasehold}, {nameEtcd, startEtcd}} }

func startLeasehold(ctx context.Context, _ string, size size) (*service, error) {
	p, err := proc.Start(ctx, roleManager, size.listeners+few)
	if err != nil {
		return nil, err
	}
	s := &service{addr: p.Addr, close: p.Close}
	s.change = func(context.Context, int) (c Change, err error) {
		err = p.Call("Change", nil, &c)
		return c, err
	}
	s.undo = func() (c Change, err error) {
		err = p.Call("Undo", nil, &c)
		return c, err
	}
	hello, err := proto.Marshal(&leaseholdv1.FollowRequest{Version: wire.Version, Namespace: namespace, Seq: 1})
	// FollowResponse.update.lsn
	s.dialect = Dialect{leaseholdv1.LookupService_Follow_FullMethodName, hello, []protowire.Number{2, 5}}
	return s, err
}

const namespace = "propagation"

const etcdKey = "table"

// etcdOverhead is the size of a WatchResponse without the value: a header, an event, a
// key with three revisions.
const etcdOverhead = 60

// startEtcd starts one member of etcd that, like the manager, does not wait for a disk.
func startEtcd(ctx context.Context, dir string, s size) (*service, error) {
	cluster, err := locks.StartEtcd(ctx, 1, filepath.Join(dir, fmt.Sprintf("etcd-%d-%d", s.listeners, s.conns)), false)
	if err != nil {
		return nil, err
	}
	watch := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte(etcdKey)}}}
	hello, err := proto.Marshal(watch)
	if err != nil {
		return nil, err
	}
	served := &service{addr: cluster.Leader, close: cluster.Close, bytes: etcdOverhead}
	served.dialect = Dialect{pb.Watch_Watch_FullMethodName, hello, []protowire.Number{1, 3}} // WatchResponse.header.revision
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

// ManagerMember is a manager with its store in memory, and an owner that joins and
// leaves: each time it joins, all its ranges are granted in one change. It is exported
// for net/rpc.
type ManagerMember struct {
	m       *manager.Manager
	addr    string
	written chan written
	owner   *owner.Owner
}

// ranges is the number of ranges granted in a change, about 1,600 bytes.
const ranges = 64

// startManager starts a manager for at most the given numbers of connections and streams.
func startManager(ctx context.Context, most int) (*ManagerMember, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &ManagerMember{addr: l.Addr().String(), written: make(chan written, 64)}
	s.m, err = manager.Start(manager.Config{
		Store: timed{mem.New(), s.written}, Listener: l, MaxConnections: most, MaxStreams: most, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare creates the namespace and makes a first change, which lookups receive as their
// initial table.
func (s *ManagerMember) prepare(ctx context.Context) error {
	client, err := process.Dial([]string{s.addr}, insecure.NewCredentials(), patience)
	if err != nil {
		return err
	}
	defer client.Close()
	err = process.Until(ctx, func(ctx context.Context) error {
		_, err := client.CreateNamespace(ctx, managers.EverySecond(namespace, "o", ranges))
		return err
	})
	if err != nil {
		return err
	}
	var c Change
	return errors.Join(s.Change(struct{}{}, &c), s.Undo(struct{}{}, &c))
}

// Addr returns the address of the API.
func (s *ManagerMember) Addr() string { return s.addr }

// Change lets the owner join, and returns the time at which the change was passed to the
// store. It excludes the time for which a manager waits for other owners, so as to make
// few changes, because that is not part of the propagation.
func (s *ManagerMember) Change(_ struct{}, c *Change) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.owner, err = owner.Join(ctx, owner.Config{Namespace: namespace, Managers: []string{s.addr}, Name: "o", Addr: "10.0.0.1:80"}); err != nil {
		return err
	}
	*c, err = s.await(ctx)
	return err
}

// Undo lets the owner leave.
func (s *ManagerMember) Undo(_ struct{}, c *Change) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := s.owner.Close(ctx)
	s.owner = nil
	if err == nil {
		*c, err = s.await(ctx)
	}
	return err
}

// await waits until all ranges have changed in one batch.
func (s *ManagerMember) await(ctx context.Context) (Change, error) {
	select {
	case w := <-s.written:
		if w.changes != ranges {
			return Change{}, fmt.Errorf("%d ranges changed at once, want %d", w.changes, ranges)
		}
		return w.Change, nil
	case <-ctx.Done():
		return Change{}, fmt.Errorf("the table has not changed: %w", ctx.Err())
	}
}

// Close stops the owner and the manager.
func (s *ManagerMember) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), proc.EndLimit/2)
	defer cancel()
	if s.owner != nil {
		_ = s.owner.Close(ctx)
	}
	return s.m.Close(ctx)
}

type written struct {
	Change
	changes int
}

type timed struct {
	store.Store
	written chan<- written
}

func (t timed) Append(ctx context.Context, b *storage.Batch) (storage.Outcome, error) {
	begin := time.Now()
	outcome, err := t.Store.Append(ctx, b)
	if err == nil && outcome == storage.Done {
		t.written <- written{Change{begin, uint64(b.Last())}, len(b.Changes)}
	}
	return outcome, err
}
