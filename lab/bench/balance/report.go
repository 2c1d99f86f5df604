package main

import (
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/policylab"
)

const about = "The balance of load over owners, and the keys that move for it. Simulated offline in rounds of 10 s: a policy receives what owners\n" +
	"would count and is judged by the true load, with the key popularity of PRS 7.3 (Zipf, alpha 0.8). Ours is `balanced`; `adaptive`\n" +
	"is the rule of the papers; `consistent` is consistent hashing with 64 points per owner. Bounded loads are represented by\n" +
	"[buraksezer/consistent](https://github.com/buraksezer/consistent), which bounds the partitions per owner (64 each, factor 1.25),\n" +
	"and by the same circle with the measured load bounded (factors 1.25 and 1.1), placed anew each round. `balanced` and `adaptive`\n" +
	"may move 9 % of all keys per minute; the others have no limit. \"Over the best\" compares with the mean or, if larger, with the\n" +
	"owner's hottest key. Numbers are medians of the seeds with lowest and highest; the same seeds give the same numbers anywhere."

func find(trials []trial, name string) trial {
	return trials[slices.IndexFunc(trials, func(t trial) bool { return t.name == name })]
}

func (t trial) over(of func(*policylab.Result) float64) report.Summary {
	return report.SummariseOf(t.seeds, of)
}

// cellText formats a summary with a number of digits.
func cellText(s report.Summary, digits int) string {
	text := func(x float64) string { return fmt.Sprintf("%.*f", digits, x) }
	if text(s.Low) == text(s.High) {
		return text(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", text(s.Median), text(s.Low), text(s.High))
}

func firstOverMean(r *policylab.Result) float64 { return r.First().MaxOverMean }
func lastOverMean(r *policylab.Result) float64  { return r.Last().MaxOverMean }
func lastOverBest(r *policylab.Result) float64  { return r.Last().MaxOverUnavoidable }

// movedPercent returns the moved keys in percent of all keys.
func movedPercent(r *policylab.Result) float64 { return movedBetween(r, 0, len(r.Samples)) }

// latePercent returns the moved keys per round of the last five minutes.
func latePercent(r *policylab.Result) float64 {
	const late = 5 * minute
	return movedBetween(r, len(r.Samples)-late, len(r.Samples)) / late
}

func movedBetween(r *policylab.Result, from, to int) float64 {
	sum := 0.0
	for _, s := range r.Samples[from:to] {
		sum += s.Moved
	}
	return 100 * sum
}

func conclude(r *report.Result, s scenario, trials []trial) {
	switch s.name {
	case zipfPart:
		r.Add(report.Section{Title: "Zipf, 250 owners", Text: "A billion keys; 12 minutes, from each policy's initial assignment.", Table: evenness(trials)})
		reportZipf(r, trials)
	case figurePart:
		r.Add(report.Section{Title: "Figure 10 of PRS", Text: figureText, Table: heavy(trials)})
		r.AddPlot(figurePart, "the load of the servers that are above 40 % at some time, over an hour, for four policies", drawHeavy(trials))
		p := overTime("Keys moved so far", "% of all keys", trials, movedSoFar)
		r.AddPlot(figurePart+"-moved", "keys moved so far, over the hour, for each policy", p.Write)
	case hotPart:
		text := fmt.Sprintf("100 owners; after %d minutes one key has %.0f %% of the load, ten times the mean. "+
			"A policy can only move all other keys away from its owner.", hotFrom/minute, 100*hotShare)
		r.Add(report.Section{Title: "A hot key", Text: text, Table: evenness(trials)})
		p := overTime("Most loaded owner", "load / best", trials, func(r *policylab.Result, i int) float64 { return r.Samples[i].MaxOverUnavoidable })
		r.AddPlot(hotPart, "the highest load over the best that is possible, over time, when a key gets hot", p.Write)
	case membersPart:
		r.Add(report.Section{Title: "Owners leave and join", Text: membersText, Table: memberTable("Keys moved, in percent", trials, movedCell)})
		r.Add(report.Section{Table: memberTable("Highest load over the mean", trials, highestCell)})
		p := overTime("Most loaded owner", "load / mean", trials, func(r *policylab.Result, i int) float64 { return r.Samples[i].MaxOverMean })
		r.AddPlot(membersPart, "the highest load over the mean, over time, as owners leave and join", p.Write)
		reportMembers(r, trials)
	}
}

// evenness returns the table of a scenario without changes of owners.
func evenness(trials []trial) *report.Table {
	t := report.NewTable("", "policy", "highest load over the mean, at first", "at last", "over the best, at last", "keys moved, %", "in a late round, %", "ranges")
	for _, x := range trials {
		t.Add(x.name, cellText(x.over(firstOverMean), 2), cellText(x.over(lastOverMean), 2), cellText(x.over(lastOverBest), 2),
			cellText(x.over(movedPercent), 2), cellText(x.over(latePercent), 3), int(x.over(func(r *policylab.Result) float64 { return float64(r.Last().Ranges) }).Median))
	}
	return t
}

func movedSoFar(r *policylab.Result, period int) float64 { return movedBetween(r, 0, period+1) }

// overTime plots a value of each period of the first seed, for each contestant.
func overTime(title, unit string, trials []trial, of func(*policylab.Result, int) float64) *report.Plot {
	p := &report.Plot{Title: title, X: "minutes", Y: unit, Bare: true}
	for _, x := range trials {
		c := report.Curve{Name: x.name}
		for i := range x.seeds[0].Samples {
			c.Points = append(c.Points, report.Point{X: float64(i) / minute, Y: of(x.seeds[0], i)})
		}
		p.Curves = append(p.Curves, c)
	}
	return p
}

const figureText = "500 owners, ten million keys, an hour. The mean load is 20 % (grey); the plot has servers above 40 % at some time. `balanced` and\n" +
	"`adaptive` start from consistent hashing. The top server has the hottest key, 4.1 times the mean. PRS reports several\n" +
	"servers significantly above 40 % at first, and significantly fewer after the hour."

// usualLoad is the mean load of owners, in PRS and here.
var usualLoad = policylab.Usual().MeanLoad

// above returns the number of owners with more than twice the mean load in a period.
func above(r *policylab.Result, period int) float64 {
	n := 0
	for _, busy := range r.Loads[period] {
		if float64(busy) > 2*usualLoad {
			n++
		}
	}
	return float64(n)
}

func aboveAtFirst(r *policylab.Result) float64 { return above(r, 0) }
func aboveAtLast(r *policylab.Result) float64  { return above(r, len(r.Loads)-1) }

func heavy(trials []trial) *report.Table {
	t := report.NewTable("", "policy", "servers above 40 %, at first", "at last", "over the best, at first", "at last", "keys moved, %", "in a late round, %")
	for _, x := range trials {
		t.Add(x.name, cellText(x.over(aboveAtFirst), 0), cellText(x.over(aboveAtLast), 0), cellText(x.over(func(r *policylab.Result) float64 { return r.First().MaxOverUnavoidable }), 2),
			cellText(x.over(lastOverBest), 2), cellText(x.over(movedPercent), 2), cellText(x.over(latePercent), 3))
	}
	return t
}

// drawHeavy draws figure 10 for four policies.
func drawHeavy(trials []trial) func(io.Writer) error {
	var panels []*plot.Plot
	for i, name := range []string{nameBalanced, nameAdaptive, nameLibrary, nameBounded} {
		panels = append(panels, heavyServers(find(trials, name).seeds[0], report.Paint(i)))
	}
	return func(to io.Writer) error { return report.WritePanels(to, panels...) }
}

// heavyServers plots the load of servers that are ever above twice the mean, truncated at
// 100 %.
func heavyServers(r *policylab.Result, paint color.Color) *plot.Plot {
	p := report.Axes(fmt.Sprintf("%s: %.0f, then %.0f above 40 %%", r.Policy, aboveAtFirst(r), aboveAtLast(r)), "minutes", "load, %")
	p.Y.Min, p.Y.Max = 0, 100
	p.Add(lineOf(r, func(int) float64 { return usualLoad }, color.Gray{0x80}))
	for server := range r.Loads[0] {
		busy := func(period int) float64 { return float64(r.Loads[period][server]) }
		for period := range r.Loads {
			if busy(period) > 2*usualLoad {
				p.Add(lineOf(r, busy, paint))
				break
			}
		}
	}
	return p
}

// lineOf returns the line of a share, in percent. Points within a constant section are omitted,
// which makes files smaller.
func lineOf(r *policylab.Result, of func(period int) float64, paint color.Color) *plotter.Line {
	var points plotter.XYs
	last := len(r.Loads) - 1
	for i := range r.Loads {
		if i > 0 && i < last && of(i-1) == of(i) && of(i) == of(i+1) {
			continue
		}
		points = append(points, plotter.XY{X: float64(i) / minute, Y: min(100, 100*of(i))})
	}
	return &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: paint, Width: vg.Points(0.6)}}
}

// The goal: at most the usual factor of bounded loads.
const mostOverMean = 1.2

func reportZipf(r *report.Result, trials []trial) {
	ours := find(trials, nameBalanced)
	even, moved := ours.over(lastOverMean).Median, ours.over(movedPercent).Median
	for _, peer := range []string{namePlain, nameLibrary, nameBounded} {
		r.Less("highest-load", even, "times the mean", peer, find(trials, peer).over(lastOverMean).Median)
	}
	for _, peer := range []string{nameAdaptive, nameBounded, nameTight} {
		r.Less("keys-moved", moved, "%", peer, find(trials, peer).over(movedPercent).Median)
	}
	r.Want(fmt.Sprintf("Zipf, 250 owners: the highest load at most %v times the mean", mostOverMean), even, "", even <= mostOverMean)
	r.Want("no move in the last five minutes", ours.over(latePercent).High, "% in a round", ours.over(latePercent).High == 0)
	r.Lose("plain consistent hashing and buraksezer/consistent move no key when loads change, and we move %v %%. "+
		"They ignore loads: their highest load is %v and %v times the mean, and ours %v.",
		moved, find(trials, namePlain).over(lastOverMean).Median, find(trials, nameLibrary).over(lastOverMean).Median, even)
}

type event struct {
	name, title string
	from        int // the period in which it happens
}

func memberEvents() []event {
	return []event{
		{"one-leaves", "1 of 250 leaves", oneGoes},
		{"one-joins", "1 joins 249", oneComes},
		{"fifty-leave", "50 of 250 leave", rackGoes},
		{"fifty-join", "50 join 200", rackBack},
	}
}

// untilNext is the number of periods until the next event.
const untilNext = 4 * minute

const membersText = "250 owners, a billion keys. One leaves and one joins; then a fifth leaves at once and as many join, like the rack of PRS 7.2. Keys moved are those of the\n" +
	"following four minutes, in percent of all keys; the fair share of one owner is 0.4 %, of fifty 20 %. The highest load over the mean is that of the first\n" +
	"round, when the load of the moved keys is not measured yet, and that after four minutes."

// moved returns the moved keys in the four minutes after the event.
func (e event) moved(r *policylab.Result) float64 { return movedBetween(r, e.from, e.from+untilNext) }

func (e event) atOnce(r *policylab.Result) float64 { return r.Samples[e.from].MaxOverMean }
func (e event) later(r *policylab.Result) float64  { return r.Samples[e.from+untilNext-1].MaxOverMean }

func memberTable(title string, trials []trial, cell func(trial, event) string) *report.Table {
	header := []string{"policy"}
	for _, e := range memberEvents() {
		header = append(header, e.title)
	}
	t := report.NewTable(title, header...)
	for _, x := range trials {
		row := []any{x.name}
		for _, e := range memberEvents() {
			row = append(row, cell(x, e))
		}
		t.Add(row...)
	}
	return t
}

func movedCell(x trial, e event) string { return cellText(x.over(e.moved), 2) }

func highestCell(x trial, e event) string {
	return fmt.Sprintf("%.2f, then %.2f", x.over(e.atOnce).Median, x.over(e.later).Median)
}

func reportMembers(r *report.Result, trials []trial) {
	ours, all := find(trials, nameBalanced), memberEvents()
	for _, e := range all[2:] {
		for _, peer := range []string{namePlain, nameBounded} {
			r.Less("moved-when-"+e.name, ours.over(e.moved).Median, "%", peer, find(trials, peer).over(e.moved).Median)
		}
	}
	for _, e := range all {
		if have, plain := ours.over(e.moved).Median, find(trials, namePlain).over(e.moved).Median; have > plain {
			r.Lose("plain consistent hashing moves %v %% of all keys when %s, and we move %v %%: "+
				"it moves only what it must, and its highest load is %v times the mean afterwards, ours is %v.",
				plain, e.title, have, find(trials, namePlain).over(e.later).Median, ours.over(e.later).Median)
		}
	}
}
