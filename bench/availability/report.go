package main

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// What the papers' texts say, and what our own times allow.
const (
	paperLease  = 60.0 // seconds: Centrifuge's leases, for which the keys of a server that dies are not served (5.1.1)
	paperReset  = 60.0 // seconds: PRS restores availability after a rack is reset in less than a minute (7.2)
	leaseLimit  = 12.0 // 10 s, by a clock that may be 1.2 times slower
	leaderLimit = 2.4  // 2 s, the same
)

func seconds(all []outcome, of func(outcome) time.Duration) kit.Summary {
	var values []float64
	for _, o := range all {
		values = append(values, of(o).Seconds())
	}
	return kit.Summarise(values)
}

func reportEvents(r *kit.Result, all []event, outcomes [][]outcome) {
	t := kit.NewTable("", "what happens", "longest operation, ms", "low", "high", "no change recorded for, ms", "low", "high")
	milli := func(x float64) string { return kit.Number(1000 * x) }
	failed := 0
	for i, e := range all {
		service := seconds(outcomes[i], func(o outcome) time.Duration { return o.service })
		row := []string{e.title, milli(service.Median), milli(service.Low), milli(service.High)}
		if e.changes {
			changes := seconds(outcomes[i], func(o outcome) time.Duration { return o.changes })
			row = append(row, milli(changes.Median), milli(changes.Low), milli(changes.High))
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
	r.Add(kit.Section{Title: "One of them", Text: "The longest operation of all frontends in a round: median of the rounds, low and high.", Table: t})
}

func reportReset(r *kit.Result, found *resets) {
	t := kit.NewTable("", "operations begun", "number", "p50, ms", "p80", "p90", "p99", "longest, s")
	for _, row := range []struct {
		name string
		took []time.Duration
	}{{"without trouble", found.normal}, {"when the rack dies", found.dies}, {"when it is back", found.back}} {
		t.Add(row.name, kit.Thousands(float64(len(row.took))), milliseconds(row.took, 0.5), milliseconds(row.took, 0.8), milliseconds(row.took, 0.9),
			milliseconds(row.took, 0.99), kit.Number(quantile(row.took, 1).Seconds()))
	}
	r.Add(kit.Section{
		Title: "A rack is reset: PRS, figure 9",
		Text: fmt.Sprintf("%d servers in %d racks, and %s frontends. PRS's figure begins when the rack is powered up again, by which time its leases have run out; its\n"+
			"text says that 1 in 5 keys then takes tens of seconds, and less than a minute. Here the keys are with the other servers by then, and go back\n"+
			"to the rack a few at a time. What it costs that the rack dies, which PRS does not show, is the second row: keys of the rack wait until its\n"+
			"leases have run out.", racks*rackServers, racks, kit.Thousands(frontendCount)),
		Table: t,
	})
	plot := kit.Plot{
		Title: "Share of operations that are served within", X: "seconds", Y: "share", LogX: true,
		Curves: []kit.Curve{cdf("without trouble", found.normal), cdf("a rack of 50 of 250 dies", found.dies), cdf("it is back (PRS's figure 9)", found.back)},
	}
	r.AddPlot("reset", "share of operations that are served within a time, without trouble, when a rack dies, and when it is back", plot.Write)
	r.Less("rack-back", quantile(found.back, 1).Seconds(), "s", "PRS's text", paperReset)
	r.Less("rack-dies", quantile(found.dies, 1).Seconds(), "s", "Centrifuge's lease, from its text", paperLease)
	r.Want("a rack dies: all keys are served again within 3 s of what a lease and the clocks take, 12 s", quantile(found.dies, 1).Seconds(), "s", quantile(found.dies, 1).Seconds() < leaseLimit+3)
	r.Want("the rack is back: no operation takes longer than 1 s", quantile(found.back, 1).Seconds(), "s", quantile(found.back, 1).Seconds() < 1)
}

func milliseconds(sorted []time.Duration, p float64) string {
	return kit.Number(1000 * quantile(sorted, p).Seconds())
}
