//go:build unix

package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// TestOwnerStoppedForLong: the first Check of an owner that was stopped for longer than its
// lease fails. The others own its keys.
func TestOwnerStoppedForLong(t *testing.T) {
	t.Parallel()
	const ns = "stopped"
	g := startLone(t)
	g.createNamespace(t, ns, lostLease)
	ann := g.join(t, ns, "ann")
	victim := g.joinProcess(t, ns, "victim")
	g.waitForAssignment(t, ns, "ann", "victim")
	g.steady(t, ns, ann)
	calls := g.open(t, ns, eventTimeout)
	had := victim.watched(t, g, ns)

	victim.signal(t, syscall.SIGSTOP)
	within(t, regrant(lostLease)+slack, "the other owner has its keys", func() error { return covered(calls, had, "victim") })
	lostOnce(t, calls, had, "victim", leasehold.CauseExpired)
	eventually(t, "the other owner's leases match the table", func() error { return sameLeases(g.leasesOf(t, ns, "ann"), ann.Leases()) })
	victim.signal(t, syscall.SIGCONT)

	p := victim.paused(t, lostLease)
	if p.Held != 0 {
		t.Errorf("after a pause of %v, longer than the lease, %d of %d leases were held", p.Length, p.Held, len(had))
	}
	g.waitForAssignment(t, ns, "ann", "victim") // it joins again
	eventually(t, "the server owns keys again", func() error {
		return sameLeases(g.leasesOf(t, ns, "victim"), victim.query(t, askLeases).Leases)
	})
}

// TestOwnerStoppedForShort: an owner that was stopped for less than its lease keeps it.
func TestOwnerStoppedForShort(t *testing.T) {
	t.Parallel()
	const ns, length = "paused", 4 * time.Second
	g := startLone(t)
	g.createNamespace(t, ns, keptLease)
	ann := g.join(t, ns, "ann")
	victim := g.joinProcess(t, ns, "victim")
	g.waitForAssignment(t, ns, "ann", "victim")
	g.steady(t, ns, ann)
	calls := g.open(t, ns, eventTimeout)
	had := victim.watched(t, g, ns)

	victim.signal(t, syscall.SIGSTOP)
	<-time.After(length)
	victim.signal(t, syscall.SIGCONT)

	p := victim.paused(t, length-longPause)
	if p.Held != len(had) {
		t.Errorf("after a pause of %v, %d of %d leases were held", p.Length, p.Held, len(had))
	}
	g.waitForAssignment(t, ns, "ann", "victim")
	if now := victim.query(t, askLeases); now.Pulse.Lost > 0 || sameLeases(had, now.Leases) != nil {
		t.Errorf("leases are %v, want %v; some were missing in %d of %d rounds", now.Leases, had, now.Pulse.Lost, now.Pulse.Rounds)
	}
	if losses := calls.reportedLosses(); len(losses) > 0 {
		t.Errorf("the lookup reported losses: %v", losses)
	}
}

// watched waits until the process holds the leases of the table, makes it monitor them, and
// returns them.
func (p *ownerProcess) watched(t *testing.T, g *group, ns string) []leasehold.Lease {
	t.Helper()
	var had []leasehold.Lease
	eventually(t, "the process holds its leases", func() error {
		had = g.leasesOf(t, ns, "victim")
		return sameLeases(had, p.query(t, askLeases).Leases)
	})
	p.query(t, askWatch)
	eventually(t, "the process monitors its leases", func() error {
		if p.query(t, askLeases).Pulse.Rounds == 0 {
			return errNotYet
		}
		return nil
	})
	return had
}

// paused waits until the process has recorded a pause of at least a length.
func (p *ownerProcess) paused(t *testing.T, least time.Duration) (found pause) {
	t.Helper()
	eventually(t, "the process has recorded its pause", func() error {
		for _, one := range p.query(t, askLeases).Pulse.Pauses {
			if one.Length >= least {
				found = one
				return nil
			}
		}
		return errNotYet
	})
	return found
}
