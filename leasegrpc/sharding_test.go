package leasegrpc_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/autosharding" // its parser of service configs
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	pb "github.com/leasehold-dev/leasehold/proto/autosharding/v1"
)

// A call may have a name in the header of the key, and a second header with the kind of the key.
func TestNameInHeader(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		servers := map[string]*counters{"a": serve(t, c.Node("a")), "b": serve(t, c.Node("b"))}
		c.Settle()
		node := c.Node("caller")
		owner, _ := c.Owner(leasehold.KeyOf("alice"))
		other := map[string]string{"a": "b", "b": "a"}[owner]
		for _, test := range []struct {
			server string
			header []string
			code   codes.Code
		}{
			{owner, []string{"leasehold-key", "alice", "leasehold-key-kind", "name"}, codes.OK},
			{owner, []string{"leasehold-key", leasehold.KeyOf("alice").String()}, codes.OK},
			{other, []string{"leasehold-key", "alice", "leasehold-key-kind", "name"}, codes.Aborted},
			{owner, []string{"leasehold-key", "alice"}, codes.InvalidArgument},
			{owner, []string{"leasehold-key", "", "leasehold-key-kind", "name"}, codes.InvalidArgument},
			{owner, []string{"leasehold-key", "alice", "leasehold-key-kind", "hash"}, codes.InvalidArgument},
			{owner, []string{"leasehold-key", "alice", "leasehold-key-kind", "name", "leasehold-key-kind", "name"}, codes.InvalidArgument},
			{owner, []string{"leasehold-key-kind", "name"}, codes.InvalidArgument},
		} {
			before := servers["a"].calls.Load() + servers["b"].calls.Load()
			chat, err := plain(t, node, test.server).chat(metadata.AppendToOutgoingContext(patient(t), test.header...))
			if err != nil {
				t.Fatal(err)
			}
			_ = chat.CloseSend()
			_, err = chat.next()
			if got := status.Code(err); got != test.code && !(test.code == codes.OK && err.Error() == "EOF") {
				t.Errorf("%v at %s: %v, want %v", test.header, test.server, err, test.code)
			}
			if n := servers["a"].calls.Load() + servers["b"].calls.Load() - before; n > 0 && test.code != codes.OK {
				t.Errorf("%v: the handler was called", test.header)
			}
		}
	})
}

// stockConfig is the service config in docs/languages.md.
const stockConfig = `{
	"loadBalancingConfig": [{"autosharding_experimental": {
		"channelFactoryKey": "managers", "autoshardingTarget": "test", "keyHeaderName": "leasehold-key", "initialAssignmentTimeout": "60s"
	}}],
	"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["ABORTED"]
	}}]
}`

// gRPC's own policy accepts the documented service config. Its balancer is incomplete in grpc-go 1.85.
func TestStockServiceConfig(t *testing.T) {
	for config, valid := range map[string]bool{stockConfig: true, strings.Replace(stockConfig, `"autoshardingTarget": "test", `, "", 1): false} {
		conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(config))
		if (err == nil) != valid {
			t.Errorf("%s: %v", config, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}

// A stock client routes calls by assignments and headers alone. When a key moves, its call is refused by the
// former owner before the handler, and its first retry reaches the new one.
func TestStockClient(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		servers := map[string]*counters{}
		for _, name := range []string{"a", "b", "c"} {
			servers[name] = serve(t, c.Node(name))
		}
		c.Settle()
		stock := newStock(t, c)
		caller := counterClient{stock.conn}
		add := func(name string) (int64, error) {
			ctx := metadata.AppendToOutgoingContext(patient(t), "leasehold-key", leasehold.KeyOf(name).String())
			return caller.add(ctx, name)
		}
		want := map[string]int64{}
		for i := range 60 {
			name := fmt.Sprint("user-", i)
			at, _ := c.Owner(leasehold.KeyOf(name))
			want[at]++
			if n, err := add(name); n != 1 || err != nil {
				t.Fatalf("%s: %d, %v", name, n, err)
			}
		}
		for name, s := range servers {
			if got := s.calls.Load(); got != want[name] || got == 0 {
				t.Errorf("%s got %d calls, want %d", name, got, want[name])
			}
		}
		for round := range int64(6) {
			from, _ := c.Owner(leasehold.KeyOf("alice"))
			to := map[string]string{"a": "b", "b": "c", "c": "a"}[from]
			stock.before.Store(stock.slices.Load())
			stock.late.Store(true) // the assignment arrives after the call
			c.Move(rangeOf("alice"), to)
			attempts := stock.picks.Load()
			time.AfterFunc(50*time.Millisecond, func() { stock.late.Store(false) })
			if n, err := add("alice"); n != round+1 || err != nil {
				t.Fatalf("after move %d: %d, %v", round, n, err)
			}
			if n := stock.picks.Load() - attempts; n != 2 {
				t.Errorf("move %d: %d attempts, want one retry", round, n)
			}
		}
	})
}

// A stock is a client with a load-balancing policy after the specification, because that of grpc-go is
// incomplete.
type stock struct {
	conn    *grpc.ClientConn
	watcher pb.AutoshardingServiceClient
	picks   atomic.Int64 // picks of a server
	slices  atomic.Pointer[[]stockSlice]
	before  atomic.Pointer[[]stockSlice] // used while late
	late    atomic.Bool
}

type stockSlice struct {
	start    string
	endpoint string // "" without an owner
}

func newStock(t *testing.T, c *leaseholdtest.Cluster) *stock {
	t.Helper()
	node := c.Node("caller")
	managers, err := grpc.NewClient("passthrough:///"+c.Managers()[0], node.DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	s := &stock{watcher: pb.NewAutoshardingServiceClient(managers)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	first := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.follow(ctx, string(c.Namespace()), first); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}()
	<-first
	policy := fmt.Sprintf("stock_test_%p", s)
	balancer.Register(base.NewBalancerBuilder(policy, s, base.Config{}))
	var state resolver.State
	for _, name := range []string{"a", "b", "c"} {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: c.Node(name).Addr()})
	}
	r := manual.NewBuilderWithScheme("stock")
	r.InitialState(state)
	config := fmt.Sprintf(`{"loadBalancingConfig": [{%q: {}}], "methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2, "retryableStatusCodes": ["ABORTED"]}}]}`, policy)
	s.conn, err = grpc.NewClient("stock:///test", append(node.DialOptions(), grpc.WithResolvers(r), grpc.WithDefaultServiceConfig(config))...)
	if err != nil {
		t.Fatal(err)
	}
	node.Cleanup(func(context.Context) {
		_ = s.conn.Close()
		cancel()
		<-ended
		_ = managers.Close()
	})
	return s
}

// follow receives assignments and acknowledges them.
func (s *stock) follow(ctx context.Context, target string, first chan struct{}) error {
	stream, err := s.watcher.WatchShardingAssignment(ctx)
	if err != nil {
		return err
	}
	err = stream.Send(&pb.WatchShardingAssignmentRequest{Kind: &pb.WatchShardingAssignmentRequest_InitialClientConfig{
		InitialClientConfig: &pb.InitialClientConfig{Target: target},
	}})
	var (
		assigned  []*pb.SliceAssignment
		endpoints []*pb.EndpointState
	)
	for err == nil {
		var m *pb.WatchShardingAssignmentResponse
		if m, err = stream.Recv(); err != nil {
			break
		}
		assigned = append(assigned, m.GetChunk().GetSliceAssignments()...)
		endpoints = append(endpoints, m.GetChunk().GetEndpoints()...)
		if m.GetMetadata() == nil {
			continue
		}
		var all []stockSlice
		for _, a := range assigned {
			one := stockSlice{start: string(a.GetSlice().GetStartKey())}
			for _, e := range a.GetEndpoints() {
				one.endpoint = endpoints[e.GetEndpointIndex()].GetEndpoint()
			}
			all = append(all, one)
		}
		slices.SortFunc(all, func(a, b stockSlice) int { return cmp.Compare(a.start, b.start) })
		if s.slices.Swap(&all) == nil {
			close(first)
		}
		assigned, endpoints = nil, nil
		err = stream.Send(&pb.WatchShardingAssignmentRequest{Kind: &pb.WatchShardingAssignmentRequest_AssignmentAck{
			AssignmentAck: &pb.AssignmentAck{Generation: m.GetMetadata().GetGeneration(), Accepted: true},
		}})
	}
	return err
}

// Build implements [base.PickerBuilder].
func (s *stock) Build(info base.PickerBuildInfo) balancer.Picker {
	p := &stockPicker{stock: s, connections: make(map[string]balancer.SubConn)}
	for sc, at := range info.ReadySCs {
		p.connections[at.Address.Addr] = sc
	}
	return p
}

type stockPicker struct {
	*stock
	connections map[string]balancer.SubConn
}

// Pick implements [balancer.Picker].
func (p *stockPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	md, _ := metadata.FromOutgoingContext(info.Ctx)
	all := *p.slices.Load()
	if p.late.Load() {
		all = *p.before.Load()
	}
	i, exact := slices.BinarySearchFunc(all, md.Get("leasehold-key")[0], func(s stockSlice, key string) int { return cmp.Compare(s.start, key) })
	if !exact {
		i--
	}
	sc := p.connections[all[i].endpoint]
	if sc == nil {
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	}
	p.picks.Add(1)
	return balancer.PickResult{SubConn: sc}, nil
}
