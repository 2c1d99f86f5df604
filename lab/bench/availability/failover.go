package availability

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	process "github.com/leasehold-dev/leasehold/server/proc"
)

// A failover is a group whose leader is killed: how long is no change committed?
type failover struct {
	store    string
	diskless bool
	ttl      time.Duration

	group *managers.Group
	made  int // namespaces
	took  []float64
}

// failoverFactor is the goal: the time without changes, in TTLs.
const failoverFactor = 1.2

// runFailovers measures failovers with several TTLs. All groups run at the same time.
func runFailovers(ctx context.Context, r *report.Run) error {
	var all []*failover
	for _, ttl := range []time.Duration{2 * time.Second, time.Second, 500 * time.Millisecond} {
		all = append(all, &failover{store: "none (diskless)", diskless: true, ttl: ttl}, &failover{store: "embedded etcd", ttl: ttl})
	}
	for _, f := range all {
		if err := f.start(ctx, r.Dir); err != nil {
			return err
		}
		defer f.group.Close()
	}
	r.Step("failovers: %d groups are running", len(all))
	err := report.Rounds(ctx, 2*r.Rounds, len(all), func(round, i int) error {
		f := all[i]
		took, err := f.killLeader(ctx)
		if err != nil {
			return fmt.Errorf("failover with a TTL of %v, %s: %w", f.ttl, f.store, err)
		}
		f.took = append(f.took, took.Seconds())
		r.Step("round %d: failover with a TTL of %v, %s: %v", round+1, f.ttl, f.store, took.Round(time.Millisecond))
		return nil
	})
	if err == nil {
		reportFailovers(r.Result, all)
	}
	return err
}

func (f *failover) start(ctx context.Context, dir string) (err error) {
	f.group, err = managers.StartWith(ctx, dir, process.ManagersConfig{Count: 3, Diskless: f.diskless},
		"--ttl", f.ttl.String(), "--drift", "1.05")
	return err
}

// killLeader returns the time from the leader's death to the next commit.
func (f *failover) killLeader(ctx context.Context) (took time.Duration, err error) {
	if err := f.change(ctx); err != nil {
		return 0, err
	}
	if err := f.complete(ctx); err != nil {
		return 0, err
	}
	leader, err := f.group.Leader(ctx)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	leader.Kill()
	if err := f.change(ctx); err != nil {
		return 0, err
	}
	took = time.Since(begun)
	return took, leader.Start()
}

// change commits a change, by creating a namespace.
func (f *failover) change(ctx context.Context) error {
	f.made++
	return f.group.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{Name: fmt.Sprintf("made-%d", f.made)})
}

// complete waits until all managers run and vote.
func (f *failover) complete(ctx context.Context) error {
	return proc.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		for _, m := range f.group.All {
			status, err := f.group.Status(ctx, m)
			if err != nil {
				return err
			}
			if status.GetProblem() != "" || len(status.GetWarnings()) > 0 {
				return fmt.Errorf("%s: %s %q", m.Name, status.GetProblem(), status.GetWarnings())
			}
		}
		return nil
	})
}

func reportFailovers(r *report.Result, all []*failover) {
	t := report.NewTable("", "TTL, ms", "store", "no change recorded for, ms", "low", "high", "TTLs")
	for _, f := range all {
		s := report.Summarise(f.took)
		factor := s.Median / f.ttl.Seconds()
		t.Add(f.ttl.Milliseconds(), f.store, report.Summary{Median: 1000 * s.Median, Low: 1000 * s.Low, High: 1000 * s.High}, factor)
		if f.diskless || f.ttl > 500*time.Millisecond {
			r.Want(fmt.Sprintf("a failover with a TTL of %v, store %s: at most %v TTL in the median", f.ttl, f.store, failoverFactor),
				factor, "TTL", factor <= failoverFactor)
		}
	}
	r.Add("Failover", "Groups of three managers with a drift bound of 1.05. The leader is killed (kill -9), often together with the leader of the embedded store.", t)
}
