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

// bound is the time within which every key has a server again once nothing fails any more:
// B = (leader's TTL + lease) x drift, round trips, and the quarter of a second for which a
// leader waits for more owners to join.
const bound = 12*(2*time.Second+10*time.Second)/10 + time.Second

// A play is servers with state, a caller, and somebody who looks at all of them.
type play struct {
	*Cluster
	lookup *lookup.Lookup
	aside  sync.WaitGroup // what stimuli do meanwhile

	mu      sync.Mutex
	servers map[string]*owner.Owner // that live
	newest  map[leasehold.Key]tenure
	wrong   []string
}

// A tenure is a lease, and who had it.
type tenure struct {
	generation leasehold.Generation
	server     string
}

// samples are the keys that are looked at.
func samples() (keys []leasehold.Key) {
	for i := range 16 {
		keys = append(keys, leasehold.Key(i)<<60+12345)
	}
	return keys
}

// serve starts a server on a node. That on c has no state that could be moved.
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
			_, _ = m.Set(ctx, fmt.Sprint(i), i) // those that are its own
		}
		o, leave = m.Owner(), m.Close
	})
	if o == nil {
		return // it was killed while it joined, or a manager stands still
	}
	n.Cleanup(func(ctx context.Context) { _ = leave(ctx) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers[name] = o
}

// meanwhile does something on a node, for half a minute at most.
func (p *play) meanwhile(node string, do func(ctx context.Context)) {
	p.aside.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		labelled(node, func() { do(ctx) })
	})
}

// gone is called when a server has died, or is about to leave.
func (p *play) gone(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.servers, name)
}

// look checks that no key has two servers (I1), and that no generation comes after a newer one,
// or goes to a second server (I2). It returns how many keys have none.
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

// watch looks all the time, until the context ends.
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

// served waits until every key has a server.
func (p *play) served(within time.Duration) {
	p.t.Helper()
	begun := time.Now()
	for p.look() > 0 {
		if time.Since(begun) > within {
			p.t.Fatalf("%d of %d keys have no server after %v", p.look(), len(samples()), within)
		}
		p.Advance(5 * time.Millisecond)
	}
}

// agrees checks that the caller finds those who serve.
func (p *play) agrees() {
	p.t.Helper()
	for _, key := range samples() {
		addr, ok := p.lookup.Find(key)
		name, _, _ := strings.Cut(addr, ":")
		p.mu.Lock()
		o := p.servers[name]
		p.mu.Unlock()
		if !ok || o == nil {
			p.t.Fatalf("%v is looked for at %q, %t", key, addr, ok)
		}
		if _, ok := o.Check(key); !ok {
			p.t.Fatalf("%v is looked for at %q, which does not have it", key, addr)
		}
	}
}

// Stimuli make the cluster pass points. They go on whatever happens to it meanwhile.
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
		// So many ranges that one join takes several pieces of a log, and a snapshot.
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
		// Each standby has a lookup that asks nobody else, so that it follows the leader.
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

// cues are the stimuli of points; the others are passed while nothing happens.
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

// leader returns the manager that leads.
func (p *play) leader() string { return nameOfManager(p.status().GetLeader()) }

// die ends a node as kill -9 does: from here on nothing of it is heard. What is left of it is
// for clean.
func (p *play) die(name string) {
	if name == "" {
		return
	}
	p.gone(name)
	p.net.Host(name).Kill()
	if m := p.managers[name]; m != nil {
		go func() { _ = m.store.Close() }()
		time.Sleep(time.Nanosecond) // it finds its context ended, whatever it was about to write
	}
}

// clean clears away what is left of a node that died.
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

// again starts what does not run.
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

// A fate is what happens at a point.
type fate struct {
	name  string
	pause time.Duration // it stands still for so long, once
	kill  bool          // and dies then
	armed string        // or whatever it is armed with, for a few seconds
}

// fates returns what may happen at a point.
func fates(p failpoint.Point) []fate {
	all := []fate{
		{name: "kill", kill: true},
		{name: "kill late", pause: time.Second, kill: true}, // when the rest of the process has gone on
		{name: "pause", armed: p.Name + "=pause:for=300ms:times=0"},
		{name: "pause for long", pause: 15 * time.Second}, // longer than a lease, and than a leader may be silent
	}
	for _, action := range p.Actions() {
		if action == "drop" || action == "error" {
			all = append(all, fate{name: action, armed: p.Name + "=" + action + ":times=3"})
		}
	}
	return all
}

// Whoever dies or stands still at any of these points: no key has two servers, every key has
// one again in time, nothing hangs, and callers find it.
func TestEveryPoint(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1") // see failpoint.Who
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

// meet lets somebody meet a fate at a point, and returns who it was if that is known.
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
			p.t.Fatal("nobody knows who passed the point")
		}
		return who
	}
	p.Advance(5 * time.Second)
	failpoint.Reset()
	p.Advance(time.Second) // the last pause is over
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
		if f.armed != "" { // what is stored must be what was said: the next leader knows nothing else
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
		// A leader that finds leases which it knows nothing of makes the best of it, and says so.
		if forgotten := log.Lines("restored from a"); len(forgotten) > 0 {
			t.Errorf("owners had leases that were not stored: %q", forgotten[:min(2, len(forgotten))])
		}
		if len(p.wrong) > 0 {
			t.Errorf("%d times something was wrong: %q", len(p.wrong), slices.Compact(p.wrong)[:min(5, len(p.wrong))])
		}
	})
}

func (p *play) create(ns *leaseholdv1.NamespaceConfig) {
	_, _ = ask(p.Cluster, leaseholdv1.AdminServiceClient.CreateNamespace, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: ns})
}
