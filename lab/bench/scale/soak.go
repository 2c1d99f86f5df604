package scale

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// A soak has the owners of an outage, but no outage: owners with the times of a preset hold their leases, while all simulated
// lookups are restarted again and again, for a minute per round. No lease may expire.

// soakTTL is the TTL that preset fast needs.
const soakTTL = time.Second

// flags returns the flags of the managers.
func (s size) flags() []string {
	if s.soak == "" {
		return nil
	}
	return []string{"--ttl", soakTTL.String()}
}

// A soakFinding is the result of a soak.
type soakFinding struct {
	size
	lasted    time.Duration
	restarted int // lookups
	load      load
	owners    loadgen.Report
	losses    int    // that library lookups report
	terms     uint64 // changes of the leader
}

func measureSoak(ctx context.Context, r *report.Run, s size) (*soakFinding, error) {
	t, err := newTestbed(ctx, r, s)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	b := &outageBed{testbed: t}
	if _, err := b.start(ctx); err != nil {
		return nil, err
	}
	first, err := b.group.Status(ctx, b.leader)
	if err != nil {
		return nil, err
	}
	f := &soakFinding{size: s}
	if f.load, err = b.during(func() error { return b.soakFor(ctx, f, time.Duration(r.Rounds)*time.Minute) }); err != nil {
		return nil, err
	}
	if f.owners, err = b.report(); err != nil {
		return nil, err
	}
	f.losses = int(b.losses.losses.Load())
	last, err := b.group.Status(ctx, b.group.All[0])
	f.terms = last.GetTerm() - first.GetTerm()
	return f, err
}

// soakFor restarts the lookups until the time is over.
func (b *outageBed) soakFor(ctx context.Context, f *soakFinding, limit time.Duration) error {
	for begun := time.Now(); f.lasted < limit; f.lasted = time.Since(begun) {
		if err := b.clients[1].Call("Restart", time.Minute, nil); err != nil {
			return err
		}
		f.restarted += b.lookups
		owners, err := b.report()
		if err != nil {
			return err
		}
		b.run.Step("%s: %v: leases suspended %d, revoked %d", b.name, time.Since(begun).Round(time.Second), owners.Suspended, owners.Revoked)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func addSoak(r *report.Result, f *soakFinding) {
	t := report.NewTable("", "owners", "lookups", "minutes", "lookups restarted", "of a core, leader", "of a core, all managers", "changes of the leader",
		"leases suspended", "revoked", "losses")
	t.Add(f.size.owners, f.lookups, f.lasted.Minutes(), f.restarted, percent(f.load.CPU), percent(f.load.All), fmt.Sprint(f.terms),
		fmt.Sprint(f.owners.Suspended), fmt.Sprint(f.owners.Revoked), fmt.Sprint(f.losses))
	r.Add("Soak with preset "+f.soak, "Leases of 3 s, renewed every 0.5 s; three managers with a TTL of 1 s. The owners use the owner library and share a process. All\n"+
		"simulated lookups are restarted every minute. `-rounds` is the number of minutes.", t)
	name := "soak with preset " + f.soak
	expired := f.owners.Suspended + f.owners.Revoked
	r.Want(name+": no lease is suspended or revoked", float64(expired), "", expired == 0)
	r.Want(name+": every lease is the one before, under its generation", float64(f.owners.Same), "owners", f.owners.Same == f.size.owners)
	r.Want(name+": no lookup reports a loss", float64(f.losses), "", f.losses == 0)
}
