package scale

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// centrifugeSteady is the traffic of the leader in production in Centrifuge's text (5.1.2), in
// KB/s, with 130 owners and 1,000 lookups.
const centrifugeSteady = 10

// mostCPU is the goal for 1,000 owners and 10,000 lookups, in percent of a core.
const mostCPU = 10

const kilo = 1000.0

func (f *finding) cpu() report.Summary {
	return report.SummariseOf(f.quiet, func(l load) float64 { return l.CPU })
}

func (f *finding) bytes() float64 {
	return report.SummariseOf(f.quiet, func(l load) float64 { return l.Bytes / kilo }).Median
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", x) }

func conclude(r *report.Result, found []*finding) {
	t := report.NewTable("", "", "owners", "lookups", "of a core, quiet", "low", "high", "of a core, all managers", "KB/s, quiet", "memory, MiB", "KiB for each client",
		"all restarted in", "of a core meanwhile", "KB/s meanwhile", "expired")
	for _, f := range found {
		cpu := f.cpu()
		row := []any{
			f.title, f.owners, f.lookups, percent(cpu.Median), percent(cpu.Low), percent(cpu.High), percent(report.SummariseOf(f.quiet, func(l load) float64 { return l.All }).Median), f.bytes(),
			f.total / (1 << 20), f.memory / 1024, "", "", "", fmt.Sprint(f.counts.Spurious()),
		}
		if f.restarts > 0 {
			row[10], row[11], row[12] = f.restarted.Round(time.Second), percent(f.restart.CPU), f.restart.Bytes/kilo
		}
		t.Add(row...)
	}
	r.Add("Cost of the leader", "Quiet: windows of 4 s; median, low and high. Restarts: an owner leaves, and a new session of its name connects at once; a lookup\n"+
		"returns without a table. \"Expired\" counts leases that expired, and lookups without contact for 30 s, without a failure.\n"+
		"With three managers, lookups have moved from the leader to the standbys (`internal/core/machine/lookup/target.go`); KB/s are those between clients and\n"+
		"all managers.", t)
	for _, f := range found {
		addGoals(r, f)
	}
}

func addGoals(r *report.Result, f *finding) {
	r.Want(f.title+": all keys held at the end", f.counts.Share, "of all keys", f.wrong == nil)
	r.Want(f.title+": no lease expires, no lookup loses contact", float64(f.counts.Spurious()), "", f.counts.Spurious() == 0)
	cpu := f.cpu().Median
	switch f.name {
	case partProduction:
		r.Less("quiet", f.bytes(), "KB/s", "Centrifuge's text", centrifugeSteady)
		r.Lose("to Centrifuge's leader in production, about %d KB/s against %v without changes: its renewals were six times less frequent.",
			centrifugeSteady, f.bytes())
	case partSingle:
		r.Less("5x-quiet", cpu, "% of a core", "our goal", mostCPU)
		r.Want("1,000 owners and 10,000 lookups, one manager: less than 10 % of a core, quiet", cpu, "%", cpu < mostCPU)
		r.Want("1,000 owners and 10,000 lookups: all restarted within 5 minutes", f.restarted.Minutes(), "minutes", f.restarted <= 5*time.Minute)
		r.Want("1,000 owners and 10,000 lookups: less than 64 KiB for each client", f.memory/1024, "KiB", f.memory < 64<<10)
	case partGroup:
		r.Want("1,000 owners and 10,000 lookups, three managers: less than 10 % of a core for the leader, quiet", cpu, "%", cpu < mostCPU)
	}
}
