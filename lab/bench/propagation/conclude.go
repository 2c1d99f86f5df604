package main

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// conclude adds tables, plots, headlines, goals and losses.
func conclude(r *report.Run, all []size, found map[size][]outcome) {
	t := report.NewTable("", "listeners", "", "bytes", "half of them, ms", "the last, ms", "low", "high", "times the push")
	for _, s := range all {
		push := byName(found[s])[namePush]
		for _, o := range found[s] {
			t.Add(s, o.name, o.bytes, o.half.Median, o.last, report.PairedRatio(o.turns, push.turns))
		}
	}
	r.Add(report.Section{Title: "From a change to those who hear of it", Table: t})
	if !r.Quick {
		plotCurves(r, all, found, true, "own", "a connection each")
		plotCurves(r, all, found, false, "shared", fmt.Sprintf("over %d connections", few))
	}
	for _, s := range all {
		judge(r, s, byName(found[s]))
	}
}

// judge adds the headlines of a size, its goals if it has some, and its losses. Goals are about rounds, in which
// both have a turn; losses are about the medians that are told.
func judge(r *report.Run, s size, of map[string]outcome) {
	ours := of[nameLeasehold]
	name := fmt.Sprintf("last-of-%d-over-%d", s.listeners, s.conns)
	if s.own() {
		name = fmt.Sprintf("last-of-%d", s.listeners)
	}
	for _, peer := range []string{nameEtcd, namePush} {
		r.Less(name, ours.last.Median, "ms", peer, of[peer].last.Median)
	}
	push, etcd := report.PairedRatio(ours.turns, of[namePush].turns), report.PairedRatio(ours.turns, of[nameEtcd].turns)
	if s.judged() || s.own() && r.Quick {
		r.Want(fmt.Sprintf("%v: at most twice the time of a bare push", s), push, "times", push <= 2)
		r.Want(fmt.Sprintf("%v: faster than etcd's watch", s), etcd, "times", etcd < 1)
	}
	if ours.last.Median > of[nameEtcd].last.Median {
		r.Lose("to etcd's watch, with %v: %s ms against %s until the last has heard.",
			s, report.Number(ours.last.Median), report.Number(of[nameEtcd].last.Median))
	}
	if ours.last.Median > of[namePush].last.Median {
		r.Lose("to a bare push, with %v: %s ms against %s. A manager's change goes through its store, in memory here, before it is sent; which part of the difference that is was not measured.",
			s, report.Number(ours.last.Median), report.Number(of[namePush].last.Median))
	}
}

func byName(all []outcome) map[string]outcome {
	of := make(map[string]outcome)
	for _, o := range all {
		of[o.name] = o
	}
	return of
}

// plotCurves draws how the time grows, for those with a connection each or for the
// others.
func plotCurves(r *report.Run, all []size, found map[size][]outcome, own bool, file, how string) {
	p := &report.Plot{Title: "Until the last has heard of a change, " + how, X: "listeners", Y: "ms", LogX: true, LogY: true, MarkX: true}
	for i, name := range []string{nameLeasehold, nameEtcd, namePush} {
		p.Curves = append(p.Curves, report.Curve{Name: name})
		for _, s := range all {
			if s.own() == own {
				p.Curves[i].Points = append(p.Curves[i].Points, report.PointOf(float64(s.listeners), byName(found[s])[name].last))
			}
		}
	}
	r.AddPlot(file, fmt.Sprintf("How the time until the last has heard grows, %s. With exponent %s for leasehold, %s for etcd, %s for a bare push.",
		how, report.Number(report.Slope(p.Curves[0].Points)), report.Number(report.Slope(p.Curves[1].Points)), report.Number(report.Slope(p.Curves[2].Points))), p.Write)
}
