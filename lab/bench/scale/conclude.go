package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// The numbers in the papers' texts. Their figures have no numbers.
const (
	centrifugeSteady = 10   // KB/s of the leader in production, with 130 owners and 1,000 lookups (5.1.2)
	centrifugeChange = 500  // KB/s at most while leaders change there (5.1.2)
	centrifugePeak   = 5000 // KB/s at most while the testbed's nodes restart (5.2)
	prsState         = 1    // MB that the manager keeps in production, at most (7.1)
)

const kilo = 1000.0

func (f *finding) cpu() report.Summary {
	return report.SummariseOf(f.quiet, func(l load) float64 { return l.CPU })
}

func (f *finding) bytes() report.Summary {
	return report.SummariseOf(f.quiet, func(l load) float64 { return l.Bytes / kilo })
}

// allCPU is the processor time of all managers together.
func (f *finding) allCPU() report.Summary {
	return report.SummariseOf(f.quiet, func(l load) float64 { return l.All })
}

func conclude(r *report.Result, found []*finding) {
	if len(found) == 0 {
		return
	}
	addCosts(r, found)
	addCentrifuge(r, named(found, "centrifuge"), named(found, "rollout"))
	for _, f := range found {
		if f.managers > 1 && !f.rollout {
			addGroup(r, f)
		}
		if len(f.steps) > 1 {
			addPRS(r, f)
		}
	}
	addGrowth(r, found)
	for _, f := range found {
		addGoals(r, f)
	}
}

// named returns the finding of a size; nil if it was not measured.
func named(found []*finding, name string) *finding {
	if i := slices.IndexFunc(found, func(f *finding) bool { return f.name == name }); i >= 0 {
		return found[i]
	}
	return nil
}

func addCosts(r *report.Result, found []*finding) {
	t := report.NewTable("", "", "owners", "lookups", "connections", "of a core, quiet", "low", "high", "KB/s, quiet", "memory, MiB", "KiB for each client",
		"all restarted in", "of a core meanwhile", "KB/s meanwhile", "at most", "expired")
	for _, f := range found {
		row := []any{f.title, f.owners, f.lookups, f.connections()}
		if cpu := f.cpu(); len(f.quiet) > 0 {
			row = append(row, percent(cpu.Median), percent(cpu.Low), percent(cpu.High), f.bytes().Median)
		} else {
			row = append(row, "", "", "", "")
		}
		row = append(row, f.total/(1<<20), f.memory/1024)
		if f.restarts > 0 {
			worst := f.ownersRestart
			if f.lookupsRestart.CPU > worst.CPU {
				worst = f.lookupsRestart
			}
			row = append(row, f.restarted.Round(time.Second), percent(worst.CPU), worst.Bytes/kilo,
				max(f.ownersRestart.Peak, f.lookupsRestart.Peak)/kilo)
		} else {
			row = append(row, "", "", "", "")
		}
		t.Add(append(row, fmt.Sprint(f.spurious))...)
	}
	r.Add(report.Section{
		Title: "Cost of the leader",
		Text: "Quiet: windows of 4 s, or 30 s with the papers' intervals; median, low and high. Restarts: an owner leaves, and a new session of its name\n" +
			"connects at once; a lookup returns without a table. \"Expired\" counts leases that expired, and lookups without contact for 30 s (90 s with the\n" +
			"papers' intervals), without a failure. With 50,000 lookups five share a connection, because of a limit of 20,000 open files. Their table has\n" +
			"50,000 ranges with the default policy; a restart of all would move more than 100 GB, so all restart with one range per owner. In the rollout, CPU is that\n" +
			"of all three managers.",
		Table: t,
	})
}

func addGroup(r *report.Result, f *finding) {
	all := f.allCPU()
	r.Add(report.Section{
		Title: "With standbys",
		Text: fmt.Sprintf("Lookups move from the leader to standbys (`internal/core/machine/lookup/target.go`, TestLookupsFollowStandbys in `manager`). Here half of them are at each of\n"+
			"two standbys, and the leader has %s owners and two standbys: %s of a core and %s MiB. All three managers together take\n"+
			"%s of a core (%s to %s) and %s MiB. Connections and KB/s are those between clients and all managers; traffic between managers is excluded.",
			report.Thousands(float64(f.owners)), percent(f.cpu().Median), report.Number(f.total/(1<<20)),
			percent(all.Median), percent(all.Low), percent(all.High), report.Number(f.all/(1<<20))),
	})
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", x) }

// addCentrifuge adds its figures 12 to 14, where the text has numbers: one of its testbed,
// and two of production. Both findings may be nil.
func addCentrifuge(r *report.Result, f, production *finding) {
	if f == nil && production == nil {
		return
	}
	t := report.NewTable("", "figure", "", "owners", "lookups", "Centrifuge, KB/s", "ours, KB/s", "ours, of a core")
	add := func(figure, what string, f *finding, theirs string, ours string, cpu float64) {
		t.Add(figure, what, f.owners, f.lookups, theirs, ours, percent(cpu))
	}
	text := "Their numbers are from the text of the paper (5.1.2, 5.2); CPU is \"very low\" and \"light\" there."
	if production != nil {
		all := production.allCPU()
		add("12", "no restarts", production, fmt.Sprintf("about %d", centrifugeSteady), report.Number(production.bytes().Median), all.Median)
		r.Less("quiet", production.bytes().Median, "KB/s", "Centrifuge's text", centrifugeSteady)
		r.Lose("to Centrifuge's leader in production, about %d KB/s against %s without changes: its renewals were six times less frequent.",
			centrifugeSteady, report.Number(production.bytes().Median))
	}
	if production != nil && production.restarts > 0 {
		l, faster := production.ownersRestart, float64(paperRollout)/float64(production.restarts)
		add("13", "a rollout", production, fmt.Sprintf("almost %d at most", centrifugeChange), traffic(l), l.CPU)
		text += fmt.Sprintf(" Figures 12 and 13\n"+
			"are of production: three servers, restarted with all owners and lookups, group by group, within an hour. Here that takes\n"+
			"%s, %.0f times as fast, one manager with a third of the clients at a time. Bytes and CPU are those of all three managers, without traffic\n"+
			"between them. Their peak is over 30 s, ours over one. The rollout has %s MB, which would be %s KB/s over an hour.", production.restarts, faster,
			report.Number(l.Bytes*production.restarted.Seconds()/1e6), report.Number(l.Bytes*production.restarted.Seconds()/kilo/paperRollout.Seconds()))
		r.Less("rollout-peak", l.Peak/kilo, "KB/s", "Centrifuge's text, in an hour", centrifugeChange)
		if l.Peak/kilo > centrifugeChange {
			r.Lose("to Centrifuge's rollout, at most %d KB/s in 30 s against %s in one second: a manager that exits redirects its clients at once, and everything restarted in %s instead of an hour.",
				centrifugeChange, report.Number(l.Peak/kilo), production.restarts)
		}
	}
	if f != nil && f.restarts > 0 {
		faster := float64(paperRestarts) / float64(f.restarts)
		add("14", "all owners restarted", f, fmt.Sprintf("up to %s", report.Thousands(centrifugePeak)), traffic(f.ownersRestart), f.ownersRestart.CPU)
		add("14", "all lookups restarted", f, "less", traffic(f.lookupsRestart), f.lookupsRestart.CPU)
		text += fmt.Sprintf(" Figure 14 is of\n"+
			"their testbed: 200 owners and then 2,016 lookups restarted within 32 minutes each, 6.25 and 63 a minute. Time is compressed %.0f times here: %s\n"+
			"and %s a minute. Our worst second corresponds to %.0[1]f s at their pace, and the headline is divided by that.",
			faster, report.Number(float64(f.owners)/f.restarts.Minutes()), report.Thousands(float64(f.lookups)/f.restarts.Minutes()))
		r.Less("owners-restart-peak", f.ownersRestart.Peak/kilo/faster, "KB/s at their pace", "Centrifuge's text", centrifugePeak)
	}
	r.Add(report.Section{Title: "Centrifuge, figures 12 to 14", Text: text, Table: t})
}

func traffic(l load) string {
	return fmt.Sprintf("%s, up to %s", report.Number(l.Bytes/kilo), report.Number(l.Peak/kilo))
}

// addPRS adds its figures 7 and 8, for which the text has no numbers.
func addPRS(r *report.Result, f *finding) {
	cpu := report.Plot{Title: "PRS, figure 7: the processor", X: "nodes, a fifth of them owners", Y: "percent of a core", MarkX: true, Curves: make([]report.Curve, 2)}
	network := report.Plot{Title: "PRS, figure 8: the network", X: cpu.X, Y: "KB/s", MarkX: true, Curves: make([]report.Curve, 2)}
	t := report.NewTable("", "nodes", "of a core", "KB/s", "failures a minute", "of a core with failures", "KB/s with failures")
	names := []string{"ours, no failures", fmt.Sprintf("ours, nodes live %s", lifetime/compressed)}
	for i, name := range names {
		cpu.Curves[i].Name, network.Curves[i].Name = name, name
	}
	for _, s := range f.steps {
		x := float64(s.clients)
		for i, l := range []load{s.quiet, s.failed} {
			cpu.Curves[i].Points = append(cpu.Curves[i].Points, report.Point{X: x, Y: l.CPU})
			network.Curves[i].Points = append(network.Curves[i].Points, report.Point{X: x, Y: l.Bytes / kilo})
		}
		t.Add(s.clients, percent(s.quiet.CPU), s.quiet.Bytes/kilo, s.perMinute, percent(s.failed.CPU), s.failed.Bytes/kilo)
	}
	r.Add(report.Section{
		Title: "PRS, figures 7 and 8",
		Text: fmt.Sprintf("Four frontends per middle-tier server, up to 2,500 nodes. The paper's text has these numbers only: the manager's load without failures is\n"+
			"\"quite small\", its state less than %d MB, and with a mean lifetime of 8 h a node fails every 12 s. Here nodes fail %d times as often.", prsState, compressed),
		Table: t,
	})
	r.AddPlot("prs-cpu", "percent of a core by nodes, with and without failures", cpu.Write)
	r.AddPlot("prs-network", "KB/s by nodes, with and without failures", network.Write)
}

// addGrowth adds the growth of costs with the number of clients.
func addGrowth(r *report.Result, found []*finding) {
	if len(found) < 2 {
		return
	}
	curves := []struct {
		name string
		of   func(*finding) float64
	}{
		{"of a core, quiet, in percent", func(f *finding) float64 { return f.cpu().Median }},
		{"KB/s, quiet", func(f *finding) float64 { return f.bytes().Median }},
		{"memory in MiB", func(f *finding) float64 { return f.total / (1 << 20) }},
	}
	plot := report.Plot{Title: "What the leader costs, by clients", X: "owners and lookups", LogX: true, LogY: true}
	t := report.NewTable("", "", "exponent of the number of clients")
	for _, c := range curves {
		for _, patient := range []bool{false, true} {
			name := c.name
			if patient {
				name += ", with the papers' times"
			}
			var points []report.Point
			for _, f := range found {
				if f.patient == patient && f.managers == 0 && len(f.quiet) > 0 {
					points = append(points, report.Point{X: float64(f.clients()), Y: max(c.of(f), 0.01)})
				}
			}
			if len(points) < 2 {
				continue
			}
			slope := report.Slope(points)
			plot.Curves = append(plot.Curves, report.Curve{Name: fmt.Sprintf("%s: slope %.2f", name, slope), Points: points})
			t.Add(name, fmt.Sprintf("%.2f", slope))
		}
	}
	r.Add(report.Section{Title: "Growth", Table: t})
	r.AddPlot("growth", "cost by clients, on logarithmic axes", plot.Write)
}

func addGoals(r *report.Result, f *finding) {
	r.Want(f.title+": all keys held at the end", f.counts.Share, "of all keys", f.wrong == nil)
	r.Want(f.title+": no lease expires, no lookup loses contact", float64(f.spurious), "", f.spurious == 0)
	switch f.name {
	case "joins":
		r.Want("1,000 owners join within a second: the table is complete within 10 s", f.complete.Seconds(), "s", f.complete <= 10*time.Second)
	case "5x":
		bare := report.Summarise(f.bare)
		r.Add(report.Section{
			Title: "Lower bound",
			Text: fmt.Sprintf("A gRPC server that only answers takes %s of a core (%s to %s) for as many messages, %s a second, on as many\n"+
				"connections. The leader takes %s.", percent(bare.Median), percent(bare.Low), percent(bare.High),
				report.Thousands(float64(f.clients())/f.floorPoll().Seconds()), percent(f.cpu().Median)),
		})
		r.Less("5x-quiet", f.cpu().Median, "% of a core", "bare gRPC", bare.Median)
		r.Lose("to bare gRPC, %s of a core against %s without changes, with all clients at one manager: it also encodes and decodes messages and runs its machine. gRPC itself leaves little of 10 %%; standbys or longer leases help.", percent(bare.Median), percent(f.cpu().Median))
		r.Want("1,000 owners and 10,000 lookups, one manager: less than 10 % of a core, quiet", f.cpu().Median, "%", f.cpu().Median < 10)
		r.Want("1,000 owners and 10,000 lookups: all restarted within 5 minutes", f.restarted.Minutes(), "minutes", f.restarted <= 5*time.Minute)
		r.Want("1,000 owners and 10,000 lookups: less than 64 KiB for each client", f.memory/1024, "KiB", f.memory < 64<<10)
	case "25x-sparse":
		r.Want("5,000 owners and 50,000 lookups, a range for each owner: all restarted within 5 minutes", f.restarted.Minutes(), "minutes", f.restarted <= 5*time.Minute)
	case "group":
		r.Want("1,000 owners and 10,000 lookups, three managers: less than 10 % of a core for the leader, quiet", f.cpu().Median, "%", f.cpu().Median < 10)
	case "patient":
		r.Want("1,000 owners and 10,000 lookups, with the papers' times: less than 10 % of a core, quiet", f.cpu().Median, "%", f.cpu().Median < 10)
	}
}
