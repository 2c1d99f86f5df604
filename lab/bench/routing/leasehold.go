package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lookup"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const nameLookup = "leasehold lookup.Find"

const namespace = "bench"

// startLookup starts a lookup that follows a manager, and finds addresses by name.
func startLookup(ctx context.Context, servers int) (*router, error) {
	leases, err := leases(servers)
	if err != nil {
		return nil, err
	}
	m := serve(leases)
	l, err := m.open(ctx)
	if err != nil {
		m.stop()
		return nil, err
	}
	names := names()
	return &router{
		name: nameLookup, pieces: leases.Len(), change: m.change,
		find: func(first, n int) (sum int) {
			for i := range n {
				addr, _ := l.Find(leasehold.KeyOf(names[(first+i)%nameCount]))
				sum += len(addr)
			}
			return sum
		},
		close: func() {
			_ = l.Close(context.Background())
			m.stop()
		},
	}, nil
}

type manager struct {
	leaseholdv1.UnimplementedLookupServiceServer
	listener *bufconn.Listener
	server   *grpc.Server
	serving  sync.WaitGroup

	mu     sync.Mutex // allows one sender at a time
	table  *table.Table
	stream grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]
	away   []leasehold.Range // of the server that left
}

func serve(t *table.Table) *manager {
	m := &manager{table: t, listener: bufconn.Listen(1 << 20), server: grpc.NewServer(wire.ServerOptions()...)}
	leaseholdv1.RegisterLookupServiceServer(m.server, m)
	m.serving.Go(func() { _ = m.server.Serve(m.listener) }) // fails when stopped
	return m
}

func (m *manager) stop() {
	m.server.Stop()
	m.serving.Wait()
}

func (m *manager) open(ctx context.Context) (*lookup.Lookup, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return lookup.Open(ctx, lookup.Config{
		Namespace:   namespace,
		Managers:    []string{"manager:1"},
		Credentials: insecure.NewCredentials(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return m.listener.DialContext(ctx) }),
		},
	})
}

// Follow sends the table once, and then replies that there is nothing new.
func (m *manager) Follow(stream grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]) error {
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := m.answer(stream, r); err != nil {
			return err
		}
	}
}

func (m *manager) answer(stream grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse], r *leaseholdv1.FollowRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stream = stream
	reply := m.reply()
	reply.Echo = protocol.Seq(r.GetSeq())
	if leasehold.LSN(r.GetLsn()) < m.table.LSN() {
		reply.Snapshot = m.table.Clone()
	}
	return stream.Send(wire.FromLookupReply(reply))
}

func (m *manager) reply() *protocol.LookupReply {
	return &protocol.LookupReply{Namespace: namespace, Leader: "manager", Term: 1, LSN: m.table.LSN()}
}

// change moves all ranges of a server to its neighbour if i is even, and back if i is
// odd, and sends the change to the lookup.
func (m *manager) change(i int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	goes, stays := holder(1), holder(2)
	if i%2 == 0 {
		m.away = nil
		for r, e := range m.table.All() {
			if e.Holder.Session == goes.Session {
				m.away = append(m.away, r)
			}
		}
	} else {
		goes, stays = stays, goes
	}
	reply := m.reply()
	reply.From = m.table.LSN()
	for _, r := range m.away {
		c := table.Change{
			LSN: m.table.LSN() + 1, Kind: table.Moved, Range: r, Generation: m.table.Newest() + 1, From: goes, Holder: stays,
		}
		if err := m.table.Apply(&c); err != nil {
			return err
		}
		reply.Changes = append(reply.Changes, c)
	}
	reply.LSN = m.table.LSN()
	return m.stream.Send(wire.FromLookupReply(reply))
}
