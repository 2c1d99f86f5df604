package routing

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lookup"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const namespace = "bench"

// startLookup starts a lookup that follows a manager with a table for as many servers, and
// finds addresses by name.
func startLookup(ctx context.Context, servers int) (*router, error) {
	leases, err := newTable(servers)
	if err != nil {
		return nil, err
	}
	m := serve(leases)
	l, err := m.open(ctx)
	if err != nil {
		m.stop()
		return nil, err
	}
	names := loadgen.Names(nameCount)
	find := func(first, n int) (sum int) {
		for i := range n {
			addr, _ := l.Find(leasehold.KeyOf(names[(first+i)%nameCount]))
			sum += len(addr)
		}
		return sum
	}
	return &router{name: nameLookup, pieces: leases.Len(), find: find, close: func() {
		_ = l.Close(context.Background())
		m.stop()
	}}, nil
}

// newTable returns a table as of consistent hashing: a range begins at each virtual node
// of a server.
func newTable(servers int) (*table.Table, error) {
	holders := make(map[leasehold.Key]*table.Holder)
	for server := range servers {
		h := &table.Holder{
			Owner:   leasehold.OwnerID(fmt.Sprintf("server-%05d", server)),
			Session: leasehold.Session{byte(server), byte(server >> 8), 1},
			Addr:    address(server), Weight: 1,
		}
		for node := range perServer {
			holders[leasehold.KeyOf(fmt.Sprintf("%s/%d", h.Owner, node))] = h
		}
		if server == 0 {
			holders[0] = h
		}
	}
	starts := make([]leasehold.Key, 0, len(holders))
	for start := range holders {
		starts = append(starts, start)
	}
	slices.Sort(starts)
	var b keyrange.Builder[table.Entry]
	for i, start := range starts {
		b.Append(start, table.Entry{Generation: leasehold.Generation(i + 1), Holder: holders[start]})
	}
	return table.Restore(1, leasehold.Generation(len(starts)), b.Map())
}

// A manager sends one table to lookups.
type manager struct {
	leaseholdv1.UnimplementedLookupServiceServer
	table    *table.Table
	listener *bufconn.Listener
	server   *grpc.Server
	serving  sync.WaitGroup
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
		if err != nil {
			return err
		}
		reply := &protocol.LookupReply{Namespace: namespace, Leader: "manager", Term: 1, Echo: protocol.Seq(r.GetSeq()), LSN: m.table.LSN()}
		if leasehold.LSN(r.GetLsn()) < m.table.LSN() {
			reply.Snapshot = m.table.Clone()
		}
		if err := stream.Send(wire.FromLookupReply(reply)); err != nil {
			return err
		}
	}
}
