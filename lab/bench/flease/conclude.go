package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// findings are the measurements of a run. Parts that did not run are empty.
type findings struct {
	Contest  []point
	Batches  []point
	Disk     []strain
	Written  Written // by the process that kept the disk busy
	Groups   []point
	Versions []string // of the lock services, and the file system of their data
}

// The parts of a run, for -only.
const (
	partContest = "contest"
	partBatches = "batches"
	partDisk    = "disk"
	partGroups  = "groups"
)

// The maxima in the paper's text (section IV-A), over all machines, on a cluster of
// 2010. The paper has no numbers for its figures.
const (
	paperFlease    = 51_029 // 30 machines, 10,000 leases per batch
	paperMachines  = 30
	paperZooKeeper = 7_336 // three servers, 30 machines as clients, no synchronous disk writes
)

// The goals.
const (
	leastRate  = 200_000 // leases per second, in batches of 10,000
	leastRatio = 20      // times the fastest lock service
	leastFlat  = 0.75    // the slowest size of a batch, of the fastest
	mostChange = 0.10    // with a busy disk
	soughtRate = 500_000 // stated in the goal, not checked
)

// conclude adds tables, plots, headlines, goals and losses to the result.
func (f *findings) conclude(r *report.Run) {
	f.judge(r.Result)
	r.Versions = append(r.Versions, f.Versions...)
	for _, t := range []*report.Table{f.contestTable(), f.batchTable(), f.diskTable(), f.groupTable()} {
		if len(t.Rows) > 0 {
			r.Add(report.Section{Table: t})
		}
	}
	f.addFigures(r)
	flease, ok := f.rate(nameFlease)
	if !ok {
		return
	}
	for _, p := range f.Contest {
		if p.Name != nameFlease {
			r.More("acquire", flease.Median, "leases/s", p.Name, p.Rate.Median)
		}
	}
	r.More("acquire", flease.Median, "leases/s", "the paper's, on 30 machines", paperFlease)
	r.Lose("to datagrams alone: a lease is looked up, compared and stored at each of the three, a datagram is only carried. " +
		"[flease.md](flease.md#what-we-lose-and-why) has the advantages of lock services.")
}

func (f *findings) rate(name string) (locks.Rate, bool) {
	for _, p := range f.Contest {
		if p.Name == name {
			return p.Rate, p.Rate.Median > 0
		}
	}
	return locks.Rate{}, false
}

func (f *findings) judge(r *report.Result) {
	want := func(have string, met bool, format string, args ...any) {
		r.Goals = append(r.Goals, report.Goal{Want: "flease: " + fmt.Sprintf(format, args...), Have: have, Met: met})
	}
	if flease, ok := f.rate(nameFlease); ok {
		want(report.Thousands(flease.Median), flease.Median >= leastRate,
			"at least %s leases/s (we aim at %s)", report.Thousands(leastRate), report.Thousands(soughtRate))
		var best point
		for _, p := range f.Contest {
			isService := strings.HasPrefix(p.Name, nameEtcd) || strings.HasPrefix(p.Name, nameZooKeeper)
			if isService && p.Rate.Median > best.Rate.Median {
				best = p
			}
		}
		if ratio := flease.Median / best.Rate.Median; best.Name != "" {
			want(fmt.Sprintf("%.1f", ratio), ratio >= leastRatio, "at least %d times the fastest lock service (%s)", leastRatio, best.Name)
		}
	}
	var rates []float64
	for _, p := range f.Batches {
		if p.Name == nameFlease {
			rates = append(rates, p.Rate.Median)
		}
	}
	if s := report.Summarise(rates); s.High > 0 {
		want(fmt.Sprintf("%.2f", s.Low/s.High), s.Low/s.High >= leastFlat, "the slowest size of batches at least %.2f of the fastest", leastFlat)
	}
	for _, s := range f.Disk {
		if s.Name == nameFlease {
			want(report.Percent(s.Change), s.Change > -mostChange, "less than %.0f %% slower with a busy disk", 100*mostChange)
		}
	}
}

func (f *findings) contestTable() *report.Table {
	t := report.NewTable("Acquisitions per second, 3 processes on one computer, batches of 10,000",
		"", "leases/s", "slowest turn", "fastest", "CPU us per lease", "flease is faster by", "an acquisition is")
	flease, _ := f.rate(nameFlease)
	for _, p := range f.Contest {
		times := ""
		if p.Rate.Median > 0 && p.Name != nameFlease {
			times = report.Number(flease.Median / p.Rate.Median)
		}
		t.Add(p.Name, p.Rate.Summary, p.Rate.Effort, times, acquisition(p.Name))
	}
	if len(t.Rows) > 0 {
		t.Add("paper's flease", paperFlease, "", "", "", "", fmt.Sprintf("on %d machines together, groups of 3", paperMachines))
		t.Add("paper's ZooKeeper", paperZooKeeper, "", "", "", "", "the most that 3 servers did, no synchronous writes")
	}
	return t
}

func (f *findings) batchTable() *report.Table {
	t := report.NewTable("Figure 3: leases per second by size of a batch", "batch")
	for _, c := range curves(f.Batches, 1) {
		t.Header = append(t.Header, c.Name)
	}
	for _, size := range batchSizes() {
		row := []any{size}
		for _, p := range f.Batches {
			if p.Size == size {
				row = append(row, p.Rate.Median)
			}
		}
		if len(row) > 1 {
			t.Add(row...)
		}
	}
	return t
}

func (f *findings) diskTable() *report.Table {
	t := report.NewTable("Figure 4: leases per second while another process keeps the disk busy", "", "idle disk", "busy disk", "change")
	for _, s := range f.Disk {
		t.Add(s.Name, s.Idle.Median, s.Busy.Median, report.Percent(s.Change))
	}
	if seconds := f.Written.Took.Seconds(); seconds > 0 {
		t.Add("(the writer)", "", fmt.Sprintf("%.0f MB/s, %.0f fsyncs/s", float64(f.Written.Bytes)/1e6/seconds, float64(f.Written.Syncs)/seconds),
			fmt.Sprintf("%.2f CPUs", f.Written.CPU.Seconds()/seconds))
	}
	return t
}

func (f *findings) groupTable() *report.Table {
	t := report.NewTable("Figure 5: leases per second by size of a group, 15 processes, batches of 10,000",
		"group", "per process", "all together", "slowest turn", "fastest", "CPU us per lease")
	for _, p := range f.Groups {
		t.Add(p.Size, p.Rate.Median/processes, p.Rate.Summary, p.Rate.Effort)
	}
	return t
}

// curves returns a curve for each contestant, with the slowest and the fastest turn as
// the error bar of each point. All rates are divided by a number.
func curves(points []point, by float64) (all []report.Curve) {
	for _, p := range points {
		i := slices.IndexFunc(all, func(c report.Curve) bool { return c.Name == p.Name })
		if i < 0 {
			i, all = len(all), append(all, report.Curve{Name: p.Name})
		}
		all[i].Points = append(all[i].Points, report.Point{
			X: float64(p.Size), Y: p.Rate.Median / by, Low: p.Rate.Low / by, High: p.Rate.High / by,
		})
	}
	return all
}

// addFigures adds the plots of the parts that ran.
func (f *findings) addFigures(r *report.Run) {
	if len(f.Batches) > 0 { // logarithmic: the contestants are orders of magnitude apart
		batches := report.Plot{
			Title: "Leases per second, by size of a batch", X: "leases per batch and process", Y: "leases per second",
			LogX: true, LogY: true, MarkX: true, Curves: curves(f.Batches, 1),
		}
		r.AddPlot("figure-3", "figure 3: leases per second by size of a batch", batches.Write)
	}
	if len(f.Disk) > 0 {
		r.AddPlot("figure-4", "figure 4: leases per second with a busy disk, in percent of those with an idle disk", f.drawDisk)
	}
	if len(f.Groups) > 0 {
		groups := report.Plot{
			Title: "Leases per second and process, by size of a group, 15 processes", X: "members of a group", Y: "leases per second and process",
			MarkX: true, Curves: curves(f.Groups, processes),
		}
		r.AddPlot("figure-5", "figure 5: leases per second and process by size of a group", groups.Write)
	}
}

// drawDisk draws figure 4: each rate with a busy disk, in percent of that with an idle disk.
func (f *findings) drawDisk(to io.Writer) error {
	p := report.Axes("Leases per second while another process keeps the disk busy", "", "% of those with an idle disk")
	var left plotter.Values
	var names []string
	for _, s := range f.Disk {
		left, names = append(left, 100*(1+s.Change)), append(names, s.Name)
	}
	bars, err := plotter.NewBarChart(left, vg.Points(40))
	if err != nil {
		return err
	}
	bars.Color, bars.LineStyle.Width = report.Paint(0), 0
	p.Add(bars)
	p.NominalX(names...)
	p.Y.Min, p.Y.Max = 0, max(110, p.Y.Max)
	return report.WritePanels(to, p)
}
