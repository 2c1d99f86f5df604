package keybalancer

import (
	"context"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leasehold-dev/leasehold"
)

// Name is the name of the policy in a service config.
const Name = "leasehold"

// gRPC finds policies by name in a global map without a lock, so they can only be registered in an init
// function. It is the only global; a policy gets everything else from its resolver.
func init() { balancer.Register(builder{}) }

// A Table maps keys to addresses. It is safe for concurrent use, and its methods do not block.
type Table interface {
	Find(leasehold.Key) (addr string, ok bool)
	Addrs() []string // sorted, each once
}

// routes is the resolver's attribute for the policy.
type routes struct {
	table          Table
	maxOutstanding int // calls per server; 0: no limit
}

type routesKey struct{}

// State returns the state that a resolver passes to its ClientConn initially and after each change of the table.
// maxOutstanding limits the concurrent calls per server; 0 means no limit.
func State(table Table, maxOutstanding int) resolver.State {
	return resolver.State{Attributes: attributes.New(routesKey{}, &routes{table, maxOutstanding})}
}

// WithOwner returns the context of a call to the owner of a key, which has the given address in the table. The
// call is not sent if the key has another owner by then: see [NotSent].
func WithOwner(ctx context.Context, key leasehold.Key, addr string) context.Context {
	return &attempt{Context: ctx, key: key, addr: addr}
}

// Sent reports whether a call with this context, which must be that of [WithOwner] or derived from it, may have
// been sent.
func Sent(ctx context.Context) bool {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	return ok && a.sent.Load()
}

// An attempt is a context with the destination of a call. Unlike context.WithValue it needs no second
// allocation for each call.
type attempt struct {
	context.Context
	key  leasehold.Key
	addr string
	sent atomic.Bool // a connection was picked
}

type attemptKey struct{}

// Value returns the context itself for attemptKey.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

type builder struct{}

func (builder) Name() string { return Name }

func (builder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return &policy{cc: cc, conns: map[string]*conn{}}
}

// A policy is the balancer of one ClientConn. gRPC serializes calls of its methods and of the listeners of its
// connections.
type policy struct {
	cc     balancer.ClientConn
	routes *routes
	conns  map[string]*conn // by address; immutable, because pickers share it
	counts [connectivity.Shutdown + 1]int
}

// UpdateClientConnState applies a new table. It publishes a picker even if the servers are unchanged,
// because the key of a waiting call may have moved.
func (p *policy) UpdateClientConnState(s balancer.ClientConnState) error {
	given, ok := s.ResolverState.Attributes.Value(routesKey{}).(*routes)
	if !ok {
		return balancer.ErrBadResolverState
	}
	p.routes = given
	gone, err := p.updateConns(given.table.Addrs())
	p.publish()
	for _, c := range gone {
		c.sub.Shutdown() // after its calls have ended
	}
	return err
}

// updateConns sets the connections to those of the addresses, and returns the removed ones.
func (p *policy) updateConns(addrs []string) (gone []*conn, err error) {
	next := make(map[string]*conn, len(addrs))
	for _, addr := range addrs {
		c, known := p.conns[addr]
		if !known {
			if c, err = p.connection(addr); err != nil {
				return nil, err // the ClientConn is closing
			}
		}
		next[addr] = c
	}
	for addr, c := range p.conns {
		if _, stays := slices.BinarySearch(addrs, addr); !stays {
			p.counts[c.known]--
			gone = append(gone, c)
		}
	}
	p.conns = next
	return gone, nil
}

// connection returns a new idle connection.
func (p *policy) connection(addr string) (*conn, error) {
	c := newConn(addr, p.routes.maxOutstanding)
	var err error
	c.sub, err = p.cc.NewSubConn([]resolver.Address{{Addr: addr}}, balancer.NewSubConnOptions{ //nolint:staticcheck // it is deprecated for more than one address
		StateListener: func(s balancer.SubConnState) { p.changed(c, s) },
	})
	if err != nil {
		return nil, err
	}
	p.counts[c.known]++
	return c, nil
}

// changed processes a state change of a connection.
func (p *policy) changed(c *conn, s balancer.SubConnState) {
	if p.conns[c.addr] != c {
		return // it is removed
	}
	p.counts[c.known]--
	c.set(s)
	p.counts[c.known]++
	p.publish()
}

// publish updates the picker, so that waiting calls pick again.
func (p *policy) publish() {
	p.cc.UpdateState(balancer.State{
		ConnectivityState: p.state(),
		Picker:            &picker{table: p.routes.table, conns: p.conns},
	})
}

// state returns the state of the ClientConn: that of its best connection.
func (p *policy) state() connectivity.State {
	for _, s := range []connectivity.State{connectivity.Ready, connectivity.Connecting, connectivity.Idle} {
		if p.counts[s] > 0 {
			return s
		}
	}
	return connectivity.TransientFailure
}

// ResolverError does nothing: the last table stays valid.
func (p *policy) ResolverError(error) {}

// UpdateSubConnState is never called: connections have listeners.
func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle does nothing: calls establish connections.
func (p *policy) ExitIdle() {}

// Close closes all connections.
func (p *policy) Close() {
	for _, c := range p.conns {
		c.sub.Shutdown()
	}
	p.conns = map[string]*conn{}
}
