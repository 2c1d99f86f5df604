package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/keyindex"
	"github.com/leasehold-dev/leasehold/internal/keyrange"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/lookup"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The contestants of Leasehold.
const (
	Lookup = "leasehold lookup.Find"
	Index  = "its index alone"
)

const namespace = "bench"

// leases returns a table as consistent hashing makes it: a range begins wherever
// one of a server's virtual nodes is.
func leases() (*table.Table, error) {
	holders := make(map[leasehold.Key]*table.Holder)
	var starts []leasehold.Key
	for server := range Servers {
		name := leasehold.OwnerID(fmt.Sprintf("server-%04d", server))
		h := &table.Holder{
			Owner: name, Session: leasehold.Session{byte(server), byte(server >> 8), 1},
			Addr: address(server), Weight: 1,
		}
		for node := range perServer {
			start := leasehold.KeyOf(fmt.Sprintf("%s/%d", name, node))
			if server == 0 && node == 0 {
				start = 0
			}
			holders[start] = h
			starts = append(starts, start)
		}
	}
	slices.Sort(starts)
	var b keyrange.Builder[table.Entry]
	for i, start := range slices.Compact(starts) {
		b.Append(start, table.Entry{Generation: leasehold.Generation(i + 1), Holder: holders[start]})
	}
	return table.Restore(1, leasehold.Generation(len(starts)), b.Map())
}

// startLookup follows a manager as any caller does, and finds addresses by name.
func startLookup() (Contestant, error) {
	leases, err := leases()
	if err != nil {
		return Contestant{}, err
	}
	m := serve(leases)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	l, err := lookup.Open(ctx, lookup.Config{
		Namespace:   namespace,
		Managers:    []string{"manager:1"},
		Credentials: insecure.NewCredentials(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return m.listener.DialContext(ctx) }),
		},
	})
	if err != nil {
		m.stop()
		return Contestant{}, err
	}
	names := names()
	return Contestant{
		Name: Lookup,
		Run: func(n int) (sum int) {
			for i := range n {
				addr, _ := l.Find(leasehold.KeyOf(names[i%asked]))
				sum += len(addr)
			}
			return sum
		},
		Close: func() {
			l.Close()
			m.stop()
		},
	}, nil
}

// startIndex has the same ranges and says only which of them a name is in: the
// least that anyone with such an index must pay.
func startIndex() (Contestant, error) {
	leases, err := leases()
	if err != nil {
		return Contestant{}, err
	}
	var starts []leasehold.Key
	for r := range leases.All() {
		starts = append(starts, r.Start)
	}
	index, names := keyindex.New(starts), names()
	return Contestant{
		Name: Index,
		Run: func(n int) (sum int) {
			for i := range n {
				sum += index.Find(leasehold.KeyOf(names[i%asked]))
			}
			return sum
		},
		Close: nothing,
	}, nil
}

// A server answers every lookup with the same table.
type server struct {
	leaseholdv1.UnimplementedLookupServiceServer
	table    *table.Table
	listener *bufconn.Listener
	server   *grpc.Server
	serving  sync.WaitGroup
}

func serve(t *table.Table) *server {
	m := &server{table: t, listener: bufconn.Listen(1 << 20), server: grpc.NewServer(wire.ServerOptions()...)}
	leaseholdv1.RegisterLookupServiceServer(m.server, m)
	m.serving.Go(func() { _ = m.server.Serve(m.listener) }) // fails when stopped
	return m
}

func (m *server) stop() {
	m.server.Stop()
	m.serving.Wait()
}

// Follow is the service: the table once, and then that there is nothing new.
func (m *server) Follow(stream grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]) error {
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		reply := &protocol.LookupReply{
			Namespace: namespace, Leader: "manager", Term: 1, Echo: protocol.Seq(r.GetSeq()), LSN: m.table.LSN(),
		}
		if leasehold.LSN(r.GetLsn()) < m.table.LSN() {
			reply.Snapshot = m.table
		}
		if err := stream.Send(wire.FromLookupReply(reply)); err != nil {
			return err
		}
	}
}
