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

const about = "How evenly do keys lie on their owners, and how many of them move for it? A pool of owners is played offline, in rounds of 10 s; a policy sees what\n" +
	"owners would have counted, and is judged by the true load. Keys are as popular as in PRS 7.3 (Zipf, alpha 0.8). Ours is `balanced`. `adaptive` is the rule\n" +
	"of the papers, and `consistent` is plain consistent hashing with 64 points for each owner. Consistent hashing with bounded loads takes part as the library\n" +
	"[buraksezer/consistent](https://github.com/buraksezer/consistent), which bounds how many of 64 partitions for each owner one has (factor 1.25), and, since it knows nothing of loads, as\n" +
	"the same circle with the measured load bounded, by the factors 1.25 and 1.1, placed anew in each round. A budget of 9 % of all keys in a minute holds\n" +
	"for `balanced` and `adaptive`; the others know none. \"Over the best\" compares an owner's load with the mean or, if that is more, with its own hottest key,\n" +
	"which has to be somewhere. Each number is the median of the seeds, with the lowest and the highest. Nothing is timed: the same seeds give the same numbers anywhere."

func find(trials []trial, name string) trial {
	return trials[slices.IndexFunc(trials, func(t trial) bool { return t.name == name })]
}

func (t trial) over(of func(*policylab.Result) float64) report.Summary {
	return report.SummariseOf(t.seeds, of)
}

// said is a summary in a cell of a table, with so many digits.
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

// movedPercent is how many keys moved in all, in percent of them.
func movedPercent(r *policylab.Result) float64 { return movedBetween(r, 0, len(r.Samples)) }

// latePercent is how many keys moved in each round of the last five minutes.
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
		r.Add(report.Section{Title: "Zipf, 250 owners", Text: "A billion keys; 12 minutes, from each policy's own beginning.", Table: evenness(trials)})
		reportZipf(r, trials)
	case figurePart:
		r.Add(report.Section{Title: "Figure 10 of PRS", Text: figureText, Table: heavy(trials)})
		r.AddPlot(figurePart, "the load of the servers that are above 40 % at some time, over an hour, for four policies", drawHeavy(trials))
		p := overTime("Keys moved so far", "% of all keys", trials, movedSoFar)
		r.AddPlot(figurePart+"-moved", "keys moved so far, over the hour, for each policy", p.Write)
	case hotPart:
		text := fmt.Sprintf("100 owners; after %d minutes a single key costs %.0f %% of everything, which is ten times the mean, and no policy can help its owner. "+
			"What can be done is to take everything else from it.", hotFrom/minute, 100*hotShare)
		r.Add(report.Section{Title: "A key gets hot", Text: text, Table: evenness(trials)})
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

// evenness is the table of a scenario without changes of owners.
func evenness(trials []trial) *report.Table {
	t := report.NewTable("", "policy", "highest load over the mean, at first", "at last", "over the best, at last", "keys moved, %", "in a late round, %", "ranges")
	for _, x := range trials {
		t.Add(x.name, cellText(x.over(firstOverMean), 2), cellText(x.over(lastOverMean), 2), cellText(x.over(lastOverBest), 2),
			cellText(x.over(movedPercent), 2), cellText(x.over(latePercent), 3), int(x.over(func(r *policylab.Result) float64 { return float64(r.Last().Ranges) }).Median))
	}
	return t
}

func movedSoFar(r *policylab.Result, period int) float64 { return movedBetween(r, 0, period+1) }

// overTime draws a number of each period of the first seed, for each contestant.
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

const figureText = "500 owners, ten million keys, an hour. Servers are busy by 20 % in the mean (grey), and drawn are those that are above 40 % at some time. `balanced` and\n" +
	"`adaptive` begin with the assignment of consistent hashing. The one on top has the hottest key, 4.1 times the mean. PRS says that several\n" +
	"servers were significantly above 40 % at first, and significantly fewer after the hour."

// usualLoad is how busy owners are in the mean, in PRS and here.
var usualLoad = policylab.Usual().MeanLoad

// above is how many owners are more than twice as busy as the mean in a period.
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

// drawHeavy draws figure 10 for those that do something, or are the library.
func drawHeavy(trials []trial) func(io.Writer) error {
	var panels []*plot.Plot
	for i, name := range []string{nameBalanced, nameAdaptive, nameLibrary, nameBounded} {
		panels = append(panels, heavyServers(find(trials, name).seeds[0], report.Paint(i)))
	}
	return func(to io.Writer) error { return report.WritePanels(to, panels...) }
}

// heavyServers draws how busy those are that are ever above twice the mean. None is
// more than 100 % busy: what would be above is drawn there.
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

// lineOf is a share of each period, in percent. It has no points where it goes on as
// it was, which makes files smaller.
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

// What we want: as even as bounded loads promise to be with their usual factor,
// and quieter.
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
	r.Want("and nothing moves any more in the last five minutes", ours.over(latePercent).High, "% in a round", ours.over(latePercent).High == 0)
	r.Lose("plain consistent hashing and buraksezer/consistent move no key when loads change, and we move %v %%. "+
		"They do nothing about loads: their highest is %v and %v times the mean, and ours %v.",
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

// untilNext is how many periods there are until the next event.
const untilNext = 4 * minute

const membersText = "250 owners, a billion keys. One leaves and one joins; then a fifth leaves at once, and as many join, as the rack of PRS 7.2 does. Keys moved are those of the\n" +
	"four minutes that follow, in percent of all keys; one owner's fair share is 0.4 %, and that of fifty 20 %. The highest load over the mean is that of the first\n" +
	"round, when nobody knows yet what the keys cost that came, and that after four minutes."

// moved is how many keys move in the four minutes that follow.
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
				"it moves none that it need not, and lets the highest load be %v times the mean afterwards, ours is %v.",
				plain, e.title, have, find(trials, namePlain).over(e.later).Median, ours.over(e.later).Median)
		}
	}
}
