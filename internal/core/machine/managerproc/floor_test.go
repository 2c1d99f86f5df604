package managerproc_test

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

const unixNow = 1_800_000_000

// uncertain returns a leader of a store that may have been restored, with two empty namespaces.
func uncertain(t *testing.T) (p *process, now mono.Instant) {
	t.Helper()
	p = standby(t)
	p.elects(0, byrecord.Seen{Record: storage.Record{Version: 4, Term: 3, Leader: "other", Session: leasehold.Session{2}, At: unixNow - 100}, Wall: unixNow})
	p.takesOver(107, "x", "y")
	return p, 3800 * ms
}

// takesOver lets a standby take over at 3.7 s, and load namespaces that are empty in the store.
func (p *process) takesOver(term leasehold.Term, load ...leasehold.Namespace) {
	p.t.Helper()
	p.advance(3600*ms, fmt.Sprintf("swap for term %d", term))
	p.elects(3700*ms, byrecord.Swapped{Outcome: storage.Done, Version: 9}, fmt.Sprintf("read catalog in %d", term), fmt.Sprintf("lead in %d", term))
	c := catalog(1, entry("x"), entry("y"))
	c.Term = term
	p.step(3700*ms, managerproc.Catalogued{Term: term, Catalog: c}, fmt.Sprintf("load x in %d", term), fmt.Sprintf("load y in %d", term))
	for _, ns := range load {
		p.loads(3700*ms, ns, term, &storage.State{Term: term}, fmt.Sprintf("serve %s in %d", ns, term))
	}
}

// gaps returns the first LSN after the gap of each namespace, when the wait is over.
func (p *process) gaps(now mono.Instant) map[leasehold.Namespace]uint64 {
	p.t.Helper()
	gaps := make(map[leasehold.Namespace]uint64)
	for end := now + 60*second; now < end && len(gaps) < 2; now = p.wake {
		var actions []managerproc.Action
		actions, p.wake = p.machine.Advance(now)
		for len(actions) > 0 {
			a := actions[0]
			actions = actions[1:]
			switch a := a.(type) {
			case managerproc.Elect:
				if swap, is := a.Action.(byrecord.Swap); is {
					more, wake := p.machine.Step(now, managerproc.Election{Event: byrecord.Swapped{Swap: swap, Outcome: storage.Done, Version: swap.Prev + 1}})
					actions, p.wake = append(append([]managerproc.Action{}, actions...), more...), wake
				}
			case managerproc.Manage:
				if c, is := a.Action.(manager.Commit); is && c.Batch.Base != nil {
					gaps[a.Namespace] = uint64(c.Batch.Base.LSN())
				}
			}
		}
	}
	return gaps
}

// The store was restored. An owner in x has a lease that a leader with a fast clock has granted in the lost history. No owner
// of y has one. Both namespaces continue above it, because that leader may have granted leases in y, too.
func TestEvidenceRaisesTheFloorOfAllNamespaces(t *testing.T) {
	const granted = (unixNow + 3600) << 20
	claim := func(p *process, now mono.Instant, generation leasehold.Generation) {
		r := p.request("x", "ann", 1)
		r.Term, r.Leases = 3, []leasehold.Lease{{Range: leasehold.All, Generation: generation}}
		p.machine.Step(now, r)
	}
	t.Run("a number that a fast clock explains", func(t *testing.T) {
		p, now := uncertain(t)
		claim(p, now, granted)
		if got := p.gaps(now); got["x"] <= granted || got["y"] <= granted {
			t.Errorf("the namespaces continue at %v, not above %d", got, uint64(granted))
		}
	})
	t.Run("under the successor of an uncertain leader, before the other namespace is loaded", func(t *testing.T) {
		p := standby(t)
		rec := storage.Record{Version: 4, Term: 3, Leader: "other", Session: leasehold.Session{2}, At: unixNow, Floor: unixNow << 20, Beat: 1}
		p.elects(0, byrecord.Seen{Record: rec, Wall: unixNow})
		rec.Version, rec.Beat = 5, 2
		p.elects(0, byrecord.Seen{Record: rec, Wall: unixNow}) // the record changes, so the takeover is certain
		p.takesOver(4, "x")
		claim(p, 3800*ms, granted)
		p.loads(3900*ms, "y", 4, &storage.State{Term: 4}, "serve y in 4")
		if got := p.gaps(4000 * ms); got["x"] <= granted || got["y"] <= granted {
			t.Errorf("the namespaces continue at %v, not above %d", got, uint64(granted))
		}
	})
	t.Run("a number that a clock ahead by years explains", func(t *testing.T) {
		p, now := uncertain(t)
		claim(p, now, granted+1<<45)
		if got := p.gaps(now); got["x"] <= granted+1<<45 || got["y"] > granted {
			t.Errorf("the namespaces continue at %v", got)
		}
	})
	t.Run("a number that no clock explains", func(t *testing.T) {
		p, now := uncertain(t)
		claim(p, now, granted+1<<50)
		if got := p.gaps(now); got["x"] > granted || got["y"] > granted || len(got) != 2 {
			t.Errorf("the namespaces continue at %v", got)
		}
	})
}
