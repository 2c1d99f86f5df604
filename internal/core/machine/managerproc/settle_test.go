package managerproc_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// The leases of x were 10 s and are 2 s: owners may hold the longer ones for 12 s on any manager's
// clock. In these tests a leader runs for longer than that, with a swap of the leader record every
// second.

// live runs a leader of term 1, with a store that executes all requests except writes of the
// catalog. It returns the times at which an entry was settled or removed.
func (p *process) live(from, to mono.Instant) (settled []mono.Instant) {
	p.t.Helper()
	for now := from; now <= to; now = now.Add(100 * time.Millisecond) {
		actions, _ := p.machine.Advance(now)
		for todo := slices.Clone(actions); len(todo) > 0; todo = todo[1:] {
			var answer managerproc.Event
			switch p.describe(todo[0]) {
			case "settle x in 1: 12s", "remove x in 1":
				settled = append(settled, now)
			case "swap for term 1":
				p.version++
				answer = p.nodeSwapped(p.version)
			case "x in 1: commit 1 to 2":
				answer = managerproc.Manager{Namespace: "x", Term: 1, Event: manager.Committed{Outcome: storage.Done}}
			}
			if answer != nil {
				more, _ := p.machine.Step(now, answer)
				todo = append(todo, more...)
			}
		}
	}
	return settled
}

func TestPromiseIsSettledInTime(t *testing.T) {
	for _, c := range []struct {
		name  string
		start func(t *testing.T) *process
		from  mono.Instant // when replies have the shorter time
	}{
		{"a new leader reads it", func(t *testing.T) *process {
			p := elected(t)
			p.reads(0, catalog(1, shorter("x")), "load x in 1")
			p.loads(1*second, "x", 1, &storage.State{Term: 1}, "serve x in 1", "swap for term 1")
			p.version = 2
			p.machine.Step(1*second, p.nodeSwapped(p.version))
			return p
		}, 1 * second},
		{"a leader is reconfigured", func(t *testing.T) *process {
			p := leader(t)
			p.reads(500*ms, catalog(2, shorter("x"), entry("y")))
			p.version = 1
			return p
		}, 500 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.start(t)
			due := c.from.Add(12 * time.Second)
			if got := p.live(c.from, due-100*ms); len(got) > 0 {
				t.Fatalf("settled at %v, and an owner may hold a longer lease until %v", got, due)
			}
			if got := p.live(due, due.Add(11900*time.Millisecond)); len(got) != 1 || got[0] != due {
				t.Fatalf("settled at %v, want once at %v", got, due)
			}
			if got := p.live(due.Add(12*time.Second), due.Add(13*time.Second)); len(got) != 1 {
				t.Fatalf("the write failed, and was retried %d times", len(got))
			}
			settled := shorter("x")
			settled.Promised = 0
			p.reads(due.Add(13*time.Second), catalog(3, settled))
			if got := p.live(due.Add(13*time.Second), due.Add(40*time.Second)); len(got) > 0 {
				t.Errorf("settled again at %v", got)
			}
		})
	}
}

// Another change of the timing restarts the wait.
func TestPromiseStartsAgain(t *testing.T) {
	p := leader(t)
	p.version = 1
	p.reads(0, catalog(2, shorter("x")))
	p.live(0, 10*second)
	again := shorter("x").Promising(time.Second, 250*time.Millisecond, 1.2)
	if again.Promised != 12*time.Second {
		t.Fatalf("Promised is %v, want 12 s", again.Promised)
	}
	p.reads(10*second, catalog(3, again))
	if got := p.live(10*second, 21900*ms); len(got) > 0 {
		t.Errorf("settled at %v", got)
	}
	if got := p.live(22*second, 22*second); len(got) != 1 {
		t.Errorf("not settled at 22 s")
	}
}

// Only a leader that was in office for the whole wait settles an entry.
func TestDeposedBeforeThePromiseIsSettled(t *testing.T) {
	p := leader(t)
	p.version = 1
	p.reads(0, catalog(2, shorter("x")))
	p.live(0, 11*second)
	p.elects(11500*ms, byrecord.Seen{Record: storage.Record{Version: 90, Term: 2, Leader: "other", Session: [16]byte{2}}}, "step down", "read")
	p.elects(14*second, byrecord.Seen{Record: storage.Record{Version: 91, Term: 2, Leader: "other", Session: [16]byte{2}, Beat: 1}}, "read")
	if got := p.live(14*second, 15*second); len(got) > 0 {
		t.Errorf("settled at %v", got)
	}
}

// The entry of a parked namespace is not settled.
func TestParkedPromise(t *testing.T) {
	p := elected(t)
	p.version = 1
	bad := shorter("x")
	bad.Policy = "odd"
	p.reads(0, catalog(1, bad), `park x: configure "x": there is no policy "odd"`)
	if got := p.live(0, 20*second); len(got) > 0 {
		t.Errorf("settled at %v", got)
	}
}

// A deposed leader stops everything that is in progress.
func TestDeposedStopsEverything(t *testing.T) {
	p := elected(t)
	odd := entry("odd")
	odd.Policy = "odd"
	p.reads(0, catalog(1, odd, shorter("x"), entry("y"), entry("z")),
		`park odd: configure "odd": there is no policy "odd"`, "load x in 1", "load y in 1", "load z in 1")
	for _, ns := range []leasehold.Namespace{"x", "y"} {
		p.loads(0, ns, 1, &storage.State{Term: 1}, fmt.Sprintf("serve %s in 1", ns))
		p.replies = map[leasehold.Session]*protocol.LeaseReply{}
		p.step(10*ms, p.request(ns, "ann", 1), fmt.Sprintf("%s in 1: send 61000000 0", ns))
		p.step(20*ms, p.request(ns, "ann", 2), fmt.Sprintf("%s in 1: send 61000000 0", ns), fmt.Sprintf("%s in 1: commit 0 to 1", ns))
	}
	p.reads(30*ms, catalog(2, odd, shorter("x"), entry("z"))) // y ends with a commit in flight
	p.manages(40*ms, "x", 1, manager.Committed{Outcome: storage.Conflict}, "x in 1: read end")
	p.manages(50*ms, "x", 1, manager.LogEnd{Term: 2, LSN: 7}, "x in 1: deposed by 2", "step down", "swap for term 3")
	p.elects(60*ms, byrecord.Swapped{Outcome: storage.Conflict}, "read")
	p.elects(70*ms, byrecord.Seen{Record: storage.Record{Version: 9, Term: 2, Leader: "other", Session: [16]byte{2}}})
	for _, ns := range []leasehold.Namespace{"odd", "x", "y", "z"} {
		p.manages(80*ms, ns, 1, manager.Committed{Outcome: storage.Unknown})
		p.loads(80*ms, ns, 1, &storage.State{Term: 1})
		if p.machine.Manager(ns) != nil || p.machine.Problem(ns) != nil {
			t.Errorf("%s is still led or parked", ns)
		}
	}
	p.reads(80*ms, catalog(3, entry("x")))
	p.reads(80*ms, nil)
	if p.machine.Catalog() != nil || p.machine.Term() != 0 {
		t.Error("a deposed leader has a catalog")
	}
	p.step(90*ms, p.request("odd", "ann", 3), `redirect owner 61000000 to "other" in 2`)
	if got := p.live(100*ms, 3*second); len(got) > 0 {
		t.Errorf("settled at %v", got)
	}
}
