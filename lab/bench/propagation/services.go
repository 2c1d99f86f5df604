package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	grpcmem "google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// The contestants.
const (
	nameLeasehold = "leasehold"
	nameEtcd      = "etcd watch"
	namePush      = "bare gRPC push"
)

// patience is how long a change may take before it is considered lost.
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
	// undo makes another change possible, and returns the last number that listeners will
	// receive. nil: not needed.
	undo  func() (uint64, error)
	close func()
	bytes int // of a message without the value, for etcd
}

type starter struct {
	name  string
	start func(ctx context.Context, dir string, s size) (*service, error)
}

func starters() []starter {
	return []starter{
		{nameLeasehold, func(ctx context.Context, _ string, s size) (*service, error) {
			return startProcess(ctx, roleManager, s.listeners+few, true)
		}},
		{nameEtcd, startEtcd},
		{namePush, func(ctx context.Context, _ string, _ size) (*service, error) {
			return startProcess(ctx, rolePusher, nil, false)
		}},
	}
}

// startProcess starts a service as a process with a method Change, and with a method
// Undo if changes have to be undone.
func startProcess(ctx context.Context, role string, config any, undo bool) (*service, error) {
	p, err := proc.Start(ctx, role, config)
	if err != nil {
		return nil, err
	}
	s := &service{addr: p.Addr, close: p.Close}
	s.change = func(_ context.Context, bytes int) (c Change, err error) {
		err = p.Call("Change", bytes, &c)
		return c, err
	}
	if undo {
		s.undo = func() (uint64, error) {
			var c Change
			err := p.Call("Undo", nil, &c)
			return c.Number, err
		}
	}
	return s, nil
}

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
	conn, err := proc.Dial(s.addr)
	if err != nil {
		return err
	}
	if err := errors.Join(proc.CreateNamespace(ctx, conn, proc.EverySecond(namespace, "o", ranges)), conn.Close()); err != nil {
		return err
	}
	var c Change
	return errors.Join(s.Change(0, &c), s.Undo(struct{}{}, &c))
}

// Addr returns the address of the API.
func (s *ManagerMember) Addr() string { return s.addr }

// Change lets the owner join, and returns the time at which the change was passed to the
// store. It excludes the time for which a manager waits for other owners, so as to make
// few changes, because that is not part of the propagation.
func (s *ManagerMember) Change(_ int, c *Change) (err error) {
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

// Pusher is a gRPC server that sends the same bytes to all listeners, and does nothing
// else: the minimum for any gRPC server. It is exported for net/rpc.
type Pusher struct {
	*proc.Server

	mu      sync.Mutex
	number  uint64
	streams map[chan []byte]bool
}

// raw is a codec for messages that are already encoded.
type raw struct{ encoding.CodecV2 }

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (grpcmem.BufferSlice, error) {
	return grpcmem.BufferSlice{grpcmem.SliceBuffer(v.([]byte))}, nil
}

func (raw) Unmarshal(grpcmem.BufferSlice, any) error { return nil }

// startPusher starts a Pusher. Its buffers are as small as a manager's, which suits
// many connections.
func startPusher(context.Context, struct{}) (p *Pusher, err error) {
	p = &Pusher{number: 1, streams: make(map[chan []byte]bool)}
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.ReadBufferSize(2<<10))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Push", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "Listen", Handler: p.listen, ServerStreams: true, ClientStreams: true}},
	}, p)
	p.Server, err = proc.NewServer(server)
	return p, err
}

// listen serves one stream: it sends the number of the last change, and then every push.
func (p *Pusher) listen(_ any, stream grpc.ServerStream) error {
	if err := stream.RecvMsg(nil); err != nil {
		return err
	}
	mailbox := make(chan []byte, 4)
	p.mu.Lock()
	p.streams[mailbox] = true
	first := message(p.number, 0)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.streams, mailbox)
	}()
	if err := stream.SendMsg(first); err != nil {
		return err
	}
	for {
		select {
		case m := <-mailbox:
			if err := stream.SendMsg(m); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}

// message returns a message with a number, of the given length or the shortest possible.
func message(number uint64, size int) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), number)
	rest := size - len(b) - protowire.SizeTag(2)
	rest -= protowire.SizeVarint(uint64(max(0, rest)))
	if rest <= 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), make([]byte, rest))
}

// Change pushes a change of the given number of bytes.
func (p *Pusher) Change(bytes int, c *Change) error {
	begin := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	m := message(p.number, bytes)
	for mailbox := range p.streams {
		mailbox <- m
	}
	*c = Change{begin, p.number}
	return nil
}
