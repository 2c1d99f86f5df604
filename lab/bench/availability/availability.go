// Package availability measures how long keys are unavailable after failures of a rack
// of servers, as in PRS's figure 9, a server, the leader or the store's leader, and when
// a server is drained.
package availability

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "The time without service of a key. Three managers with embedded stores, servers with the owner library, and frontends that find a\n" +
	"server with the lookup library and retry until served; all are processes, with default times (leases of 10 s, TTL of 2 s). The\n" +
	"measure is the time of an operation until it is served. 128 frontends use one key each and repeat 5 ms after each answer, while a\n" +
	"server is stopped or dies, the leader dies, or the store's leader dies. Leases survive the leader, so callers should notice\n" +
	"nothing; the time without changes is measured by creating a namespace. Then PRS's figure 9: a rack of 50 of 250 servers is reset."

// New returns the benchmark.
func New() *report.Benchmark {
	return &report.Benchmark{
		Name: "availability", Number: 5, Title: "Availability", About: about,
		Rounds: 4, Quick: 1, Seconds: 120, QuickSeconds: 30, Run: run,
	}
}

// Roles returns the roles of the processes, for [proc.Play].
func Roles() map[string]proc.Role { return loadgen.Roles() }

// servers is the number of servers for single events, each in a process.
const servers = 4

func run(ctx context.Context, r *report.Run) error {
	all := events()
	s, err := newSite(ctx, r.Dir, servers, 1, 4)
	if err != nil {
		return err
	}
	r.Step("%d managers and %d servers are running", len(s.group.All), servers)
	outcomes := make([][]outcome, len(all))
	err = report.Rounds(ctx, r.Rounds, len(all), func(round, i int) error {
		o, err := s.measureEvent(ctx, all[i])
		if err != nil {
			return fmt.Errorf("%s: %w", all[i].title, err)
		}
		outcomes[i] = append(outcomes[i], o)
		r.Step("round %d: %s: %v", round+1, all[i].title, o.service.Round(time.Millisecond))
		return nil
	})
	s.Close()
	if err != nil {
		return err
	}
	reportEvents(r.Result, all, outcomes)
	if r.Quick {
		return nil
	}
	reset, err := reset(ctx, r)
	if err != nil {
		return fmt.Errorf("a rack is reset: %w", err)
	}
	reportReset(r.Result, reset)
	return nil
}

// Numbers in the papers' texts, and the bounds of our own times.
const (
	paperLease  = 60.0 // seconds: Centrifuge's leases, for which the keys of a server that dies are not served (5.1.1)
	paperReset  = 60.0 // seconds: PRS restores availability after a rack is reset in less than a minute (7.2)
	leaseLimit  = 12.0 // 10 s, by a clock that may be 1.2 times slower
	leaderLimit = 2.4  // 2 s, the same
)

func seconds(all []outcome, of func(outcome) time.Duration) report.Summary {
	return report.SummariseOf(all, func(o outcome) float64 { return of(o).Seconds() })
}

func reportEvents(r *report.Result, all []event, outcomes [][]outcome) {
	t := report.NewTable("", "event", "longest operation, ms", "low", "high", "no change recorded for, ms", "low", "high")
	milli := func(s report.Summary) report.Summary {
		return report.Summary{Median: 1000 * s.Median, Low: 1000 * s.Low, High: 1000 * s.High}
	}
	failed := 0
	for i, e := range all {
		service := seconds(outcomes[i], func(o outcome) time.Duration { return o.service })
		row := []any{e.title, milli(service)}
		if e.changes {
			changes := seconds(outcomes[i], func(o outcome) time.Duration { return o.changes })
			row = append(row, milli(changes))
			r.Less(e.name+"-changes", changes.Median, "s", "the leader's time and drift", leaderLimit)
		}
		t.Add(row...)
		for _, o := range outcomes[i] {
			failed += o.failed
		}
		switch e.name {
		case "owner-crash":
			r.Less(e.name, service.Median, "s", "Centrifuge's lease, in its text", paperLease)
			r.Want("a server dies: its keys are served within lease x drift + 3 s (12 s + 3 s)", service.High, "s", service.High < leaseLimit+3)
		case "drain":
			r.Less(e.name, service.Median, "s", "our lease x drift, without a goodbye", leaseLimit)
			r.Want("a server is shut down: no operation takes longer than 1 s", service.High, "s", service.High < 1)
		default:
			r.Want(e.title+": no operation takes longer than 1 s", service.High, "s", service.High < 1)
		}
	}
	r.Want("no operation is given up", float64(failed), "", failed == 0)
	r.Add("One failure", "The longest operation of all frontends in a round: median, low and high of the rounds.", t)
}

func reportReset(r *report.Result, found *resets) {
	t := report.NewTable("", "operations that begin", "number", "p50, ms", "p80", "p90", "p99", "longest, s")
	for _, row := range []struct {
		name string
		took []time.Duration
	}{{"without trouble", found.normal}, {"when the rack dies", found.dies}, {"when it is back", found.back}} {
		at := func(share float64) float64 { return 1000 * report.Quantile(row.took, share).Seconds() }
		t.Add(row.name, len(row.took), at(0.5), at(0.8), at(0.9), at(0.99), at(1)/1000)
	}
	r.Add("A rack is reset: PRS, figure 9",
		fmt.Sprintf("%d servers in %d racks, and %s frontends. PRS's figure begins when the rack is powered up, after its leases have expired; its\n"+
			"text reports tens of seconds, less than a minute, for 1 in 5 keys. Here other servers have the keys meanwhile, and ranges\n"+
			"return to the rack a few at a time. The second row, which PRS does not show, is the death of the rack: its keys wait until\n"+
			"its leases expire.", racks*rackServers, racks, report.Thousands(frontendCount)), t)
	back, dies := report.Quantile(found.back, 1).Seconds(), report.Quantile(found.dies, 1).Seconds()
	r.Less("rack-back", back, "s", "PRS's text", paperReset)
	r.Less("rack-dies", dies, "s", "Centrifuge's lease, in its text", paperLease)
	r.Want("a rack dies: all keys are served within lease x drift + 3 s (12 s + 3 s)", dies, "s", dies < leaseLimit+3)
	r.Want("the rack is back: no operation takes longer than 1 s", back, "s", back < 1)
}
