package main

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/policylab"
)

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

// heavy is the table of figure 10.
func heavy(trials []trial) *report.Table {
	t := report.NewTable("", "policy", "servers above 40 %, at first", "at last", "over the best, at first", "at last", "keys moved, %", "in a late round, %")
	for _, x := range trials {
		t.Add(x.name, said(x.over(aboveAtFirst), 0), said(x.over(aboveAtLast), 0), said(x.over(func(r *policylab.Result) float64 { return r.First().MaxOverUnavoidable }), 2),
			said(x.over(lastOverBest), 2), said(x.over(movedPercent), 2), said(x.over(latePercent), 3))
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
