package leaseholdtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A Nemesis injects faults into the servers and managers of a cluster that an application must
// survive: it kills, pauses, partitions, restarts and moves, one fault at a time. It is for
// the goroutine of the test.
type Nemesis struct {
	// Random selects the faults. The same seed selects the same faults, but their effects
	// also depend on the scheduler.
	Random *rand.Rand
	// Start starts the application's server on a node. It returns a function that moves its
	// state away and stops it; nil if it has no state. All goroutines of the server
	// must end with the node: see [Node.Cleanup].
	Start func(n *Node) (leave func(context.Context) error)

	cluster *Cluster
	names   []string
	leave   map[string]func(context.Context) error
}

// Begin starts a server on each of the nodes, and waits until the cluster has settled.
func (e *Nemesis) Begin(c *Cluster, names ...string) {
	c.t.Helper()
	e.cluster, e.names, e.leave = c, names, make(map[string]func(context.Context) error)
	for _, name := range names {
		e.start(name)
	}
	c.Settle()
}

func (e *Nemesis) start(name string) {
	e.leave[name] = e.Start(e.cluster.Node(name))
}

// Strike injects one fault into a server, or into the leader if there are several managers,
// and waits until the cluster has settled. It returns a description of the fault.
// Some faults lose state; "restart", "move" and
// "failover" do not, if the servers can move their state.
func (e *Nemesis) Strike() string {
	e.cluster.t.Helper()
	done := e.Hurt()
	e.cluster.Settle()
	return done
}

// Hurt is Strike without the wait: the next fault may begin before the cluster has
// recovered from this one.
func (e *Nemesis) Hurt() string {
	c := e.cluster
	c.t.Helper()
	name := e.names[e.Random.IntN(len(e.names))]
	n := c.Node(name)
	kinds := 7
	if c.cfg.Managers < 2 {
		kinds = 6 // no failover
	}
	switch e.Random.IntN(kinds) {
	case 0:
		return e.during(n.Kill, 20*time.Second, func() { e.start(name) }, "kill %s for %v", name)
	case 1:
		return e.during(n.Pause, 30*time.Second, n.Resume, "pause %s for %v", name)
	case 2:
		return e.during(func() { n.Cut() }, 30*time.Second, n.Heal, "cut %s off from the managers for %v", name)
	case 3:
		others := slices.DeleteFunc(slices.Clone(e.names), func(other string) bool { return other == name })
		cut := func() {
			if len(others) > 0 {
				n.Cut(others...) // without names it cuts off the managers
			}
		}
		return e.during(cut, 10*time.Second, n.Heal, "cut %s off from the other servers for %v", name)
	case 4:
		r := e.piece()
		c.Move(r, name)
		return fmt.Sprintf("move %v to %s", r, name)
	case 5:
		e.restart(name)
		return "restart " + name
	default:
		leader := c.KillLeader()
		c.StartManager(leader)
		return "failover from " + leader
	}
}

// during injects a fault for a random time, and returns its description.
func (e *Nemesis) during(hurt func(), most time.Duration, heal func(), format, name string) string {
	e.cluster.t.Helper()
	hurt()
	d := time.Duration(e.Random.Int64N(int64(most))).Truncate(time.Millisecond)
	e.cluster.Advance(d)
	heal()
	return fmt.Sprintf(format, name, d)
}

// piece returns a random quarter of the key space.
func (e *Nemesis) piece() leasehold.Range {
	quarter := leasehold.Key(e.Random.IntN(4))
	return leasehold.Range{Start: quarter << 62, Limit: (quarter + 1) << 62} // the last limit overflows to 0
}

func (e *Nemesis) restart(name string) {
	c := e.cluster
	c.t.Helper()
	if leave := e.leave[name]; leave != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := leave(ctx); err != nil {
			c.t.Errorf("%s cannot leave: %v", name, err)
		}
	}
	c.Node(name).Kill()
	e.start(name)
}
