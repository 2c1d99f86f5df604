package autosharding

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	pb "github.com/leasehold-dev/leasehold/proto/autosharding/v1"
)

// A bench is a service on gRPC without a manager: requests of feeds are answered from a table.
type bench struct {
	t       *testing.T
	service *Service
	dial    func() *grpc.ClientConn
	table   atomic.Pointer[table.Table]
	copies  atomic.Int64 // snapshots that feeds have requested
}

func newBench(t *testing.T, tab *table.Table, maxStreams int) *bench {
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{t: t}
	b.table.Store(tab)
	b.service = New(ctx, Config{
		Self: "m1", MaxStreams: maxStreams, MaxSuperseded: 8 << 20, Clock: clock.New(), Logger: slog.New(slog.DiscardHandler), Refused: func(leasehold.Kind) {},
		Rand: func() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) },
		Request: func(_ context.Context, r *protocol.LookupRequest) {
			now := b.table.Load()
			reply := &protocol.LookupReply{Namespace: r.Namespace, Leader: "m1", Leads: true, Term: 1, Echo: r.Seq, LSN: now.LSN()}
			if r.LSN < now.LSN() {
				b.copies.Add(1)
				reply.Snapshot = now
			}
			b.service.Answer(r.Lookup, reply)
		},
	})
	server, listener := grpc.NewServer(wire.ServerOptions()...), bufconn.Listen(1<<16)
	pb.RegisterAutoshardingServiceServer(server, b.service)
	go func() { _ = server.Serve(listener) }()
	b.dial = func() *grpc.ClientConn {
		conn, err := grpc.NewClient("passthrough:///m1", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	t.Cleanup(func() {
		cancel()
		server.Stop()
		b.service.Close()
	})
	return b
}

// grow adds a change to the table.
func (b *bench) grow() {
	next := b.table.Load().Clone()
	r, e := next.At(0)
	c := table.Change{LSN: next.LSN() + 1, Kind: table.Moved, Range: r, Generation: next.Newest() + 1, From: e.Holder, Holder: holderAt("elsewhere:1")}
	if e.Holder.Addr == "elsewhere:1" {
		c.Holder = holderAt("back:1")
	}
	if err := next.Apply(&c); err != nil {
		b.t.Fatal(err)
	}
	b.table.Store(next)
	b.service.Broadcast(&protocol.LookupReply{Namespace: "pool", Leader: "m1", Leads: true, Term: 1, LSN: next.LSN(), From: next.LSN() - 1, Changes: []table.Change{c}})
}

func (b *bench) watch(conn *grpc.ClientConn, ctx context.Context, latest int64) grpc.BidiStreamingClient[request, pb.WatchShardingAssignmentResponse] {
	b.t.Helper()
	s, err := pb.NewAutoshardingServiceClient(conn).WatchShardingAssignment(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = s.Send(&request{Kind: &pb.WatchShardingAssignmentRequest_InitialClientConfig{InitialClientConfig: &pb.InitialClientConfig{Target: "pool", LatestGeneration: latest}}})
	return s
}

// receiveAll receives one assignment, and returns its slices, messages and generation.
func receiveAll(s grpc.BidiStreamingClient[request, pb.WatchShardingAssignmentResponse]) (slices, messages int, generation int64, err error) {
	for generation == 0 {
		m, err := s.Recv()
		if err != nil {
			return 0, 0, 0, err
		}
		messages++
		slices += len(m.GetChunk().GetSliceAssignments())
		generation = m.GetMetadata().GetGeneration()
	}
	return slices, messages, generation, nil
}

// 1,000 owners with 64 ranges each are delivered to a client with default limits, encoded once for many.
func TestLargeAssignmentToDefaultClients(t *testing.T) {
	b := newBench(t, large(t), 1000)
	conn := b.dial()
	for range 4 {
		slices, messages, generation, err := receiveAll(b.watch(conn, t.Context(), 0))
		if err != nil || slices != 64_000 || messages < 10 || generation != 64_000 {
			t.Fatalf("%d slices in %d messages, generation %d: %v", slices, messages, generation, err)
		}
	}
	if n := b.copies.Load(); n != 1 {
		t.Errorf("the table was copied %d times for 4 clients", n)
	}
}

// Thousands of reconnects cost one copy of the table, and leave nothing behind.
func TestReconnects(t *testing.T) {
	b := newBench(t, large(t), 1000)
	conn := b.dial()
	before := runtime.NumGoroutine()
	for range 3000 {
		ctx, cancel := context.WithCancel(t.Context())
		_ = b.watch(conn, ctx, 64_000)
		cancel()
	}
	_, _, generation, err := receiveAll(b.watch(conn, t.Context(), 0))
	if err != nil || generation != 64_000 || b.copies.Load() != 1 {
		t.Errorf("generation %d, %d copies: %v", generation, b.copies.Load(), err)
	}
	for deadline := time.Now().Add(20 * time.Second); b.service.Count() > 1 || runtime.NumGoroutine() > before+20; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d streams and %d goroutines are left, %d before", b.service.Count(), runtime.NumGoroutine(), before)
		}
	}
}

// Clients that do not read hold at most MaxSuperseded bytes of old assignments: the oldest lose their
// streams. Other clients receive every newest assignment meanwhile.
func TestClientsThatDoNotRead(t *testing.T) {
	b := newBench(t, large(t), 1000)
	reader := b.watch(b.dial(), t.Context(), 0)
	_, _, generation, err := receiveAll(reader)
	silent := b.watch(b.dial(), t.Context(), 0) // does not read
	for n := 0; err == nil && n < 5; n++ {
		_ = b.watch(b.dial(), t.Context(), 0) // nor does this one, at another generation
		b.service.mu.Lock()
		f := b.service.feeds["pool"]
		b.service.mu.Unlock()
		for deadline := time.Now().Add(10 * time.Second); f.senders() == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		}
		_ = reader.Send(&request{Kind: &pb.WatchShardingAssignmentRequest_AssignmentAck{AssignmentAck: &pb.AssignmentAck{Generation: generation, Accepted: true}}})
		b.grow()
		var next int64
		if _, _, next, err = receiveAll(reader); next <= generation && err == nil {
			t.Fatalf("generation %d after %d", next, generation)
		}
		generation = next
		if held := f.held(); held > b.service.cfg.MaxSuperseded {
			t.Fatalf("%d bytes are held", held)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = silent.Recv()
	}
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "newer") {
		t.Errorf("the stream of the first client ended with %v", err)
	}
}

// senders returns the number of clients to which the newest assignment is being sent.
func (f *feed) senders() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest.senders
}

// held returns the bytes of superseded assignments that are being sent.
func (f *feed) held() (sum int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.superseded {
		sum += a.size
	}
	return sum
}

// The number of streams is bounded.
func TestStreamLimit(t *testing.T) {
	b := newBench(t, large(t), 2)
	conn := b.dial()
	for range 2 {
		if _, _, _, err := receiveAll(b.watch(conn, t.Context(), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, _, err := receiveAll(b.watch(conn, t.Context(), 0)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the third client gets %v", err)
	}
}
