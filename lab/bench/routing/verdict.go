package main

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

func named(routers []*router, name string) *router {
	for _, c := range routers {
		if c.name == name {
			return c
		}
	}
	return nil
}

// headlines compare Find with every peer at 1,000 servers, and with the quickest
// of them in the other cases.
func headlines(r *report.Run, all map[int][]*router) {
	quiet, busy := mode{}, mode{allCores: true, changing: true}
	usual := all[usualServers]
	ours := usual[0]
	for _, c := range usual[1:] {
		r.Less("find", ours.summary(quiet).Median, "ns", c.name, c.summary(quiet).Median)
	}
	for _, servers := range sizes(r.Quick) {
		for _, m := range []mode{quiet, busy} {
			if servers == usualServers && m == quiet {
				continue
			}
			if best := quickest(all[servers], m); best != nil {
				name := fmt.Sprintf("find.%d.%s", servers, m.file())
				r.Less(name, all[servers][0].summary(m).Median, "ns", best.name, best.summary(m).Median)
			}
		}
	}
}

// quickest returns the quickest peer; floors are none.
func quickest(routers []*router, m mode) *router {
	var best *router
	for _, c := range routers[1:] {
		if s := c.summary(m); c.floor || s.Turns == 0 {
			continue
		}
		if best == nil || c.summary(m).Median < best.summary(m).Median {
			best = c
		}
	}
	return best
}

// nameRing is dskit's contestant, if the program was built with it.
const nameRing = "grafana/dskit ring.Get"

// goals are what we want of Find. They compare those who cut the key space into
// as many pieces: 64 for each server, so that the servers' shares are even and a
// change of servers moves little.
func goals(r *report.Run, routers []*router) {
	quiet := mode{}
	ours := routers[0]
	ratio := func(name string) float64 {
		return report.PairedRatio(named(routers, name).turns[quiet], ours.turns[quiet])
	}
	index := report.PairedRatio(ours.turns[quiet], named(routers, nameIndex).turns[quiet])
	r.Want("Find at most 1.5 times the index with the same hash", index, "times", index <= 1.5)
	if named(routers, nameRing) != nil {
		ring := ratio(nameRing)
		r.Want("Find at least 5 times as fast as dskit", ring, "times", ring >= 5)
	}
	large := ratio(nameConsistentLarge)
	r.Want("Find at least 1.5 times as fast as buraksezer/consistent with as many pieces", large, "times", large >= 1.5)
	allocations := report.Median(ours.allocations)
	r.Want("no allocation in Find", allocations, "", allocations == 0)
}

// losses says where a peer is quicker, from the numbers, and why.
func losses(r *report.Run, all map[int][]*router) {
	for _, servers := range sizes(r.Quick) {
		for _, m := range modes() {
			ours := all[servers][0].summary(m).Median
			var quicker []string
			for _, c := range all[servers][1:] {
				if s := c.summary(m); !c.floor && s.Turns > 0 && s.Median < ours {
					quicker = append(quicker, fmt.Sprintf("%s (%s ns against %s)", c.name, report.Number(s.Median), report.Number(ours)))
				}
			}
			if len(quicker) > 0 {
				r.Lose("%s servers, %s: quicker than Find: %s. %s",
					report.Thousands(float64(servers)), m, strings.Join(quicker, ", "), why(m))
			}
		}
	}
	ours := all[usualServers][0].summary(mode{}).Median
	floor := named(all[usualServers], nameBare).summary(mode{}).Median
	r.Lose("to the bare radix read, %s ns against %s: Find hashes the name, loads the current table, "+
		"and reads the address of the range's holder, which is another miss of the cache.", report.Number(floor), report.Number(ours))
}

func why(m mode) string {
	if m.changing {
		return "Every update that a lookup receives is applied to a table, and indexed whole before callers see it: work that grows with the " +
			"number of ranges, on a core that callers would use."
	}
	return "They cut the key space into fewer pieces, whose table fits into a nearer cache; with as few, servers get uneven shares."
}
