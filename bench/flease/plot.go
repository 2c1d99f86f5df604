package main

import (
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a plot.
const (
	plotWidth  = 16 * vg.Centimeter
	plotHeight = 9 * vg.Centimeter
)

// drawAll draws what the report has numbers for, into files under dir.
func drawAll(dir string, r *report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range []struct {
		file  string
		drawn bool
		plot  func(*report) (*plot.Plot, error)
	}{
		{"figure-3.svg", len(r.Batches) > 0, batchPlot},
		{"figure-4.svg", len(r.Disk) > 0, diskPlot},
		{"figure-5.svg", len(r.Groups) > 0, groupPlot},
	} {
		if !f.drawn {
			continue
		}
		p, err := f.plot(r)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", f.file, err)
		}
		if err := drawFile(filepath.Join(dir, f.file), p); err != nil {
			return err
		}
	}
	return nil
}

func drawFile(name string, p *plot.Plot) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := drawSVG(file, p); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// drawSVG draws a plot. Equal plots give equal images.
func drawSVG(to io.Writer, p *plot.Plot) error {
	c := vgsvg.New(plotWidth, plotHeight)
	canvas := draw.New(c)
	const margin = 3 * vg.Millimeter
	p.Draw(draw.Crop(canvas, margin, -margin, margin, -margin))
	if _, err := c.WriteTo(to); err != nil {
		return fmt.Errorf("writing a plot: %w", err)
	}
	return nil
}

// A curve is points with the slowest and the fastest turn around each.
type curve []point

func (c curve) Len() int { return len(c) }

func (c curve) XY(i int) (x, y float64) { return float64(c[i].Size), c[i].Rate.Median }

func (c curve) YError(i int) (below, above float64) {
	return c[i].Rate.Median - c[i].Rate.Low, c[i].Rate.High - c[i].Rate.Median
}

// addCurve draws a line through the points, with bars from the slowest turn to
// the fastest.
func addCurve(p *plot.Plot, name string, c curve, paint color.Color) error {
	line, marks, err := plotter.NewLinePoints(c)
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(c)
	if err != nil {
		return err
	}
	line.Color, line.Width = paint, vg.Points(1.5)
	marks.Color, marks.Shape = paint, draw.CircleGlyph{}
	bars.Color = paint
	p.Add(line, marks, bars)
	p.Legend.Add(name, line, marks)
	return nil
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 2 * vg.Millimeter
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	return p
}

// batchPlot is figure 3. Both axes are logarithmic: the contestants are orders of
// magnitude apart.
func batchPlot(r *report) (*plot.Plot, error) {
	p := newPlot("Leases per second, by size of a batch", "leases per batch and process", "leases per second")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = sizeTicks(batchSizes()), plot.LogTicks{Prec: -1}
	var names []string
	curves := make(map[string]curve)
	for _, pt := range r.Batches {
		if len(curves[pt.Name]) == 0 {
			names = append(names, pt.Name)
		}
		curves[pt.Name] = append(curves[pt.Name], pt)
	}
	for i, name := range names {
		if err := addCurve(p, name, curves[name], paint(i)); err != nil {
			return nil, err
		}
	}
	p.Y.Max *= 30 // room for the legend
	return p, nil
}

// diskPlot is figure 4: what is left of each one's rate.
func diskPlot(r *report) (*plot.Plot, error) {
	p := newPlot("Leases per second while another process keeps the disk busy", "", "% of those with an idle disk")
	var left plotter.Values
	var names []string
	for _, s := range r.Disk {
		left = append(left, 100*(1+s.Change))
		names = append(names, s.Name)
	}
	bars, err := plotter.NewBarChart(left, vg.Points(40))
	if err != nil {
		return nil, err
	}
	bars.Color, bars.LineStyle.Width = paint(0), 0
	p.Add(bars)
	p.NominalX(names...)
	p.Y.Min, p.Y.Max = 0, max(110, p.Y.Max)
	return p, nil
}

// groupPlot is figure 5, by process as in the paper.
func groupPlot(r *report) (*plot.Plot, error) {
	p := newPlot("Leases per second and process, by size of a group, 15 processes", "members of a group", "leases per second and process")
	p.X.Tick.Marker = sizeTicks(groupSizes())
	processes := float64(groupSizes()[len(groupSizes())-1])
	var c curve
	for _, pt := range r.Groups {
		each := summary{Median: pt.Rate.Median / processes, Low: pt.Rate.Low / processes, High: pt.Rate.High / processes}
		c = append(c, point{pt.Name, pt.Size, each})
	}
	if err := addCurve(p, nameFlease, c, paint(0)); err != nil {
		return nil, err
	}
	p.Y.Min = 0
	return p, nil
}

// sizeTicks marks the sizes that were measured.
func sizeTicks(sizes []int) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, s := range sizes {
		ticks = append(ticks, plot.Tick{Value: float64(s), Label: thousands(float64(s))})
	}
	return ticks
}

// paint tells contestants apart, for those who see few colours, too (Okabe and
// Ito's palette).
func paint(i int) color.Color {
	palette := []color.Color{
		color.RGBA{0x00, 0x72, 0xb2, 0xff},
		color.RGBA{0xd5, 0x5e, 0x00, 0xff},
		color.RGBA{0x00, 0x9e, 0x73, 0xff},
		color.RGBA{0xcc, 0x79, 0xa7, 0xff},
	}
	return palette[i%len(palette)]
}
