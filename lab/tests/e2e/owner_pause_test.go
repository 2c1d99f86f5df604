//go:build unix

package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// TestOwnerStoppedForLong: an owner that stood still for longer than its lease
// finds it gone with its first check, while the others have its keys.
func TestOwnerStoppedForLong(t *testing.T) {
	t.Parallel()
	const ns = "stopped"
	g := startLone(t)
	g.createNamespace(t, ns, lostLease)
	ann := g.join(t, ns, "ann")
	victim := g.joinProcess(t, ns, "victim")
	g.settled(t, ns, "ann", "victim")
	g.steady(t, ns, ann)
	calls := g.open(t, ns, patience)
	had := victim.watched(t, g, ns)

	victim.signal(t, syscall.SIGSTOP)
	within(t, regrant(lostLease)+slack, "the other has its keys", func() error { return covered(calls, had, "victim") })
	lostOnce(t, calls, had, "victim", leasehold.CauseExpired)
	eventually(t, "the other knows", func() error { return sameLeases(g.leasesOf(t, ns, "ann"), ann.Leases()) })
	victim.signal(t, syscall.SIGCONT)

	p := victim.paused(t, lostLease)
	if p.Held != 0 {
		t.Errorf("after a pause of %v, longer than the lease, it still held %d of %d leases", p.Length, p.Held, len(had))
	}
	g.settled(t, ns, "ann", "victim") // it goes on as if it had just come
	eventually(t, "it has keys again", func() error {
		return sameLeases(g.leasesOf(t, ns, "victim"), victim.ask(t, askLeases).Leases)
	})
}

// TestOwnerStoppedForShort: one that stood still for less than its lease has lost
// nothing.
func TestOwnerStoppedForShort(t *testing.T) {
	t.Parallel()
	const ns, length = "paused", 4 * time.Second
	g := startLone(t)
	g.createNamespace(t, ns, keptLease)
	ann := g.join(t, ns, "ann")
	victim := g.joinProcess(t, ns, "victim")
	g.settled(t, ns, "ann", "victim")
	g.steady(t, ns, ann)
	calls := g.open(t, ns, patience)
	had := victim.watched(t, g, ns)

	victim.signal(t, syscall.SIGSTOP)
	<-time.After(length)
	victim.signal(t, syscall.SIGCONT)

	p := victim.paused(t, length-longPause)
	if p.Held != len(had) {
		t.Errorf("after a pause of %v it held %d of %d leases", p.Length, p.Held, len(had))
	}
	g.settled(t, ns, "ann", "victim")
	if now := victim.ask(t, askLeases); now.Pulse.Lost > 0 || sameLeases(had, now.Leases) != nil {
		t.Errorf("leases are %v, want %v; it found some missing %d times in %d", now.Leases, had, now.Pulse.Lost, now.Pulse.Rounds)
	}
	if told := calls.told(); len(told) > 0 {
		t.Errorf("the lookup reported losses: %v", told)
	}
}

// watched makes the process watch its leases, as soon as it has what the table
// says, and returns them.
func (p *ownerProcess) watched(t *testing.T, g *group, ns string) []leasehold.Lease {
	t.Helper()
	var had []leasehold.Lease
	eventually(t, "it knows of its leases", func() error {
		had = g.leasesOf(t, ns, "victim")
		return sameLeases(had, p.ask(t, askLeases).Leases)
	})
	p.ask(t, askWatch)
	eventually(t, "it watches", func() error {
		if p.ask(t, askLeases).Pulse.Rounds == 0 {
			return errNotYet
		}
		return nil
	})
	return had
}

// paused returns the pause of at least the given length that the process has
// noticed.
func (p *ownerProcess) paused(t *testing.T, least time.Duration) (found pause) {
	t.Helper()
	eventually(t, "it has noticed its pause", func() error {
		for _, one := range p.ask(t, askLeases).Pulse.Pauses {
			if one.Length >= least {
				found = one
				return nil
			}
		}
		return errNotYet
	})
	return found
}
