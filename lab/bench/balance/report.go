package main

import (
	"fmt"
	"slices"

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

// find returns the trial of a contestant.
func find(trials []trial, name string) trial {
	return trials[slices.IndexFunc(trials, func(t trial) bool { return t.name == name })]
}

// over sums a trial up: a number of each seed.
func (t trial) over(of func(*policylab.Result) float64) report.Summary {
	return report.SummariseOf(t.seeds, of)
}

// said is a summary in a cell of a table, with so many digits.
func said(s report.Summary, digits int) string {
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

// conclude adds what a scenario showed.
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
		r.Add(report.Section{Title: "Owners leave and join", Text: membersText, Table: comings("Keys moved, in percent", trials, movedCell)})
		r.Add(report.Section{Table: comings("Highest load over the mean", trials, highestCell)})
		p := overTime("Most loaded owner", "load / mean", trials, func(r *policylab.Result, i int) float64 { return r.Samples[i].MaxOverMean })
		r.AddPlot(membersPart, "the highest load over the mean, over time, as owners leave and join", p.Write)
		reportMembers(r, trials)
	}
}

// evenness is the table of a scenario without changes of owners.
func evenness(trials []trial) *report.Table {
	t := report.NewTable("", "policy", "highest load over the mean, at first", "at last", "over the best, at last", "keys moved, %", "in a late round, %", "ranges")
	for _, x := range trials {
		t.Add(x.name, said(x.over(firstOverMean), 2), said(x.over(lastOverMean), 2), said(x.over(lastOverBest), 2),
			said(x.over(movedPercent), 2), said(x.over(latePercent), 3), int(x.over(func(r *policylab.Result) float64 { return float64(r.Last().Ranges) }).Median))
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
