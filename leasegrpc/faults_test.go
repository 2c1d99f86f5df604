package leasegrpc_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// An event is an addition to a counter, or its loss.
type event struct {
	name string
	lost bool
}

// never is the return time of an indeterminate call: it may be executed at any later time, or
// never.
const never = 1 << 62

// A ledger is the history of all counters.
type ledger struct {
	begun time.Time
	names []string

	mu      sync.Mutex
	fault   int64 // the start of the last fault
	history []porcupine.Operation
	acked   int
	unknown int
	losses  int
	failed  []error // not executed
}

func newLedger(names ...string) *ledger { return &ledger{begun: time.Now(), names: names} }

func (l *ledger) now() int64 { return time.Since(l.begun).Nanoseconds() }

// begin records the start of a fault.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = l.now()
}

// add increments a counter and records the event. The output is the returned count; 0 if the
// call is indeterminate.
func (l *ledger) add(ctx context.Context, c counterClient, id int, name string) {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	o := porcupine.Operation{ClientId: id, Input: event{name: name}, Call: l.now()}
	n, err := c.add(ctx, name)
	o.Output, o.Return = n, l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch kind := leasehold.KindOf(err); {
	case err == nil:
		l.acked++
	case kind == leasehold.ErrNotOwner || kind == leasehold.ErrNoOwner:
		l.failed = append(l.failed, err)
		return
	default:
		l.unknown++
		o.Output, o.Return = int64(0), never
	}
	l.history = append(l.history, o)
}

// watch records all losses until the context ends. They happened after the start of the last
// fault.
func (l *ledger) watch(ctx context.Context, n *leaseholdtest.Node) (wait func()) {
	var watching sync.WaitGroup
	lookup := n.Lookup()
	watching.Go(func() {
		for loss, err := range lookup.Losses(ctx) {
			if err != nil {
				break
			}
			l.lose(loss)
		}
	})
	return watching.Wait
}

func (l *ledger) lose(loss leasehold.Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.names {
		if loss.Range.Contains(leasehold.KeyOf(name)) {
			l.losses++
			l.history = append(l.history, porcupine.Operation{
				ClientId: 99, Input: event{name: name, lost: true}, Output: int64(0), Call: l.fault, Return: l.now(),
			})
		}
	}
}

// check verifies that the history is linearizable, with counters that restart after a loss.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	model := porcupine.Model{
		Partition: byName,
		Init:      func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			if input.(event).lost {
				return true, int64(0)
			}
			next := state.(int64) + 1
			return output.(int64) == next || output.(int64) == 0, next
		},
	}
	if !porcupine.CheckOperations(model, l.history) {
		t.Errorf("the history is not linearizable: %+v", l.history)
	}
}

func byName(history []porcupine.Operation) (out [][]porcupine.Operation) {
	parts := map[string][]porcupine.Operation{}
	for _, o := range history {
		name := o.Input.(event).name
		parts[name] = append(parts[name], o)
	}
	for _, part := range parts {
		out = append(out, part)
	}
	return out
}

var serverNames = []string{"a", "b", "c"}

// TestFaults injects random faults into servers, managers and the network. Every acknowledged
// addition is counted once, or was reported as lost.
func TestFaults(t *testing.T) {
	seeds := 16
	if testing.Short() {
		seeds = 3
	}
	acked, unknown, losses, failed := 0, 0, 0, 0
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{Managers: 3}, func(t *testing.T, c *leaseholdtest.Cluster) {
				l := live(t, c, seed)
				l.check(t)
				acked, unknown, losses, failed = acked+l.acked, unknown+l.unknown, losses+l.losses, failed+len(l.failed)
			})
		})
	}
	t.Logf("%d histories: %d acknowledged additions, %d indeterminate, %d not executed; %d losses of counters", seeds, acked, unknown, failed, losses)
	if acked < 100*seeds || unknown == 0 || losses == 0 {
		t.Error("too few additions")
	}
}

// live runs a cluster for some minutes.
func live(t *testing.T, c *leaseholdtest.Cluster, seed uint64) *ledger {
	for _, name := range serverNames {
		serveSlowly(t, c.Node(name))
	}
	c.Settle()
	l := newLedger("alice", "bob", "carol")
	watching, stop := context.WithCancel(t.Context())
	watched := l.watch(watching, c.Node("watcher"))
	var callers sync.WaitGroup
	for i := range 3 {
		caller := dial(t, c.Node(fmt.Sprint("caller", i)), leasegrpc.Config{Methods: byField})
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		callers.Go(func() {
			for watching.Err() == nil {
				time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
				l.add(t.Context(), caller, i, l.names[random.IntN(len(l.names))])
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, 99))
	for range 6 {
		c.Advance(time.Duration(random.IntN(5000)) * time.Millisecond)
		l.begin()
		hurt(t, c, random)
		c.Settle() // so that every loss is due to the last fault
	}
	stop()
	callers.Wait()
	watched()
	return l
}

// serveSlowly starts a server with slow calls, so that faults occur during some of them.
func serveSlowly(t *testing.T, n *leaseholdtest.Node) {
	serveWorking(t, n, func() { time.Sleep(rand.N(time.Second)) })
}

// hurt injects one fault.
func hurt(t *testing.T, c *leaseholdtest.Cluster, random *rand.Rand) {
	n := c.Node(serverNames[random.IntN(len(serverNames))])
	some := func() time.Duration { return time.Duration(random.IntN(30_000)) * time.Millisecond }
	switch random.IntN(6) {
	case 0:
		n.Kill()
		c.Advance(some())
		serveSlowly(t, c.Node(n.Name()))
	case 1:
		n.Pause()
		c.Advance(some())
		n.Resume()
	case 2:
		n.Cut() // only the managers
		c.Advance(some())
		n.Heal()
	case 3:
		n.Cut("caller0", "caller1")
		c.Advance(some())
		n.Heal()
	case 4:
		c.StartManager(c.KillLeader())
	case 5:
		start := leasehold.Key(random.Uint64()) >> 2
		c.Move(leasehold.Range{Start: start, Limit: start + 1<<62}, n.Name())
	}
}

// During a rolling restart no call fails, and no state is lost.
func TestRollingRestart(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		l := roll(t, c, serve)
		if l.unknown > 0 || l.losses > 0 || len(l.failed) > 0 {
			t.Errorf("%d indeterminate additions, %d losses, failed calls: %v", l.unknown, l.losses, l.failed)
		}
	})
}

// Without moves of state, a rolling restart loses state, and callers receive the losses. Only
// calls in progress fail.
func TestRollingRestartWithoutMoves(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		l := roll(t, c, serveUnmoved)
		if l.losses == 0 || len(l.failed) > 0 {
			t.Errorf("%d losses, failed calls: %v", l.losses, l.failed)
		}
	})
}

// roll restarts all servers while callers continuously add to counters.
func roll(t *testing.T, c *leaseholdtest.Cluster, serve func(*testing.T, *leaseholdtest.Node) *counters) *ledger {
	servers := map[string]*counters{}
	for _, name := range serverNames {
		servers[name] = serve(t, c.Node(name))
	}
	c.Settle()
	l := newLedger()
	for i := range 20 {
		l.names = append(l.names, fmt.Sprint("user-", i))
	}
	working, stop := context.WithCancel(t.Context())
	watched := l.watch(working, c.Node("watcher"))
	var callers sync.WaitGroup
	for i := range 4 {
		caller := dial(t, c.Node(fmt.Sprint("caller", i)), leasegrpc.Config{Methods: byField})
		callers.Go(func() {
			for n := i; working.Err() == nil; n++ {
				l.add(t.Context(), caller, i, l.names[n%len(l.names)])
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	for _, name := range serverNames {
		l.begin()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := servers[name].owner.Close(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		c.Node(name).Kill() // after Close
		servers[name] = serve(t, c.Node(name))
		c.Settle()
	}
	stop()
	callers.Wait()
	watched()
	l.check(t)
	if l.acked < 1000 {
		t.Errorf("only %d additions", l.acked)
	}
	t.Logf("%d acknowledged additions, %d indeterminate; %d losses of counters", l.acked, l.unknown, l.losses)
	return l
}
