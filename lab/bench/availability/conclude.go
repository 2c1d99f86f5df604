package main

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// What the papers' texts say, and what our own times allow.
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
	t := report.NewTable("", "what happens", "longest operation, ms", "low", "high", "no change recorded for, ms", "low", "high")
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
			r.Less(e.name, service.Median, "s", "Centrifuge's lease, from its text", paperLease)
			r.Want("a server dies: its keys are served again within 3 s of what a lease and the clocks take, 12 s", service.High, "s", service.High < leaseLimit+3)
		case "drain":
			r.Less(e.name, service.Median, "s", "our own lease and the clocks, if it said nothing", leaseLimit)
			r.Want("a server is shut down: no operation takes longer than 1 s", service.High, "s", service.High < 1)
		default:
			r.Want(e.title+": no operation takes longer than 1 s", service.High, "s", service.High < 1)
		}
	}
	r.Want("no operation is given up", float64(failed), "", failed == 0)
	r.Add(report.Section{Title: "One of them", Text: "The longest operation of all frontends in a round: median of the rounds, low and high.", Table: t})
}

func reportReset(r *report.Result, found *resets) {
	t := report.NewTable("", "operations begun", "number", "p50, ms", "p80", "p90", "p99", "longest, s")
	for _, row := range []struct {
		name string
		took []time.Duration
	}{{"without trouble", found.normal}, {"when the rack dies", found.dies}, {"when it is back", found.back}} {
		at := func(share float64) float64 { return 1000 * report.Quantile(row.took, share).Seconds() }
		t.Add(row.name, len(row.took), at(0.5), at(0.8), at(0.9), at(0.99), at(1)/1000)
	}
	r.Add(report.Section{
		Title: "A rack is reset: PRS, figure 9",
		Text: fmt.Sprintf("%d servers in %d racks, and %s frontends. PRS's figure begins when the rack is powered up again, by which time its leases have run out; its\n"+
			"text says that 1 in 5 keys then takes tens of seconds, and less than a minute. Here the keys are with the other servers by then, and go back\n"+
			"to the rack a few at a time. What it costs that the rack dies, which PRS does not show, is the second row: keys of the rack wait until its\n"+
			"leases have run out.", racks*rackServers, racks, report.Thousands(frontendCount)),
		Table: t,
	})
	plot := report.Plot{
		Title: "Share of operations that are served within", X: "seconds", Y: "share", LogX: true,
		Curves: []report.Curve{cdf("without trouble", found.normal), cdf("a rack of 50 of 250 dies", found.dies), cdf("it is back (PRS's figure 9)", found.back)},
	}
	r.AddPlot("reset", "share of operations that are served within a time, without trouble, when a rack dies, and when it is back", plot.Write)
	back, dies := report.Quantile(found.back, 1).Seconds(), report.Quantile(found.dies, 1).Seconds()
	r.Less("rack-back", back, "s", "PRS's text", paperReset)
	r.Less("rack-dies", dies, "s", "Centrifuge's lease, from its text", paperLease)
	r.Want("a rack dies: all keys are served again within 3 s of what a lease and the clocks take, 12 s", dies, "s", dies < leaseLimit+3)
	r.Want("the rack is back: no operation takes longer than 1 s", back, "s", back < 1)
}
