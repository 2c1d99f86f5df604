//go:build failpoints

package leaseholdtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/internal/testkit/logbook"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// bound is the time until every key has an owner again after the last fault:
// B = (leader's TTL + lease) x drift, round trips, and the quarter of a second for which a
// leader waits for further owners to join.
const bound = 12*(2*time.Second+10*time.Second)/10 + time.Second

// A play runs servers with state and a caller, and checks the invariants.
type play struct {
	*Cluster
	lookup *lookup.Lookup
	aside  sync.WaitGroup // goroutines of stimuli

	mu      sync.Mutex
	servers map[string]*owner.Owner // running
	newest  map[leasehold.Key]tenure
	wrong   []string
}

// A tenure is a lease with its holder.
type tenure struct {
	generation leasehold.Generation
	server     string
}

// samples returns the checked keys.
func samples() (keys []leasehold.Key) {
	for i := range 16 {
		keys = append(keys, leasehold.Key(i)<<60+12345)
	}
	return keys
}

// serve starts a server on a node. The server on c has no Mover.
func (p *play) serve(name string) {
	n := p.Node(name)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var o *owner.Owner
	var leave func(context.Context) error
	labelled(name, func() {
		if name == "c" {
			if joined, err := owner.Join(ctx, n.OwnerConfig()); err == nil {
				o, leave = joined, joined.Close
			}
			return
		}
		m, err := leasemap.Join(ctx, n.MovingConfig(), leasemap.Config[int]{})
		if err != nil {
			return
		}
		for i := range 20 {
			_, _ = m.Set(ctx, fmt.Sprint(i), i) // succeeds for its own names
		}
		o, leave = m.Owner(), m.Close
	})
	if o == nil {
		return // killed during Join, or a manager is paused
	}
	n.Cleanup(func(ctx context.Context) { _ = leave(ctx) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers[name] = o
}

// meanwhile calls do in a goroutine on a node, with a timeout of half a minute.
func (p *play) meanwhile(node string, do func(ctx context.Context)) {
	p.aside.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		labelled(node, func() { do(ctx) })
	})
}

// gone removes a server that was killed or is leaving.
func (p *play) gone(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.servers, name)
}

// look checks that no key has two owners (I1), and that no generation follows a newer one
// or has a second owner (I2). It returns the number of keys without an owner.
func (p *play) look() (without int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range samples() {
		var found []tenure
		for name, o := range p.servers {
			if l, ok := o.Check(key); ok {
				found = append(found, tenure{l.Generation, name})
			}
		}
		before := p.newest[key]
		switch {
		case len(found) == 0:
			without++
		case len(found) > 1:
			p.wrong = append(p.wrong, fmt.Sprintf("%v has two servers, %v", key, found))
		case found[0].generation < before.generation || found[0].generation == before.generation && found[0] != before:
			p.wrong = append(p.wrong, fmt.Sprintf("%v has the lease %v after %v", key, found[0], before))
		default:
			p.newest[key] = found[0]
		}
	}
	return without
}

// watch calls look every 10 ms until the context ends.
func (p *play) watch(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.look()
		}
	}
}

// served waits until every key has an owner.
func (p *play) served(within time.Duration) {
	p.t.Helper()
	begun := time.Now()
	for p.look() > 0 {
		if time.Since(begun) > within {
			p.t.Fatalf("%d of %d keys have no owner after %v", p.look(), len(samples()), within)
		}
		p.Advance(5 * time.Millisecond)
	}
}

// agrees checks that the caller finds the owners of all keys.
func (p *play) agrees() {
	p.t.Helper()
	for _, key := range samples() {
		addr, ok := p.lookup.Find(key)
		name, _, _ := strings.Cut(addr, ":")
		p.mu.Lock()
		o := p.servers[name]
		p.mu.Unlock()
		if !ok || o == nil {
			p.t.Fatalf("Find(%v) = %q, %t", key, addr, ok)
		}
		if _, ok := o.Check(key); !ok {
			p.t.Fatalf("Find(%v) = %q, which does not own it", key, addr)
		}
	}
}

// stimuli make the cluster pass failpoints. They tolerate faults.
func stimuli() map[string]func(p *play) {
	return map[string]func(p *play){
		"nothing": func(*play) {},
		"move": func(p *play) {
			p.mu.Lock()
			held := p.servers["a"].Leases()
			p.mu.Unlock()
			_ = p.orderMove(held[0].Range, "b")
		},
		"join":     func(p *play) { p.meanwhile("d", func(context.Context) { p.serve("d") }) },
		"failover": func(p *play) { p.KillManager(p.leader()) },
		"resign": func(p *play) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			leader := p.leader()
			labelled(leader, func() { _ = p.managers[leader].Close(ctx) })
			p.KillManager(leader)
		},
		"recall": func(p *play) {
			p.mu.Lock()
			held := p.servers["c"].Leases()
			p.mu.Unlock()
			_ = p.orderMove(held[0].Range, "a")
		},
		"leave": func(p *play) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			labelled("b", func() { p.Node("b").clean(ctx) })
			p.gone("b")
		},
		"crash": func(p *play) { p.gone("c"); p.Node("c").Kill() },
		"namespace": func(p *play) {
			p.create(&leaseholdv1.NamespaceConfig{Name: "another"})
		},
		// Enough ranges that one join needs several pieces of a log, and a snapshot.
		"many": func(p *play) {
			p.create(&leaseholdv1.NamespaceConfig{Name: "many", Policy: "consistent", VirtualNodes: partition.MaxVirtualNodes})
			many := &Cluster{p.world, "many"}
			for _, name := range []string{"x", "y", "z"} {
				cfg := many.Node(name).OwnerConfig()
				p.meanwhile(name, func(ctx context.Context) {
					if o, err := owner.Join(ctx, cfg); err == nil {
						many.Node(name).Cleanup(func(ctx context.Context) { _ = o.Close(ctx) })
					}
				})
			}
		},
		// Each standby has a lookup without other managers, so that it follows the leader.
		"readers": func(p *play) {
			for i := range p.cfg.Managers {
				n := p.Node(fmt.Sprintf("reader%d", i))
				cfg := n.LookupConfig()
				cfg.Managers = []string{managerAddr(managerName(i))}
				p.meanwhile(n.Name(), func(ctx context.Context) {
					if l, err := lookup.Open(ctx, cfg); err == nil {
						n.Cleanup(func(context.Context) { _ = l.Close(context.Background()) })
					}
				})
			}
		},
		"unknown": func(p *play) {
			_ = failpoint.Arm("manager/committed-before-reply=drop")
			p.gone("c")
			p.Node("c").Kill()
		},
		"broken": func(p *play) {
			_ = failpoint.Arm("mover/before-chunk=error")
			stimuli()["move"](p)
		},
	}
}

// cues returns the stimuli of points; the other points are passed without a stimulus.
func cues() map[string]string {
	return map[string]string{
		"manager/leads": "failover", "manager/namespaces-read": "failover", "manager/table-read": "failover", "store/before-takeover": "failover",
		"manager/before-commit": "crash", "manager/committed-before-reply": "crash", "manager/log-end-read": "unknown",
		"manager/before-snapshot": "many", "manager/snapshot-saved": "many", "store/snapshot-written": "many",
		"store/before-append": "crash", "store/appended": "move", "manager/namespaces-written": "namespace",
		"manager/owner-connected": "join", "manager/follows-leader": "readers", "manager/update-before-send": "crash", "manager/leader-received": "readers",
		"manager/before-resigning": "resign", "manager/steps-down": "resign", "manager/resigned": "resign",
		"owner/joined": "join", "owner/revoked": "recall", "owner/before-publishing": "recall", "owner/published": "recall", "owner/hung-up": "failover",
		"owner/before-export": "move", "owner/copied": "move", "owner/stopped": "move", "owner/imported": "move",
		"owner/move-confirmed": "move", "owner/before-install": "move", "owner/installed": "move",
		"owner/before-parting": "leave", "owner/before-leaving": "leave", "owner/left": "leave",
		"link/before-connecting": "join", "link/connected": "join", "link/broken": "failover",
		"lookup/before-publishing": "crash", "lookup/published-before-losses": "crash",
		"mover/before-connecting": "broken", "mover/before-letting-in": "move", "mover/before-chunk": "move", "mover/before-confirmation": "move",
	}
}

// leader returns the name of the leader.
func (p *play) leader() string { return nameOfManager(p.status().GetLeader()) }

// die ends a node as kill -9 does: all further messages are dropped. clean does the
// teardown.
func (p *play) die(name string) {
	if name == "" {
		return
	}
	p.gone(name)
	p.net.Host(name).Kill()
	if m := p.managers[name]; m != nil {
		go func() { _ = m.store.Close() }()
		time.Sleep(time.Nanosecond) // its context has ended before the next write
	}
}

// clean ends the goroutines of a node that was killed.
func (p *play) clean(name string) {
	switch {
	case name == "caller":
		p.Node(name).Kill()
	case p.managers[name] != nil:
		p.KillManager(name)
	case !p.isManager(name):
		p.Node(name).Kill()
	}
}

// again starts the nodes and managers that do not run.
func (p *play) again() {
	for i := range p.cfg.Managers {
		if name := managerName(i); p.managers[name] == nil {
			p.StartManager(name)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		if p.servers[name] == nil {
			p.Node(name).Kill()
			p.serve(name)
		}
	}
}

// A fate is the fault at a failpoint.
type fate struct {
	name  string
	pause time.Duration // of the process, once
	kill  bool          // of the process, after the pause
	armed string        // or the failpoint's own action, for a few seconds
}

// fates returns the faults of a failpoint.
func fates(p failpoint.Point) []fate {
	all := []fate{
		{name: "kill", kill: true},
		{name: "kill late", pause: time.Second, kill: true}, // after the rest of the process has continued
		{name: "pause", armed: p.Name + "=pause:for=300ms:times=0"},
		{name: "pause for long", pause: 15 * time.Second}, // longer than a lease and than the leader's TTL
	}
	for _, action := range p.Actions() {
		if action == "drop" || action == "error" {
			all = append(all, fate{name: action, armed: p.Name + "=" + action + ":times=3"})
		}
	}
	return all
}

// For each failpoint: if a process is killed or paused there, no key has two owners, every key has
// one again within the bound, no goroutine hangs, and callers find the owner.
func TestEveryPoint(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1") // for failpoint.Who
	cues := cues()
	for _, p := range failpoint.Points() {
		point := p.Name
		switch prefix, _, _ := strings.Cut(point, "/"); {
		case point == "store/piece-appended" || point == "store/base-piece-written": // only if batches are larger than these, or a store is restored: see internal/runtime/store/kv
			continue
		case !slices.Contains([]string{"manager", "owner", "link", "lookup", "mover", "store"}, prefix):
			continue // see flease, manager, server/agent and server/store/etcd
		}
		for _, f := range fates(p) {
			t.Run(point+"/"+f.name, func(t *testing.T) {
				cue := cues[point]
				if cue == "" {
					cue = "nothing"
				}
				perform(t, point, f, stimuli()[cue])
			})
		}
	}
}

// meet injects a fault at the next pass of a point, and returns the process, if it is known.
func (p *play) meet(point string, f fate, stimulus func(*play)) (who string) {
	p.t.Helper()
	met := make(chan string, 1)
	if f.armed == "" {
		failpoint.Once(point, func() {
			who := failpoint.Who()
			time.Sleep(f.pause)
			if f.kill {
				p.die(who)
			}
			met <- who
		})
	} else if err := failpoint.Arm(f.armed); err != nil {
		p.t.Fatal(err)
	}
	before := failpoint.Passed(point)
	stimulus(p)
	begun := time.Now()
	for ; failpoint.Passed(point) == before; p.Advance(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			p.t.Fatal("the point was not passed")
		}
	}
	if f.armed == "" {
		who = <-met
		if who == "" && f.kill {
			p.t.Fatal("the process that passed the point is unknown")
		}
		return who
	}
	p.Advance(5 * time.Second)
	failpoint.Reset()
	p.Advance(time.Second) // after the last pause
	return ""
}

func perform(t *testing.T, point string, f fate, stimulus func(*play)) {
	t.Cleanup(failpoint.Reset)
	var log logbook.Book
	Run(t, Config{Managers: 3, Policy: "even", Logger: log.Logger()}, func(t *testing.T, c *Cluster) {
		p := &play{Cluster: c, servers: make(map[string]*owner.Owner), newest: make(map[leasehold.Key]tenure)}
		for _, name := range []string{"a", "b", "c"} {
			p.serve(name)
		}
		p.lookup = p.Node("caller").Lookup()
		p.served(bound)
		c.Advance(10 * time.Second) // until it has settled
		ctx, stop := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { p.watch(ctx) })
		defer watching.Wait()
		defer stop()

		victim := p.meet(point, f, stimulus)
		if f.kill {
			p.clean(victim)
		}
		p.served(bound)
		p.aside.Wait()
		if f.armed != "" { // the stored table must equal the published one: the next leader has only the store
			p.KillManager(p.leader())
			p.served(bound)
		}
		p.again()
		if victim == "caller" {
			p.lookup = p.Node("caller").Lookup()
		}
		c.Settle()
		p.served(0)
		p.agrees()
		// A leader logs leases of owners that its table does not contain.
		if forgotten := log.Lines("restored from a"); len(forgotten) > 0 {
			t.Errorf("owners had leases that were not stored: %q", forgotten[:min(2, len(forgotten))])
		}
		if len(p.wrong) > 0 {
			t.Errorf("%d violations: %q", len(p.wrong), slices.Compact(p.wrong)[:min(5, len(p.wrong))])
		}
	})
}

func (p *play) create(ns *leaseholdv1.NamespaceConfig) {
	_, _ = request(p.Cluster, leaseholdv1.AdminServiceClient.CreateNamespace, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: ns})
}
