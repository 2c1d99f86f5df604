package kit

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Point is one measurement. Low and High are drawn as a bar if they differ.
type Point struct {
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

// PointOf returns a summary as a point.
func PointOf(x float64, s Summary) Point { return Point{X: x, Y: s.Median, Low: s.Low, High: s.High} }

// A Curve is points with a name, in the order of their X.
type Curve struct {
	Name   string
	Points []Point
	Dashed bool // for what was not measured here: a paper's
}

// A Plot is curves on axes, each of which may be logarithmic.
type Plot struct {
	Title, X, Y string
	LogX, LogY  bool
	Curves      []Curve
	MarkX       bool // mark the measured X, and no others
}

// The size of a plot.
const (
	plotWidth  = 16 * vg.Centimeter
	plotHeight = 10 * vg.Centimeter
)

// curve is what the plotting library wants to know.
type curve []Point

func (c curve) Len() int                { return len(c) }
func (c curve) XY(i int) (x, y float64) { return c[i].X, c[i].Y }
func (c curve) YError(i int) (below, above float64) {
	if c[i].Low == 0 && c[i].High == 0 {
		return 0, 0
	}
	return c[i].Y - c[i].Low, c[i].High - c[i].Y
}

// Write draws the plot as SVG. Equal plots give equal images.
func (p *Plot) Write(to io.Writer) error {
	drawn := Axes(p.Title, p.X, p.Y)
	if p.LogX {
		drawn.X.Scale, drawn.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if p.LogY {
		drawn.Y.Scale, drawn.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	} else {
		drawn.Y.Min = 0
	}
	var marks []float64
	for i, c := range p.Curves {
		if err := p.add(drawn, c, Paint(i)); err != nil {
			return fmt.Errorf("drawing %s: %w", c.Name, err)
		}
		for _, pt := range c.Points {
			marks = append(marks, pt.X)
		}
	}
	if p.MarkX {
		slices.Sort(marks)
		drawn.X.Tick.Marker = Ticks(slices.Compact(marks))
	}
	p.makeRoom(drawn)
	return WriteSVG(to, drawn)
}

// makeRoom leaves a part of the height to the legend.
func (p *Plot) makeRoom(drawn *plot.Plot) {
	share := min(0.5, 0.07*float64(len(p.Curves)))
	if !p.LogY {
		drawn.Y.Max += drawn.Y.Max * share
		return
	}
	drawn.Y.Max *= math.Pow(drawn.Y.Max/drawn.Y.Min, share)
}

func (p *Plot) add(drawn *plot.Plot, c Curve, paint color.Color) error {
	if p.LogX || p.LogY {
		for _, pt := range c.Points {
			if p.LogX && pt.X <= 0 || p.LogY && pt.Y <= 0 {
				return fmt.Errorf("a point at %v, %v has no place on a logarithmic axis", pt.X, pt.Y)
			}
		}
	}
	line, marks, err := plotter.NewLinePoints(curve(c.Points))
	if err != nil {
		return err
	}
	line.Color, line.Width = paint, vg.Points(1.5)
	marks.Color, marks.Shape = paint, draw.CircleGlyph{}
	if c.Dashed {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	bars, err := plotter.NewYErrorBars(curve(c.Points))
	if err != nil {
		return err
	}
	bars.Color = paint
	drawn.Add(line, marks, bars)
	drawn.Legend.Add(c.Name, line, marks)
	return nil
}

// Axes returns an empty plot of the library, for what [Plot] cannot do.
func Axes(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 2 * vg.Millimeter
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	return p
}

// Ticks marks some values, and no others.
func Ticks(values []float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, v := range values {
		ticks = append(ticks, plot.Tick{Value: v, Label: Number(v)})
	}
	return ticks
}

// WriteSVG draws a plot of the library.
func WriteSVG(to io.Writer, p *plot.Plot) error {
	c := vgsvg.New(plotWidth, plotHeight)
	const margin = 3 * vg.Millimeter
	p.Draw(draw.Crop(draw.New(c), margin, -margin, margin, -margin))
	if _, err := c.WriteTo(to); err != nil {
		return fmt.Errorf("writing a plot: %w", err)
	}
	return nil
}

// WriteFile writes a file with what write writes.
func WriteFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// Paint tells curves apart, for those who see few colours, too (Okabe and Ito's
// palette).
func Paint(i int) color.Color {
	palette := []color.Color{
		color.RGBA{0x00, 0x72, 0xb2, 0xff},
		color.RGBA{0xd5, 0x5e, 0x00, 0xff},
		color.RGBA{0x00, 0x9e, 0x73, 0xff},
		color.RGBA{0xcc, 0x79, 0xa7, 0xff},
		color.RGBA{0xe6, 0x9f, 0x00, 0xff},
		color.RGBA{0x56, 0xb4, 0xe9, 0xff},
		color.RGBA{0x00, 0x00, 0x00, 0xff},
		color.RGBA{0x99, 0x99, 0x99, 0xff},
	}
	return palette[i%len(palette)]
}
