package keybalancer

import (
	"context"
	"errors"
	"slices"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
)

// places is a table: the key of each address is its index.
type places []string

func (p places) Find(k leasehold.Key) (string, bool) {
	if int(k) >= len(p) || p[k] == "" {
		return "", false
	}
	return p[k], true
}

func (p places) Addrs() []string {
	addrs := slices.DeleteFunc(slices.Clone(p), func(a string) bool { return a == "" })
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

// A fakeConn is a ClientConn for a policy.
type fakeConn struct {
	balancer.ClientConn
	made  map[string]*fakeSub
	state balancer.State
}

type fakeSub struct {
	balancer.SubConn
	connects, shutdowns int
	tell                func(balancer.SubConnState)
}

func (s *fakeSub) Connect()  { s.connects++ }
func (s *fakeSub) Shutdown() { s.shutdowns++ }

func (c *fakeConn) NewSubConn(addrs []resolver.Address, o balancer.NewSubConnOptions) (balancer.SubConn, error) {
	s := &fakeSub{tell: o.StateListener}
	c.made[addrs[0].Addr] = s
	return s, nil
}

func (c *fakeConn) UpdateState(s balancer.State) { c.state = s }

// pick picks for a call to the owner of a key in the current table.
func (c *fakeConn) pick(k leasehold.Key) (balancer.PickResult, error) {
	addr, _ := c.state.Picker.(*picker).table.Find(k)
	return c.pickAt(WithOwner(context.Background(), k, addr))
}

func (c *fakeConn) pickAt(ctx context.Context) (balancer.PickResult, error) {
	return c.state.Picker.Pick(balancer.PickInfo{Ctx: ctx, FullMethodName: "/s/m"})
}

func (c *fakeConn) is(addr string, s connectivity.State) {
	c.made[addr].tell(balancer.SubConnState{ConnectivityState: s, ConnectionError: errors.New("refused")})
}

func newPolicy(t *testing.T, most int, p places) (*fakeConn, func(places)) {
	t.Helper()
	cc := &fakeConn{made: map[string]*fakeSub{}}
	b := builder{}.Build(cc, balancer.BuildOptions{})
	t.Cleanup(b.Close)
	update := func(p places) {
		if err := b.UpdateClientConnState(balancer.ClientConnState{ResolverState: State(p, most)}); err != nil {
			t.Fatal(err)
		}
	}
	update(p)
	return cc, update
}

// wantWait checks that a call waits for the next picker.
func (c *fakeConn) wantWait(t *testing.T, k leasehold.Key) {
	t.Helper()
	if _, err := c.pick(k); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
		t.Errorf("key %d: %v, want it to wait", k, err)
	}
}

func (c *fakeConn) wantSent(t *testing.T, k leasehold.Key, addr string) func(balancer.DoneInfo) {
	t.Helper()
	r, err := c.pick(k)
	if err != nil || r.SubConn != c.made[addr] {
		t.Errorf("key %d: %v, want it sent to %s", k, err, addr)
	}
	return r.Done
}

func (c *fakeConn) wantNotSent(t *testing.T, k leasehold.Key, code codes.Code, kind leasehold.Kind) {
	t.Helper()
	_, err := c.pick(k)
	var unsent *NotSent
	if !errors.As(err, &unsent) || status.Code(err) != code || !errors.Is(err, kind) {
		t.Errorf("key %d: %v, want %v and %v", k, err, code, kind)
	}
}

func (c *fakeConn) wantState(t *testing.T, want connectivity.State) {
	t.Helper()
	if c.state.ConnectivityState != want {
		t.Errorf("state %v, want %v", c.state.ConnectivityState, want)
	}
}

func TestConnectionStates(t *testing.T) {
	cc, update := newPolicy(t, 0, places{"a", "b", ""})
	cc.wantState(t, connectivity.Idle)
	cc.wantWait(t, 0)
	cc.wantWait(t, 0)
	if a, b := cc.made["a"], cc.made["b"]; a.connects != 1 || b.connects != 0 {
		t.Errorf("connects of a: %d, want 1; of b: %d", a.connects, b.connects)
	}
	cc.is("a", connectivity.Connecting)
	cc.wantState(t, connectivity.Connecting)
	cc.wantWait(t, 0)
	cc.is("a", connectivity.Ready)
	cc.wantState(t, connectivity.Ready)
	cc.wantSent(t, 0, "a")
	cc.wantNotSent(t, 2, codes.Unavailable, leasehold.ErrNoOwner)

	cc.is("a", connectivity.Idle)
	cc.wantWait(t, 0)
	if n := cc.made["a"].connects; n != 2 {
		t.Errorf("connects of a: %d, want 2 after its connection has ended", n)
	}
	cc.is("a", connectivity.TransientFailure)
	cc.wantNotSent(t, 0, codes.Unavailable, leasehold.ErrUnavailable)
	cc.wantState(t, connectivity.Idle) // b
	update(places{"a"})
	cc.wantState(t, connectivity.TransientFailure)
}

func TestTableChanges(t *testing.T) {
	cc, update := newPolicy(t, 0, places{"a", "a"})
	cc.is("a", connectivity.Ready)
	old, a := cc.state.Picker, cc.made["a"]
	update(places{"b", "a"})
	cc.wantWait(t, 0)
	cc.is("b", connectivity.Ready)
	cc.wantSent(t, 0, "b")
	cc.wantSent(t, 1, "a")
	if a != cc.made["a"] || a.shutdowns > 0 {
		t.Error("a remaining connection was closed")
	}
	update(places{"b", "b"})
	cc.wantSent(t, 1, "b")
	if a.shutdowns != 1 {
		t.Errorf("a removed connection was closed %d times", a.shutdowns)
	}
	cc.is("a", connectivity.Shutdown) // ignored
	cc.wantState(t, connectivity.Ready)
	update(places{"", ""})
	cc.wantNotSent(t, 0, codes.Unavailable, leasehold.ErrNoOwner)
	cc.wantState(t, connectivity.TransientFailure)

	update(places{"a"})
	if cc.made["a"] == a {
		t.Error("no new connection for an address that was added again")
	}
	cc.wantWait(t, 0)
	// With a picker older than its table the call waits for the next one.
	ahead := &picker{table: places{"new"}, conns: old.(*picker).conns}
	if _, err := ahead.Pick(balancer.PickInfo{Ctx: WithOwner(context.Background(), 0, "new")}); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
		t.Errorf("error %v", err)
	}
}

// A call is sent to the address in its context, or not at all.
func TestMovedBeforeTheCallIsSent(t *testing.T) {
	cc, update := newPolicy(t, 0, places{"a", "b"})
	cc.is("b", connectivity.Ready)
	ctx := WithOwner(context.Background(), 0, "a")
	if _, err := cc.pickAt(ctx); !errors.Is(err, balancer.ErrNoSubConnAvailable) { // connecting
		t.Errorf("error %v", err)
	}
	update(places{"b", "b"})
	var unsent *NotSent
	if _, err := cc.pickAt(ctx); !errors.As(err, &unsent) || leasehold.KindOf(err) != leasehold.ErrNoOwner || Sent(ctx) {
		t.Errorf("sent: %v, error %v", Sent(ctx), err)
	}
	ctx = WithOwner(context.Background(), 0, "b")
	if _, err := cc.pickAt(ctx); err != nil || !Sent(ctx) {
		t.Errorf("sent: %v, error %v", Sent(ctx), err)
	}
	if Sent(context.Background()) {
		t.Error("a context without a key was sent")
	}
}

func TestOutstandingLimit(t *testing.T) {
	cc, _ := newPolicy(t, 2, places{"a", "b"})
	cc.is("a", connectivity.Ready)
	cc.is("b", connectivity.Ready)
	done := cc.wantSent(t, 0, "a")
	cc.wantSent(t, 0, "a")
	for range 3 {
		cc.wantNotSent(t, 0, codes.ResourceExhausted, leasehold.ErrLimit)
	}
	cc.wantSent(t, 1, "b")
	done(balancer.DoneInfo{})
	cc.wantSent(t, 0, "a")
	cc.wantNotSent(t, 0, codes.ResourceExhausted, leasehold.ErrLimit)
}

func TestMisuse(t *testing.T) {
	cc, _ := newPolicy(t, 0, places{"a"})
	if _, err := cc.state.Picker.Pick(balancer.PickInfo{Ctx: context.Background(), FullMethodName: "/s/m"}); status.Code(err) != codes.Internal {
		t.Errorf("a call without a key: %v", err)
	}
	b := builder{}.Build(cc, balancer.BuildOptions{})
	if err := b.UpdateClientConnState(balancer.ClientConnState{}); !errors.Is(err, balancer.ErrBadResolverState) {
		t.Errorf("without a table: %v", err)
	}
}

func TestPickDoesNotAllocate(t *testing.T) {
	cc, _ := newPolicy(t, 1, places{"a"})
	cc.is("a", connectivity.Ready)
	call := balancer.PickInfo{Ctx: WithOwner(context.Background(), 0, "a")}
	if n := testing.AllocsPerRun(100, func() {
		r, _ := cc.state.Picker.Pick(call)
		r.Done(balancer.DoneInfo{})
	}); n != 0 {
		t.Errorf("%v allocations per pick", n)
	}
}
