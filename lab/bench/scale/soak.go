package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A soak restarts all owners and lookups again and again, for a minute per round, with the times of a preset, and counts the
// leases that expire without a failure.

// soakTTL is the TTL that preset fast needs.
const soakTTL = time.Second

// flags returns the flags of the managers.
func (s size) flags() []string {
	if s.soak == "" {
		return nil
	}
	return []string{"--ttl", soakTTL.String()}
}

// timing returns the times of a preset.
func timing(preset string) *leaseholdv1.Timing {
	all := admin.Presets()
	p := all[slices.IndexFunc(all, func(p admin.Preset) bool { return p.Name == preset })]
	return &leaseholdv1.Timing{Lease: int64(p.Lease), Renew: int64(p.Renew), Drift: p.Drift}
}

// A soakFinding is the result of a soak.
type soakFinding struct {
	size
	lasted   time.Duration
	cycles   int // in which all clients were restarted
	load     load
	counts   loadgen.Counts
	terms    uint64 // changes of the leader
	wrong    error  // why the table is not complete at the end
}

func measureSoak(ctx context.Context, r *report.Run, s size) (*soakFinding, error) {
	t, err := newTestbed(ctx, r, s)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if err := t.start(ctx); err != nil {
		return nil, err
	}
	first, err := t.group.Status(ctx, t.leader)
	if err != nil {
		return nil, err
	}
	f := &soakFinding{size: s}
	begun := time.Now()
	f.load, err = t.during(func() error {
		for time.Since(begun) < time.Duration(r.Rounds)*time.Minute && ctx.Err() == nil {
			if err := t.restart(s.restarts); err != nil {
				return err
			}
			f.cycles++
			counts, err := loadgen.Look(t.clients)
			if err != nil {
				return err
			}
			r.Step("%s: %v: %d leases expired, %d lookups lost contact", s.name, time.Since(begun).Round(time.Second), counts.Expired, counts.Stale)
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	f.lasted = time.Since(begun)
	f.counts, f.wrong = t.settle(ctx, s.lookups)
	last, err := t.group.Status(ctx, t.group.All[0])
	f.terms = last.GetTerm() - first.GetTerm()
	return f, err
}

func addSoak(r *report.Result, f *soakFinding) {
	t := report.NewTable("", "owners", "lookups", "minutes", "restarts of all", "of a core, leader", "of a core, all managers", "changes of the leader", "expired", "lost contact")
	t.Add(f.owners, f.lookups, f.lasted.Minutes(), f.cycles, percent(f.load.CPU), percent(f.load.All), fmt.Sprint(f.terms), fmt.Sprint(f.counts.Expired), fmt.Sprint(f.counts.Stale))
	r.Add("Preset "+f.soak, "Leases of 3 s, renewed every 0.5 s; three managers with a TTL of 1 s. All owners and lookups are restarted again and again.\n"+
		"\"Expired\" and \"lost contact\" count those without a failure. `-rounds` is the number of minutes.", t)
	r.Want("preset "+f.soak+": no lease expires, no lookup loses contact", float64(f.counts.Spurious()), "", f.counts.Spurious() == 0)
	r.Want("preset "+f.soak+": all keys held at the end", f.counts.Share, "of all keys", f.wrong == nil)
}
