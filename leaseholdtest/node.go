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

// A Node is a computer in the cluster's network. It is safe for concurrent use, except for the
// methods that can fail the test.
type Node struct {
	cluster *Cluster
	host    *memnet.Host
	killed  bool // under the cluster's lock

	mu       sync.Mutex
	cleanups []func(context.Context)
}

// Port is the port of a node's server in the owner's address.
const Port = 8080

// Name returns the node's name, which is also its host name in the network.
func (n *Node) Name() string { return n.host.Name() }

// Addr returns the address of the node's server for callers: "a:8080".
func (n *Node) Addr() string { return fmt.Sprintf("%s:%d", n.Name(), Port) }

// Listen listens on a port of the node; 0 selects a free port. The listener is closed
// with the node.
func (n *Node) Listen(port int) net.Listener {
	n.cluster.t.Helper()
	l, err := n.host.Listen(port)
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	return l
}

// Dial connects to an address in the cluster's network. It is for
// [grpc.WithContextDialer]; with target "passthrough:///b:8080" gRPC passes the name
// unresolved.
func (n *Node) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return n.host.Dial(ctx, addr)
}

// DialContext is Dial for [net/http.Transport].
func (n *Node) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	return n.host.Dial(ctx, addr)
}

// DialOptions returns the options of gRPC connections from this node.
func (n *Node) DialOptions() []grpc.DialOption { return dialer(n.host) }

// OwnerConfig returns the configuration of an owner on this node, with the
// node's name and address. An owner that moves state, such as a map of package leasemap, needs
// [Node.MovingConfig]: otherwise it would listen on a real socket, which stops the
// clock.
func (n *Node) OwnerConfig() owner.Config {
	return owner.Config{
		Namespace: n.cluster.namespace, Managers: n.cluster.Managers(), Name: leasehold.OwnerID(n.Name()), Addr: n.Addr(),
		Credentials: insecure.NewCredentials(), DialOptions: n.DialOptions(), Logger: n.cluster.cfg.Logger.With("owner", n.Name()),
	}
}

// MovingConfig returns OwnerConfig with [Node.Mover], for leasemap.Join. For
// [owner.Join] the caller adds Export and Import to the Mover.
func (n *Node) MovingConfig() owner.Config {
	n.cluster.t.Helper()
	cfg := n.OwnerConfig()
	cfg.Mover = n.Mover()
	return cfg
}

// Mover returns a Mover for the cluster's network, without Export and Import.
func (n *Node) Mover() *owner.Mover {
	n.cluster.t.Helper()
	l := n.Listen(0)
	return &owner.Mover{
		Listener: l, Advertise: l.Addr().String(), DialOptions: n.DialOptions(),
		Credentials: insecure.NewCredentials(), ServerCredentials: insecure.NewCredentials(),
	}
}

// LookupConfig returns the configuration of a lookup on this node.
func (n *Node) LookupConfig() lookup.Config {
	return lookup.Config{
		Namespace: n.cluster.namespace, Managers: n.cluster.Managers(),
		Credentials: insecure.NewCredentials(), DialOptions: n.DialOptions(), Logger: n.cluster.cfg.Logger.With("lookup", n.Name()),
	}
}

// Join joins an owner on this node, and closes it with the node. OwnerConfig has the defaults
// of cfg. It must be called by the test's goroutine.
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

// start opens a client on a node, or fails the test.
func start[T any](n *Node, open func(context.Context) (T, error)) (started T) {
	n.cluster.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), n.cluster.timeout())
	defer cancel()
	var err error
	labelled(n.Name(), func() { started, err = open(ctx) })
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	return started
}

// labelled calls start with the name of the node or manager as profiler label of its goroutines.
func labelled(node string, start func()) {
	pprof.Do(context.Background(), pprof.Labels("node", node), func(context.Context) { start() })
}

// Cleanup registers a function that closes a server of the node. It is called when the node is
// killed, with a context that has ended, or at the end of the test, with a timeout of ten
// seconds. The functions are called in reverse order.
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
		_ = server.Serve(listener) // ends with the node
	}()
	n.Cleanup(func(context.Context) {
		_ = server.Close()
		<-ended
	})
}

// Client returns an HTTP client on this node, for addresses in the cluster's network,
// with a timeout of ten seconds.
func (n *Node) Client() *http.Client {
	transport := &http.Transport{DialContext: n.DialContext}
	n.Cleanup(func(context.Context) { transport.CloseIdleConnections() })
	return &http.Client{Transport: transport, Timeout: requestTimeout}
}

// Kill ends the node as kill -9 ends a process: its connections are reset, its last messages are
// dropped, and its state is lost. A new node may have the same name, and
// gets the name's leases after the old ones have expired.
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
// receives nor sends until Resume. Its goroutines run while they do neither.
func (n *Node) Pause() { n.host.Freeze() }

// Resume resumes a paused node.
func (n *Node) Resume() { n.host.Thaw() }

// Cut partitions the node from other hosts: "b", "m1". Without names
// it is partitioned from all managers, and keeps its connections to callers. Connections stay
// open, and messages in flight arrive after Heal. An unknown host name
// fails the test.
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
			n.cluster.t.Fatalf("%s cannot be cut off from %q: the hosts are %v", n.Name(), name, hosts)
		}
	}
	for _, name := range names {
		n.cluster.net.Cut(n.Name(), name)
	}
}

// Heal ends all cuts of the node.
func (n *Node) Heal() { n.cluster.net.HealAll(n.Name()) }

// Expire partitions the node from the managers until its leases have expired. When it returns,
// the managers have granted its keys to other nodes,
// and the partition is healed. It requires another owner: without one, the managers keep the
// leases, which are suspended. For that use [Node.Cut] and [Node.Heal].
func (n *Node) Expire() {
	n.cluster.t.Helper()
	n.Cut()
	defer n.Heal()
	for deadline := time.Now().Add(n.cluster.timeout()); n.cluster.leasesOf(n.Name()) > 0; n.cluster.Advance(n.cluster.cfg.Lease / 100) {
		if time.Now().After(deadline) {
			n.cluster.t.Fatalf("the leases of %s do not expire: want another node with an owner that can have its keys", n.Name())
		}
	}
}
