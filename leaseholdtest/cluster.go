package leaseholdtest

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/memnet"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// Config configures a cluster. The zero Config is valid.
type Config struct {
	// Managers is the number of managers, named m1 and so on. Default 1; with 3 the test can
	// kill the leader, and another manager takes over.
	Managers int
	// Namespace is the namespace of the cluster. Default "test".
	Namespace leasehold.Namespace
	// Lease is the duration of leases. Default 10 s, as in production.
	Lease time.Duration
	// Policy is the partitioning policy. Default "balanced", as in production;
	// "even" assigns one range to each owner.
	Policy string
	// Latency is the one-way delay of messages and of the end of connections. Default 1 ms.
	// Connecting takes no time.
	Latency time.Duration
	// Logger receives the logs of managers, owners and lookups. Default: no log.
	Logger *slog.Logger
	// Metrics, if set, returns the registry for the metrics of a manager, such as m1, at its
	// start. Owners and lookups have their own configurations.
	Metrics func(manager string) prometheus.Registerer
}

// A Cluster is a set of managers and nodes, in one namespace. Its
// methods, and those of its nodes, are for the goroutine of the test unless documented
// otherwise.
type Cluster struct {
	*world
	namespace leasehold.Namespace
}

// A world is the shared part of clusters of different namespaces.
type world struct {
	t    testing.TB
	cfg  Config
	net  *memnet.Net
	disk *mem.Disk
	// started is the boot time of the machine of all managers.
	started time.Time

	managers map[string]*running
	admins   map[string]leaseholdv1.AdminServiceClient
	closers  []func() // of connections to managers
	spaces   map[leasehold.Namespace]*Cluster

	mu    sync.Mutex
	nodes map[string]*Node
	order []*Node // all nodes, in order of creation
}

// Run runs a test with a new cluster, in a bubble of virtual time. It calls test when the
// namespace exists and a manager leads, and returns when all goroutines have ended.
func Run(t *testing.T, cfg Config, test func(t *testing.T, c *Cluster)) {
	t.Helper()
	cfg = cfg.complete()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, cfg: cfg, net: memnet.New(cfg.Latency), disk: mem.NewDisk(), started: time.Now().Add(-time.Hour),
			managers: make(map[string]*running), admins: make(map[string]leaseholdv1.AdminServiceClient),
			spaces: make(map[leasehold.Namespace]*Cluster), nodes: make(map[string]*Node),
		}
		c := &Cluster{w, cfg.Namespace}
		t.Cleanup(c.close)
		for i := range cfg.Managers {
			c.StartManager(managerName(i))
		}
		test(t, c.In(cfg.Namespace))
	})
}

func (c Config) complete() Config {
	c.Managers = cmp.Or(c.Managers, 1)
	c.Namespace = cmp.Or(c.Namespace, "test")
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Latency = cmp.Or(c.Latency, time.Millisecond)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Namespace returns the name of the namespace.
func (c *Cluster) Namespace() leasehold.Namespace { return c.namespace }

// In returns the cluster in another namespace, which the first call creates. It is for an
// application of several services with a namespace each. A node
// belongs to the namespace of its first use; the namespaces share the rest of the cluster.
func (c *Cluster) In(namespace leasehold.Namespace) *Cluster {
	c.t.Helper()
	if known := c.spaces[namespace]; known != nil {
		return known
	}
	in := &Cluster{c.world, namespace}
	c.spaces[namespace] = in
	in.createNamespace()
	return in
}

// Managers returns the addresses of all managers, including killed ones.
func (c *Cluster) Managers() []string {
	var all []string
	for i := range c.cfg.Managers {
		all = append(all, managerAddr(managerName(i)))
	}
	return all
}

// Advance advances virtual time by d, and waits until all goroutines are blocked.
func (c *Cluster) Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// timeout is the timeout of all waits of a test. It is sufficient for
// leases to expire and to be granted to other owners.
func (w *world) timeout() time.Duration { return 10*time.Minute + 3*w.cfg.Lease }

// Settle waits until every key has an owner, no range is moving, and the table has not
// changed for longer than a lease: then the managers have expired all killed, paused and
// partitioned owners, and returning owners have their ranges. The test fails after a timeout.
func (c *Cluster) Settle() {
	c.t.Helper()
	quiet := c.cfg.Lease*3/2 + 5*time.Second
	lsn, since := uint64(0), time.Now()
	for deadline := since.Add(c.timeout() + quiet); ; c.Advance(c.cfg.Lease / 20) {
		s := c.namespaceStatus()
		if !s.GetReady() || s.GetVacant() > 0 || s.GetMoves() > 0 || s.GetOwners() == 0 || s.GetLsn() != lsn {
			lsn, since = s.GetLsn(), time.Now()
		}
		if time.Since(since) >= quiet {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the cluster does not settle: after %v its status is {%v}", c.timeout()+quiet, s)
		}
	}
}

// Owner returns the node that owns a key according to the managers. It reports false if
// the key has no owner, or no manager replies.
func (c *Cluster) Owner(key leasehold.Key) (node string, ok bool) {
	r, err := c.lookup(key)
	if err != nil || r.GetOwner() == "" {
		return "", false
	}
	return r.GetOwner(), true
}

// Node returns the node of a name; a new one if there is none or it was killed. It
// is safe for concurrent use.
func (c *Cluster) Node(name string) *Node {
	c.t.Helper()
	if strings.ContainsAny(name, ":/ ") || name == "" || name == operator || c.isManager(name) {
		c.t.Fatalf("%q is not a valid node name: want letters and digits, and neither the name of a manager nor %q", name, operator)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	if n == nil || n.killed {
		n = &Node{cluster: c, host: c.net.Host(name)}
		c.nodes[name] = n
		c.order = append(c.order, n)
	}
	return n
}

// operator is the host of the test's admin requests.
const operator = "operator"

// hosts returns the names of all hosts, sorted.
func (c *Cluster) hosts() []string {
	all := []string{operator}
	for i := range c.cfg.Managers {
		all = append(all, managerName(i))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(slices.AppendSeq(all, maps.Keys(c.nodes))))
}

// close ends the nodes, the newest first, and then the managers.
func (c *Cluster) close() {
	c.mu.Lock()
	all := slices.Clone(c.order)
	c.mu.Unlock()
	for _, n := range slices.Backward(all) {
		n.end()
	}
	for _, closeConn := range c.closers {
		closeConn()
	}
	for name := range c.managers {
		c.stopManager(name)
	}
	// Teardown may need time: net/http closes connections after half a second. Virtual time
	// does not advance after the test.
	c.Advance(time.Second)
}

// requestTimeout is the timeout of a request, and of ending a node.
const requestTimeout = 10 * time.Second

func (c *Cluster) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), requestTimeout)
}
