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

// Config says what a cluster is like. The zero Config is good.
type Config struct {
	// Managers is how many there are, m1 first. Default 1; with 3 the leader can be
	// killed and another takes over.
	Managers int
	// Namespace is the one that is there. Default "test".
	Namespace leasehold.Namespace
	// Lease is how long a lease lasts. Default 10 s, as in production.
	Lease time.Duration
	// Policy is how keys are given to owners. Default "balanced", as in production;
	// "even" gives each owner one piece.
	Policy string
	// Latency is how long a message is under way, and the news that a connection has
	// ended. Default 1 ms. To connect takes no time.
	Latency time.Duration
	// Logger hears what managers, owners and lookups have to say. Default: nobody does.
	Logger *slog.Logger
	// Metrics, if set, is asked where each manager that starts registers its metrics,
	// m1 for instance. Owners and lookups have that in their own configurations.
	Metrics func(manager string) prometheus.Registerer
}

// A Cluster is managers, and the nodes that a test adds, seen from one namespace. Its
// methods, and those of its nodes, are for the goroutine of the test unless they say
// otherwise.
type Cluster struct {
	*world
	namespace leasehold.Namespace
}

// A world is what clusters of different namespaces share.
type world struct {
	t    testing.TB
	cfg  Config
	net  *memnet.Net
	disk *mem.Disk
	// started is when the machine on which all managers run was booted.
	started time.Time

	managers map[string]*running
	admins   map[string]leaseholdv1.AdminServiceClient
	closers  []func() // of connections to managers
	spaces   map[leasehold.Namespace]*Cluster

	mu    sync.Mutex
	nodes map[string]*Node
	order []*Node // all there were
}

// Run runs a test with a cluster of its own, in a bubble of virtual time, and ends when
// everything has. The namespace is there, and a manager leads, when test is called.
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

// In returns the cluster as it is seen from another namespace, which is made when it is
// first asked for. An application of several services has one for each: their nodes
// belong to the namespace in which they were first named, and share everything else.
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

// Managers returns the addresses of all managers that there were from the beginning.
func (c *Cluster) Managers() []string {
	var all []string
	for i := range c.cfg.Managers {
		all = append(all, managerAddr(managerName(i)))
	}
	return all
}

// Advance lets an amount of time pass, and everything happen that does in it.
func (c *Cluster) Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// patience is how long anything may take that a test waits for: long, and time for
// leases to run out and others to take their place.
func (w *world) patience() time.Duration { return 10*time.Minute + 3*w.cfg.Lease }

// Settle lets time pass until every key has an owner, nothing moves, and nothing has
// changed for longer than a lease lasts: so that whoever was killed, paused or cut off
// has been noticed, and whoever came back has got its share. A cluster that does not
// come to rest fails the test.
func (c *Cluster) Settle() {
	c.t.Helper()
	quiet := c.cfg.Lease*3/2 + 5*time.Second
	lsn, since := uint64(0), time.Now()
	for deadline := since.Add(c.patience() + quiet); ; c.Advance(c.cfg.Lease / 20) {
		s := c.namespaceStatus()
		if !s.GetReady() || s.GetVacant() > 0 || s.GetMoves() > 0 || s.GetOwners() == 0 || s.GetLsn() != lsn {
			lsn, since = s.GetLsn(), time.Now()
		}
		if time.Since(since) >= quiet {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the cluster does not settle: after %v its status is {%v}", c.patience()+quiet, s)
		}
	}
}

// Owner returns the node that owns a key, as the managers have it. It reports false if
// nobody does, or no manager answers.
func (c *Cluster) Owner(key leasehold.Key) (node string, ok bool) {
	r, err := c.lookup(key)
	if err != nil || r.GetOwner() == "" {
		return "", false
	}
	return r.GetOwner(), true
}

// Node returns the computer of a name; a new one if there is none or it was killed. It
// may be called from many goroutines at once.
func (c *Cluster) Node(name string) *Node {
	c.t.Helper()
	if strings.ContainsAny(name, ":/ ") || name == "" || name == operator || c.isManager(name) {
		c.t.Fatalf("%q cannot be the name of a node: want letters and digits, and neither the name of a manager nor %q", name, operator)
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

// operator is the host from which the test asks the managers.
const operator = "operator"

// hosts returns the names of all hosts that there were, sorted.
func (c *Cluster) hosts() []string {
	all := []string{operator}
	for i := range c.cfg.Managers {
		all = append(all, managerName(i))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(slices.AppendSeq(all, maps.Keys(c.nodes))))
}

// close ends what there is, the newest first, while managers can hear of it.
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
	// What has been told to end may take a moment: net/http lets connections linger for
	// half a second. Time stands still once the test is over.
	c.Advance(time.Second)
}

// within is how long a manager has for an answer, and a node to end.
const within = 10 * time.Second

func (c *Cluster) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), within)
}
