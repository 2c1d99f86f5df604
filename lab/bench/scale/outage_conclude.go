package main

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// addOutage reports an outage of all managers.
func addOutage(r *report.Result, f *outageFinding) {
	t := report.NewTable("", "measured from when a manager leads", "")
	t.Add("ranges in the table", f.ranges)
	t.Add("leases suspended during the outage", f.after.Suspended)
	t.Add("leader waits, because it cannot exclude a restored store", f.wait())
	t.Add("terms since then: more than 1 is another failover", f.terms)
	t.Add("every owner renewed after", seconds(f.renewed))
	t.Add("every range resumed, under its generation, after", seconds(f.resumed))
	t.Add("half of the lookups have contact after", seconds(f.half))
	t.Add("all lookups have contact after", seconds(f.all))
	t.Add("leases granted, revoked or with another generation", fmt.Sprintf("%d, %d, %d owners", f.after.Granted, f.after.Revoked, f.owners-f.after.Same))
	t.Add("losses that lookups report", f.losses)
	t.Add("all managers, percent of a core, until then", percent(f.cpu))
	t.Add("GB to and from lookups, until then", f.bytes/1e9)
	r.Add(report.Section{
		Title: "All managers down for a minute",
		Text: fmt.Sprintf("Three managers, %s owners with %s ranges together, and %s lookups. All managers are killed (SIGKILL) and started again after %v; one of them leads %s\n"+
			"after that. Meanwhile every lease has been suspended, and every lookup has lost contact. The owners use the owner library with its own connections,\n"+
			"so that they reconnect as an application's do; they share a process. %d of the lookups use the lookup library and report losses, the others follow the table only. A leader that cannot\n"+
			"exclude a restored store resumes nothing for one lease times drift, %v: after an outage of more than a minute on one computer, and after any outage otherwise.",
			report.Thousands(float64(f.owners)), report.Thousands(float64(f.ranges)), report.Thousands(float64(f.lookups)), f.down.Round(time.Second), seconds(f.election),
			libraryLookups, protocol.DefaultTiming().Hold()),
		Table: t,
	})
	l := report.NewTable("Renewals of valid leases", "", "renewals", "p50, ms", "p99, ms", "max, ms", "without a reply in time")
	for _, row := range []struct {
		name string
		renewals
	}{{fmt.Sprintf("%v before the outage", quietBefore), f.quiet}, {fmt.Sprintf("first %v after a manager leads", afterReturn), f.back}} {
		l.Add(row.name, row.count, milliseconds(row.p50), milliseconds(row.p99), milliseconds(row.most), row.unanswered)
	}
	r.Add(report.Section{Table: l})
	addOutageGoals(r, f)
}

func addOutageGoals(r *report.Result, f *outageFinding) {
	limit := resumeGoal + f.wait()
	name := "outage of all managers"
	r.Want(name+": a table of 64,000 ranges", float64(f.ranges), "ranges", f.ranges >= 64_000)
	r.Want(fmt.Sprintf("%s: every owner renewed within %v of the new leader", name, limit), f.renewed.Seconds(), "s", f.renewed > 0 && f.renewed <= limit)
	r.Want(fmt.Sprintf("%s: every range resumed within %v of the new leader", name, limit), f.resumed.Seconds(), "s", f.resumed > 0 && f.resumed <= limit)
	r.Want(name+": every lease of every owner is the one before, under its generation", float64(f.after.Same), "owners", f.after.Same == f.owners)
	r.Want(name+": no lease ends", float64(f.after.Revoked), "", f.after.Revoked == 0)
	r.Want(name+": no lookup reports a loss", float64(f.losses), "", f.losses == 0 && f.restored == libraryLookups)
	r.Want(name+": every lookup has contact again", float64(f.contacts), "lookups", f.contacts == f.lookups)
	again := f.after.Suspended - f.ranges
	r.Want(name+": no lease is suspended again after it was resumed", float64(again), "", again == 0)
	renew := protocol.DefaultTiming().Renew
	r.Want(fmt.Sprintf("%s: no renewal in the first %v takes longer than the renewal interval, %v", name, afterReturn, renew), f.back.most.Seconds(), "s",
		f.back.count > 0 && f.back.most <= renew)
}

func seconds(d time.Duration) string { return report.Number(d.Seconds()) + " s" }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
