package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// drawAll draws what the report has numbers for, into files under dir.
func drawAll(dir string, r *report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pictures for everybody
		return err
	}
	for _, f := range []struct {
		file  string
		drawn bool
		draw  func(*report, io.Writer) error
	}{
		{"figure-3.svg", len(r.Batches) > 0, batchPlot},
		{"figure-4.svg", len(r.Disk) > 0, diskPlot},
		{"figure-5.svg", len(r.Groups) > 0, groupPlot},
	} {
		if !f.drawn {
			continue
		}
		if err := kit.WriteFile(filepath.Join(dir, f.file), func(to io.Writer) error { return f.draw(r, to) }); err != nil {
			return fmt.Errorf("drawing %s: %w", f.file, err)
		}
	}
	return nil
}

// curveOf is points with the slowest and the fastest turn around each, each divided
// by so much.
func curveOf(name string, points []point, by float64) kit.Curve {
	c := kit.Curve{Name: name}
	for _, p := range points {
		c.Points = append(c.Points, kit.Point{
			X: float64(p.Size), Y: p.Rate.Median / by, Low: p.Rate.Low / by, High: p.Rate.High / by,
		})
	}
	return c
}

// batchPlot is figure 3. Both axes are logarithmic: the contestants are orders of
// magnitude apart.
func batchPlot(r *report, to io.Writer) error {
	p := kit.Plot{
		Title: "Leases per second, by size of a batch", X: "leases per batch and process", Y: "leases per second",
		LogX: true, LogY: true, MarkX: true,
	}
	var names []string
	points := make(map[string][]point)
	for _, pt := range r.Batches {
		if len(points[pt.Name]) == 0 {
			names = append(names, pt.Name)
		}
		points[pt.Name] = append(points[pt.Name], pt)
	}
	for _, name := range names {
		p.Curves = append(p.Curves, curveOf(name, points[name], 1))
	}
	return p.Write(to)
}

// diskPlot is figure 4: what is left of each one's rate.
func diskPlot(r *report, to io.Writer) error {
	p := kit.Axes("Leases per second while another process keeps the disk busy", "", "% of those with an idle disk")
	var left plotter.Values
	var names []string
	for _, s := range r.Disk {
		left = append(left, 100*(1+s.Change))
		names = append(names, s.Name)
	}
	bars, err := plotter.NewBarChart(left, vg.Points(40))
	if err != nil {
		return err
	}
	bars.Color, bars.LineStyle.Width = kit.Paint(0), 0
	p.Add(bars)
	p.NominalX(names...)
	p.Y.Min, p.Y.Max = 0, max(110, p.Y.Max)
	return kit.WriteSVG(to, p)
}

// groupPlot is figure 5, by process as in the paper.
func groupPlot(r *report, to io.Writer) error {
	p := kit.Plot{
		Title: "Leases per second and process, by size of a group, 15 processes", X: "members of a group", Y: "leases per second and process",
		MarkX: true,
	}
	processes := float64(groupSizes()[len(groupSizes())-1])
	p.Curves = append(p.Curves, curveOf(nameFlease, r.Groups, processes))
	return p.Write(to)
}
