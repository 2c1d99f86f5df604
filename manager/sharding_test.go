package manager_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/internal/testkit/logbook"
	"github.com/leasehold-dev/leasehold/owner"
	pb "github.com/leasehold-dev/leasehold/proto/autosharding/v1"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A shardingClient is an auto-sharding client that checks the rules of the protocol for every
// assignment, with gRPC's own codec and default limits.
type shardingClient struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[pb.WatchShardingAssignmentRequest, pb.WatchShardingAssignmentResponse]
	latest int64
	cancel context.CancelFunc
}

// An assigned is an assignment as a client uses it.
type assigned struct {
	generation int64
	slices     []assignedSlice // sorted
	chunks     int
}

type assignedSlice struct {
	start     string
	end       string // "" without an end
	endpoints []string
}

// pick returns the endpoints of a header value.
func (a *assigned) pick(header string) []string {
	i, _ := slices.BinarySearchFunc(a.slices, header, func(s assignedSlice, k string) int {
		return cmp.Compare(s.start, k+"\x00")
	})
	return a.slices[i-1].endpoints
}

// shard opens a stream, and sends its first request.
func (c *cluster) shard(manager, target string, latest int64) *shardingClient {
	c.t.Helper()
	w := c.shardUngreeted(manager)
	w.latest = latest
	w.send(&pb.WatchShardingAssignmentRequest{Kind: &pb.WatchShardingAssignmentRequest_InitialClientConfig{
		InitialClientConfig: &pb.InitialClientConfig{Target: target, ClientUuid: "test", LatestGeneration: latest},
	}})
	return w
}

func (c *cluster) shardUngreeted(manager string) *shardingClient {
	c.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr(manager), c.dialOptions()...)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	c.t.Cleanup(func() {
		cancel()
		_ = conn.Close()
	})
	stream, err := pb.NewAutoshardingServiceClient(conn).WatchShardingAssignment(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return &shardingClient{t: c.t, stream: stream, cancel: cancel}
}

func (w *shardingClient) send(r *pb.WatchShardingAssignmentRequest) {
	w.t.Helper()
	if err := w.stream.Send(r); err != nil && !errors.Is(err, io.EOF) {
		w.t.Fatal(err)
	}
}

func (w *shardingClient) ack(generation int64, refusal string) {
	w.t.Helper()
	w.send(&pb.WatchShardingAssignmentRequest{Kind: &pb.WatchShardingAssignmentRequest_AssignmentAck{
		AssignmentAck: &pb.AssignmentAck{Generation: generation, Accepted: refusal == "", ErrorMessage: refusal},
	}})
}

// next receives an assignment, checks it, and does not acknowledge it.
func (w *shardingClient) next() *assigned {
	w.t.Helper()
	a, err := w.receive()
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// accept is next, and acknowledges the assignment.
func (w *shardingClient) accept() *assigned {
	w.t.Helper()
	a := w.next()
	w.ack(a.generation, "")
	return a
}

// fails returns the status that ends the stream.
func (w *shardingClient) fails() *status.Status {
	w.t.Helper()
	a, err := w.receive()
	if err == nil {
		w.t.Fatalf("the client received generation %d", a.generation)
	}
	return status.Convert(err)
}

func (w *shardingClient) receive() (*assigned, error) {
	var (
		endpoints []string
		all       []*pb.SliceAssignment
		out       assigned
	)
	for {
		m, err := w.stream.Recv()
		if err != nil {
			return nil, err
		}
		if size := proto.Size(m); size > 256<<10 {
			w.t.Errorf("a message has %d bytes", size)
		}
		switch kind := m.GetKind().(type) {
		case *pb.WatchShardingAssignmentResponse_Chunk:
			out.chunks++
			all = append(all, kind.Chunk.GetSliceAssignments()...)
			for _, e := range kind.Chunk.GetEndpoints() {
				endpoints = append(endpoints, e.GetEndpoint())
			}
		case *pb.WatchShardingAssignmentResponse_Metadata:
			out.generation = kind.Metadata.GetGeneration()
			w.check(&out, all, endpoints)
			return &out, nil
		}
	}
}

// check validates an assignment as a client must, and completes it.
func (w *shardingClient) check(out *assigned, all []*pb.SliceAssignment, endpoints []string) {
	if out.chunks == 0 {
		w.t.Error("metadata without a chunk before it")
	}
	if out.generation <= w.latest {
		w.t.Errorf("generation %d after %d", out.generation, w.latest)
	}
	w.latest = out.generation
	for _, s := range all {
		as := assignedSlice{start: string(s.GetSlice().GetStartKey())}
		if s.GetSlice().EndKey != nil {
			as.end = string(s.GetSlice().GetEndKey())
			if as.end <= as.start {
				w.t.Errorf("slice %q to %q", as.start, as.end)
			}
		}
		for _, e := range s.GetEndpoints() {
			if i := int(e.GetEndpointIndex()); i < 0 || i >= len(endpoints) {
				w.t.Errorf("endpoint %d of %d", i, len(endpoints))
			} else {
				as.endpoints = append(as.endpoints, endpoints[i])
			}
		}
		out.slices = append(out.slices, as)
	}
	slices.SortFunc(out.slices, func(a, b assignedSlice) int { return cmp.Compare(a.start, b.start) })
	want := ""
	for i, s := range out.slices {
		if s.start != want || len(s.start) != 0 && len(s.start) != 16 || (s.end == "") != (i == len(out.slices)-1) {
			w.t.Errorf("slice %d starts at %q and ends at %q, want the start %q", i, s.start, s.end, want)
		}
		want = s.end
	}
	if slices.Sort(endpoints); len(slices.Compact(slices.Clone(endpoints))) != len(endpoints) {
		w.t.Errorf("endpoints are listed twice: %q", endpoints)
	}
}

// header returns the header value of a key.
func header(k leasehold.Key) string { return fmt.Sprintf("%016x", uint64(k)) }

// matches reports whether the assignment sends every key to its owner.
func (a *assigned) matches(owners ...*owner.Owner) bool {
	for _, o := range owners {
		for _, l := range o.Leases() {
			for _, k := range []leasehold.Key{l.Range.Start, l.Range.Last()} {
				if !slices.Equal(a.pick(header(k)), []string{string(o.Name()) + ":80"}) {
					return false
				}
			}
		}
	}
	return true
}

// sharded runs a test with two managers, of which m1 leads, and owners a and b.
func sharded(t *testing.T, test func(t *testing.T, c *cluster, a, b *owner.Owner)) {
	t.Helper()
	shardedWith(t, func(*cluster) {}, test)
}

func shardedWith(t *testing.T, change func(*cluster), test func(t *testing.T, c *cluster, a, b *owner.Owner)) {
	t.Helper()
	inBubble(t, func(t *testing.T, c *cluster) {
		change(c)
		c.start("m1")
		eventually(t, time.Minute, "m1 leads", func() bool { return c.status("m1").GetLeader() == addr("m1") })
		c.start("m2")
		c.create("m1", pool())
		a, b := c.join("a"), c.join("b")
		eventually(t, 5*time.Second, "all keys are owned", func() bool { return complete(a, b) && len(a.Leases()) > 0 && len(b.Leases()) > 0 })
		synctest.Wait()
		test(t, c, a, b)
	})
}

// newestOf accepts assignments until one has the newest generation.
func (w *shardingClient) newestOf(c *cluster) *assigned {
	w.t.Helper()
	for {
		if a := w.accept(); a.generation >= int64(c.status("m1").GetNamespaces()[0].GetLsn()) {
			return a
		}
	}
}

// "latest_generation 0: send the current assignment at once", on the leader and on a standby.
func TestShardingCurrentAssignmentAtOnce(t *testing.T) {
	sharded(t, func(t *testing.T, c *cluster, a, b *owner.Owner) {
		for _, m := range []string{"m1", "m2"} {
			begun := time.Now()
			got := c.shard(m, "pool", 0).accept()
			if took := time.Since(begun); took > time.Second || !got.matches(a, b) {
				t.Errorf("%s: after %v: %v", m, took, got)
			}
			if lsn := c.status("m1").GetNamespaces()[0].GetLsn(); got.generation != int64(lsn) {
				t.Errorf("%s: generation %d, LSN %d", m, got.generation, lsn)
			}
		}
	})
}

// "latest_generation: otherwise send only newer ones."
func TestShardingOnlyNewerGenerations(t *testing.T) {
	sharded(t, func(t *testing.T, c *cluster, a, b *owner.Owner) {
		known := c.shard("m1", "pool", 0).accept().generation
		for _, m := range []string{"m1", "m2"} {
			w := c.shard(m, "pool", known)
			received := make(chan *assigned, 1)
			go func() { a, _ := w.receive(); received <- a }()
			time.Sleep(time.Minute)
			synctest.Wait()
			select {
			case got := <-received:
				t.Errorf("%s sends generation %d again", m, got.generation)
			default:
			}
			w.cancel()
			<-received
		}
		w := c.shard("m2", "pool", known)
		c.leave(b)
		if got := w.newestOf(c); !got.matches(a) || got.generation <= known {
			t.Errorf("%v", got)
		}
	})
}

// "Generations are positive": a namespace without a change has no assignment.
func TestShardingNoGenerationZero(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.create("m1", pool())
		w := c.shard("m1", "pool", 0)
		time.Sleep(time.Minute)
		a := c.join("a")
		got := w.newestOf(c)
		for !got.matches(a) {
			got = w.newestOf(c)
		}
	})
}

// "Generations strictly increase", also across leaders.
func TestShardingGenerationsAcrossLeaders(t *testing.T) {
	sharded(t, func(t *testing.T, c *cluster, a, b *owner.Owner) {
		w := c.shard("m1", "pool", 0)
		known := w.accept().generation
		c.crash("m1")
		if s := w.fails(); s.Code() != codes.Unavailable {
			t.Errorf("the stream ends with %v", s)
		}
		w = c.shard("m2", "pool", known)
		eventually(t, 10*time.Second, "m2 leads", func() bool { return c.status("m2").GetLeader() == addr("m2") })
		c.leave(b)
		eventually(t, 10*time.Second, "a owns all", func() bool { return complete(a) })
		for got := w.accept(); !got.matches(a); got = w.accept() {
			if got.generation <= known { // the client checks it, too
				t.Errorf("generation %d after %d", got.generation, known)
			}
		}
	})
}

// "A slice without endpoints": a range without an owner.
func TestShardingVacantRanges(t *testing.T) {
	sharded(t, func(t *testing.T, c *cluster, a, b *owner.Owner) {
		w := c.shard("m2", "pool", 0)
		w.accept()
		c.leave(a)
		c.leave(b)
		for got := w.accept(); len(got.slices) != 1 || got.slices[0].endpoints != nil; got = w.accept() {
			t.Logf("%v", got)
		}
	})
}

// "One assignment in flight per client", and only the newest one follows.
func TestShardingOneInFlight(t *testing.T) {
	sharded(t, func(t *testing.T, c *cluster, a, b *owner.Owner) {
		w := c.shard("m1", "pool", 0)
		first := w.next()
		received := make(chan *assigned)
		go func() { received <- w.next() }()
		for i := range 5 { // many generations
			o := c.join(fmt.Sprintf("o%d", i))
			time.Sleep(time.Second)
			c.leave(o)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		select {
		case got := <-received:
			t.Errorf("generation %d before the acknowledgement of %d", got.generation, first.generation)
		default:
		}
		lsn := int64(c.status("m1").GetNamespaces()[0].GetLsn())
		if lsn < first.generation+5 {
			t.Fatalf("only %d changes", lsn-first.generation)
		}
		w.ack(first.generation, "")
		if got := <-received; got.generation != lsn || !got.matches(a, b) {
			t.Errorf("generation %d, the newest is %d", got.generation, lsn)
		}
	})
}

// "Unknown target: NOT_FOUND."
func TestShardingUnknownTarget(t *testing.T) {
	sharded(t, func(t *testing.T, c *cluster, _, _ *owner.Owner) {
		for _, m := range []string{"m1", "m2"} {
			for _, target := range []string{"nothing", "", "no/name", strings.Repeat("x", 1000)} {
				if s := c.shard(m, target, 0).fails(); s.Code() != codes.NotFound {
					t.Errorf("%s: target %q: %v", m, target, s)
				}
			}
		}
	})
}

// "No permission: PERMISSION_DENIED", under the rules of lookups.
func TestShardingAccess(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		a, err := c.joinAs("spiffe://d/owner/pool/a", "a", "pool")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "a has all keys", func() bool { return complete(a) })
		watch := func(m, id, target string) *shardingClient {
			stream, err := pb.NewAutoshardingServiceClient(c.connect(m, id)).WatchShardingAssignment(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w := &shardingClient{t: t, stream: stream}
			w.send(&pb.WatchShardingAssignmentRequest{Kind: &pb.WatchShardingAssignmentRequest_InitialClientConfig{
				InitialClientConfig: &pb.InitialClientConfig{Target: target},
			}})
			return w
		}
		for _, m := range []string{"m1", "m2"} {
			if got := watch(m, "spiffe://d/lookup/pool", "pool").accept(); !got.matches(a) {
				t.Errorf("%v", got)
			}
			for id, target := range map[string]string{
				"spiffe://d/lookup/pool": "other", "spiffe://d/owner/pool/a": "pool", "spiffe://d/somebody": "pool", "spiffe://d/lookup/other": "nothing",
			} {
				if s := watch(m, id, target).fails(); s.Code() != codes.PermissionDenied {
					t.Errorf("%s at %s of %s: %v", id, m, target, s)
				}
			}
		}
	})
}

// "It rejects others": a rejected assignment is logged with the client's reason and counted, and the
// next one follows.
func TestShardingRejected(t *testing.T) {
	var book logbook.Book
	shardedWith(t, func(c *cluster) { c.logs = book.Logger().Handler() }, func(t *testing.T, c *cluster, a, b *owner.Owner) {
		w := c.shard("m1", "pool", 0)
		w.ack(w.next().generation, "slices overlap")
		c.leave(b)
		got := w.next()
		for ; !got.matches(a); got = w.next() {
			w.ack(got.generation, "slices overlap")
		}
		w.ack(got.generation, "")
		synctest.Wait()
		st, err := c.admin("m1").ListLookups(t.Context(), &leaseholdv1.ListLookupsRequest{Version: wire.Version, Namespace: "pool"})
		if s := st.GetAutosharding(); err != nil || s.GetClients() != 1 || s.GetAccepted() != 1 || s.GetRejected()+1 != s.GetSent() || !strings.HasSuffix(s.GetRejection(), ": slices overlap") {
			t.Errorf("%v, %v", st, err)
		}
		if lines := book.Lines("rejected an assignment", "slices overlap"); len(lines) != 1 { // the others are suppressed
			t.Errorf("%d lines in the log: %s", len(lines), book.String())
		}
	})
}

// Hostile and broken clients: their streams end, with the reason.
func TestShardingViolations(t *testing.T) {
	ack := func(generation int64, message string) *pb.WatchShardingAssignmentRequest {
		return &pb.WatchShardingAssignmentRequest{Kind: &pb.WatchShardingAssignmentRequest_AssignmentAck{
			AssignmentAck: &pb.AssignmentAck{Generation: generation, ErrorMessage: message},
		}}
	}
	report := func(ranges int, key int, load float64) *pb.WatchShardingAssignmentRequest {
		l := new(pb.Load)
		for range ranges {
			l.RangeLoads = append(l.RangeLoads, &pb.RangeLoad{StartKey: make([]byte, key), Load: load})
		}
		return &pb.WatchShardingAssignmentRequest{Kind: &pb.WatchShardingAssignmentRequest_LoadReport{
			LoadReport: &pb.LoadReport{MetricLoads: map[string]*pb.Load{"requests": l}, StartTime: timestamppb.Now(), EndTime: timestamppb.Now()},
		}}
	}
	sharded(t, func(t *testing.T, c *cluster, _, _ *owner.Owner) {
		for name, bad := range map[string]func(generation int64) *pb.WatchShardingAssignmentRequest{
			"acknowledgement of an older generation": func(g int64) *pb.WatchShardingAssignmentRequest { return ack(g-1, "") },
			"acknowledgement of a newer generation":  func(g int64) *pb.WatchShardingAssignmentRequest { return ack(g+1, "") },
			"acknowledgement with a long text":       func(g int64) *pb.WatchShardingAssignmentRequest { return ack(g, strings.Repeat("é", 513)) },
			"nothing":                                func(int64) *pb.WatchShardingAssignmentRequest { return &pb.WatchShardingAssignmentRequest{} },
			"another first request": func(int64) *pb.WatchShardingAssignmentRequest {
				return &pb.WatchShardingAssignmentRequest{Kind: &pb.WatchShardingAssignmentRequest_InitialClientConfig{InitialClientConfig: &pb.InitialClientConfig{Target: "pool"}}}
			},
			"a load report with many ranges": func(int64) *pb.WatchShardingAssignmentRequest { return report(4100, 16, 1) },
			"a load report with a long key":  func(int64) *pb.WatchShardingAssignmentRequest { return report(1, 513, 1) },
			"a negative load":                func(int64) *pb.WatchShardingAssignmentRequest { return report(1, 16, -1) },
		} {
			w := c.shard("m1", "pool", 0)
			w.send(bad(w.next().generation))
			if s := w.fails(); s.Code() != codes.InvalidArgument {
				t.Errorf("%s: %v", name, s)
			}
		}
		for name, first := range map[string]*pb.WatchShardingAssignmentRequest{
			"acknowledgement": ack(1, ""), "load report": report(1, 16, 1), "nothing": {},
			"negative generation": {Kind: &pb.WatchShardingAssignmentRequest_InitialClientConfig{InitialClientConfig: &pb.InitialClientConfig{Target: "pool", LatestGeneration: -1}}},
		} {
			w := c.shardUngreeted("m1")
			w.send(first)
			if s := w.fails(); s.Code() != codes.InvalidArgument {
				t.Errorf("first %s: %v", name, s)
			}
		}
	})
}

// A client that never sends its first request, or never acknowledges, loses its stream.
func TestShardingSilentClients(t *testing.T) {
	sharded(t, func(t *testing.T, c *cluster, _, _ *owner.Owner) {
		if s := c.shardUngreeted("m1").fails(); s.Code() != codes.Unavailable {
			t.Errorf("without a request: %v", s)
		}
		w := c.shard("m1", "pool", 0)
		w.next()
		if s := w.fails(); s.Code() != codes.Unavailable || !strings.Contains(s.Message(), "acknowledgement") {
			t.Errorf("without an acknowledgement: %v", s)
		}
	})
}

// A deleted namespace ends its streams with NOT_FOUND.
func TestShardingDeletedNamespace(t *testing.T) {
	sharded(t, func(t *testing.T, c *cluster, a, b *owner.Owner) {
		w := c.shard("m1", "pool", 0)
		w.accept()
		c.leave(a)
		c.leave(b)
		if _, err := c.admin("m1").DeleteNamespace(t.Context(), &leaseholdv1.DeleteNamespaceRequest{Version: wire.Version, Name: "pool"}); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := w.receive(); err != nil {
				if status.Code(err) != codes.NotFound {
					t.Error(err)
				}
				return
			}
			w.ack(w.latest, "")
		}
	})
}
