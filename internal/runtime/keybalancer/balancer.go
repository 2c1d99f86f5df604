package keybalancer

import (
	"context"
	"slices"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leasehold-dev/leasehold"
)

// Name is what the policy is called in a service config.
const Name = "leasehold"

// gRPC knows policies by their names, in a map of the process, and forbids to add
// one later than in an init function: the map has no lock, and whoever creates or
// configures a connection, of this package or not, reads it. It is the one thing
// that is said globally; a policy gets everything else from its resolver.
func init() { balancer.Register(builder{}) }

// A Table says where keys are. Its methods may be called from many goroutines at
// once, and do not wait.
type Table interface {
	Find(leasehold.Key) (addr string, ok bool)
	Addrs() []string // sorted, each once
}

// routes is what a resolver hands over.
type routes struct {
	table Table
	most  int
}

type routesKey struct{}

// State is what a resolver tells its ClientConn at first, and whenever the table has
// changed. At most so many calls to one server are under way at a time, without end
// if most is 0.
func State(table Table, most int) resolver.State {
	return resolver.State{Attributes: attributes.New(routesKey{}, &routes{table, most})}
}

// WithKey returns the context of a call that goes to the owner of a key.
func WithKey(ctx context.Context, key leasehold.Key) context.Context {
	return &keyed{ctx, key}
}

// keyed is what context.WithValue would return, without a second allocation for the
// key: it is on the way of every call.
type keyed struct {
	context.Context
	key leasehold.Key
}

type callKey struct{}

// Value finds the context itself.
func (k *keyed) Value(key any) any {
	if key == (callKey{}) {
		return k
	}
	return k.Context.Value(key)
}

type builder struct{}

func (builder) Name() string { return Name }

func (builder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return &policy{cc: cc, conns: map[string]*conn{}}
}

// A policy is the balancer of one ClientConn. gRPC calls it, and the listeners of
// its connections, one at a time.
type policy struct {
	cc     balancer.ClientConn
	routes *routes
	conns  map[string]*conn // by address; pickers share it, so it is replaced and not changed
	counts [connectivity.Shutdown + 1]int
}

// UpdateClientConnState takes a table over, as it is now. It publishes a picker
// even if the servers are the same: calls may wait for one to find that their key
// has gone to another server.
func (p *policy) UpdateClientConnState(s balancer.ClientConnState) error {
	given, ok := s.ResolverState.Attributes.Value(routesKey{}).(*routes)
	if !ok {
		return balancer.ErrBadResolverState
	}
	p.routes = given
	gone, err := p.follow(given.table.Addrs())
	p.publish()
	for _, c := range gone {
		c.sub.Shutdown() // when its calls have ended
	}
	return err
}

// follow makes the connections those to the addresses, and returns the others.
func (p *policy) follow(addrs []string) (gone []*conn, err error) {
	next := make(map[string]*conn, len(addrs))
	for _, addr := range addrs {
		c, known := p.conns[addr]
		if !known {
			if c, err = p.connection(addr); err != nil {
				return nil, err // it is being closed
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

// connection adds a connection that is not connected yet.
func (p *policy) connection(addr string) (*conn, error) {
	c := newConn(addr, p.routes.most)
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

// changed hears of the state of a connection.
func (p *policy) changed(c *conn, s balancer.SubConnState) {
	if p.conns[c.addr] != c {
		return // its address has gone
	}
	p.counts[c.known]--
	c.set(s)
	p.counts[c.known]++
	p.publish()
}

// publish has waiting calls look again.
func (p *policy) publish() {
	p.cc.UpdateState(balancer.State{
		ConnectivityState: p.state(),
		Picker:            &picker{table: p.routes.table, conns: p.conns},
	})
}

// state is what the ClientConn says of itself: that of its best connection.
func (p *policy) state() connectivity.State {
	for _, s := range []connectivity.State{connectivity.Ready, connectivity.Connecting, connectivity.Idle} {
		if p.counts[s] > 0 {
			return s
		}
	}
	return connectivity.TransientFailure
}

// ResolverError does nothing: a table stays good when there is no newer one.
func (p *policy) ResolverError(error) {}

// UpdateSubConnState is never called: connections have listeners.
func (p *policy) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle does nothing: connections are made when they are needed.
func (p *policy) ExitIdle() {}

// Close lets go of the connections.
func (p *policy) Close() {
	for _, c := range p.conns {
		c.sub.Shutdown()
	}
	p.conns = map[string]*conn{}
}
