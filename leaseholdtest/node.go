package leaseholdtest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/memnet"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Node is a computer in the cluster's network. Its methods may be called from many
// goroutines at once, but for those that fail the test.
type Node struct {
	cluster *Cluster
	host    *memnet.Host
	killed  bool // under the cluster's lock

	mu       sync.Mutex
	cleanups []func(context.Context)
}

// Port is where the server of a node is expected: owners join with it as their address.
const Port = 8080

// Name returns the node's name, which is also its host name in the network.
func (n *Node) Name() string { return n.host.Name() }

// Addr returns where callers reach the node's server: "a:8080".
func (n *Node) Addr() string { return fmt.Sprintf("%s:%d", n.Name(), Port) }

// Listen listens on a port of the node; 0 is any that is free. The listener is closed
// when the node is.
func (n *Node) Listen(port int) net.Listener {
	n.cluster.t.Helper()
	l, err := n.host.Listen(port)
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	return l
}

// Dial connects to an address in the cluster's network. It is made for
// [grpc.WithContextDialer]; with target "passthrough:///b:8080" gRPC leaves the name
// to it.
func (n *Node) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return n.host.Dial(ctx, addr)
}

// DialContext is Dial as an [net/http.Transport] wants it.
func (n *Node) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	return n.host.Dial(ctx, addr)
}

// DialOptions make a gRPC connection start at this node.
func (n *Node) DialOptions() []grpc.DialOption { return dialer(n.host) }

// OwnerConfig returns what an owner on this node joins with: as a server with the
// node's name and address. One that moves state, as a map of package leasemap does, joins
// with [Node.MovingConfig]: it would listen on a real socket otherwise, which holds the
// clock for ever.
func (n *Node) OwnerConfig() owner.Config {
	return owner.Config{
		Namespace: n.cluster.namespace, Managers: n.cluster.Managers(), Name: leasehold.OwnerID(n.Name()), Addr: n.Addr(),
		Credentials: insecure.NewCredentials(), DialOptions: n.DialOptions(), Logger: n.cluster.cfg.Logger.With("owner", n.Name()),
	}
}

// MovingConfig is OwnerConfig with [Node.Mover]: what leasemap.Join wants. Whoever calls
// [owner.Join] adds Export and Import to its Mover.
func (n *Node) MovingConfig() owner.Config {
	n.cluster.t.Helper()
	cfg := n.OwnerConfig()
	cfg.Mover = n.Mover()
	return cfg
}

// Mover returns what an owner on this node needs to move state over the cluster's
// network. Export and Import are not in it.
func (n *Node) Mover() *owner.Mover {
	n.cluster.t.Helper()
	l := n.Listen(0)
	return &owner.Mover{
		Listener: l, Advertise: l.Addr().String(), DialOptions: n.DialOptions(),
		Credentials: insecure.NewCredentials(), ServerCredentials: insecure.NewCredentials(),
	}
}

// LookupConfig returns what a caller on this node opens a lookup with.
func (n *Node) LookupConfig() lookup.Config {
	return lookup.Config{
		Namespace: n.cluster.namespace, Managers: n.cluster.Managers(),
		Credentials: insecure.NewCredentials(), DialOptions: n.DialOptions(), Logger: n.cluster.cfg.Logger.With("lookup", n.Name()),
	}
}

// Join joins an owner on this node, and closes it with the node. What cfg leaves out is
// as in OwnerConfig. It must be called by the test's goroutine.
func (n *Node) Join(cfg owner.Config) *owner.Owner {
	n.cluster.t.Helper()
	usual := n.OwnerConfig()
	cfg.Namespace, cfg.Managers, cfg.DialOptions = usual.Namespace, usual.Managers, append(usual.DialOptions, cfg.DialOptions...)
	cfg.Name, cfg.Addr = cmp.Or(cfg.Name, usual.Name), cmp.Or(cfg.Addr, usual.Addr)
	cfg.Logger = cmp.Or(cfg.Logger, usual.Logger)
	if cfg.Credentials == nil {
		cfg.Credentials = usual.Credentials
	}
	o := start(n, func(ctx context.Context) (*owner.Owner, error) { return owner.Join(ctx, cfg) })
	n.Cleanup(func(ctx context.Context) { _ = o.Close(ctx) })
	return o
}

// Lookup opens a lookup on this node, and closes it with the node. It must be called by
// the test's goroutine.
func (n *Node) Lookup() *lookup.Lookup {
	n.cluster.t.Helper()
	l := start(n, func(ctx context.Context) (*lookup.Lookup, error) { return lookup.Open(ctx, n.LookupConfig()) })
	n.Cleanup(func(context.Context) { _ = l.Close(context.Background()) })
	return l
}

// start starts something on a node, or fails the test.
func start[T any](n *Node, open func(context.Context) (T, error)) (started T) {
	n.cluster.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), n.cluster.patience())
	defer cancel()
	var err error
	labelled(n.Name(), func() { started, err = open(ctx) })
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	return started
}

// labelled starts something on a node, or a manager. Its goroutines have the node's name
// for a label, by which profiles tell one from the other.
func labelled(node string, start func()) {
	pprof.Do(context.Background(), pprof.Labels("node", node), func(context.Context) { start() })
}

// Cleanup has a function called when the node is killed, with a context that has ended,
// or when the test is over, with one that lasts for ten seconds: to close what runs on
// the node. The last comes first.
func (n *Node) Cleanup(f func(ctx context.Context)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cleanups = append(n.cleanups, f)
}

func (n *Node) end() {
	n.host.Thaw()
	n.Heal()
	ctx, cancel := n.cluster.context()
	defer cancel()
	n.clean(ctx)
	n.host.Kill()
}

func (n *Node) clean(ctx context.Context) {
	n.mu.Lock()
	all := n.cleanups
	n.cleanups = nil
	n.mu.Unlock()
	for _, f := range slices.Backward(all) {
		f(ctx)
	}
}

// Serve serves HTTP at the node's Addr, until the node ends.
func (n *Node) Serve(handler http.Handler) {
	n.cluster.t.Helper()
	listener := n.Listen(Port)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it ends with the node, one way or another
	}()
	n.Cleanup(func(context.Context) {
		_ = server.Close()
		<-ended
	})
}

// Client returns an HTTP client on this node, for addresses in the cluster's network.
// It gives up after ten seconds.
func (n *Node) Client() *http.Client {
	transport := &http.Transport{DialContext: n.DialContext}
	n.Cleanup(func(context.Context) { transport.CloseIdleConnections() })
	return &http.Client{Transport: transport, Timeout: within}
}

// Kill ends the node as kill -9 ends a process: its connections are reset, nobody hears
// a word, and what it held is gone. A node of the same name may come after it, and
// gets the name's leases when the old ones have run out.
func (n *Node) Kill() {
	n.cluster.mu.Lock()
	n.killed = true
	n.cluster.mu.Unlock()
	n.host.Kill()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	n.clean(ended)
}

// Pause stops the node, as a long garbage collection or kill -STOP does: it neither
// hears nor says anything until Resume. Its goroutines run on if they do neither.
func (n *Node) Pause() { n.host.Freeze() }

// Resume lets a paused node go on.
func (n *Node) Resume() { n.host.Thaw() }

// Cut separates the node from others, named by their hosts: "b", "m1". Without names
// it is separated from all managers, and keeps its connections to callers. Nothing is
// told to either side, and what was under way arrives after Heal. A name that no host
// has fails the test: a cut that separates nobody proves nothing.
func (n *Node) Cut(names ...string) {
	n.cluster.t.Helper()
	if len(names) == 0 {
		for i := range n.cluster.cfg.Managers {
			names = append(names, managerName(i))
		}
	}
	hosts := n.cluster.hosts()
	for _, name := range names {
		if !slices.Contains(hosts, name) {
			n.cluster.t.Fatalf("%s cannot be cut off from %q: there are only %v", n.Name(), name, hosts)
		}
	}
	for _, name := range names {
		n.cluster.net.Cut(n.Name(), name)
	}
}

// Heal ends all cuts of the node.
func (n *Node) Heal() { n.cluster.net.HealAll(n.Name()) }

// Expire lets the leases of the node run out, because it does not reach the managers for
// as long as that takes. When it returns, the managers have given its keys to other nodes,
// and it reaches them again. There must be another: leases that no other owner could have
// are suspended and do not end, which [Node.Cut] and [Node.Heal] are for.
func (n *Node) Expire() {
	n.cluster.t.Helper()
	n.Cut()
	defer n.Heal()
	for deadline := time.Now().Add(n.cluster.patience()); n.cluster.leasesOf(n.Name()) > 0; n.cluster.Advance(n.cluster.cfg.Lease / 100) {
		if time.Now().After(deadline) {
			n.cluster.t.Fatalf("the leases of %s do not run out: want another node with an owner that can have its keys", n.Name())
		}
	}
}
