package report

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Point is one measurement. Low and High are drawn as an error bar if they differ.
type Point struct {
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

// PointOf returns a summary as a point.
func PointOf(x float64, s Summary) Point { return Point{X: x, Y: s.Median, Low: s.Low, High: s.High} }

// A Curve is named points, sorted by X.
type Curve struct {
	Name   string
	Points []Point
}

// A Plot is curves on linear or logarithmic axes.
type Plot struct {
	Title, X, Y string
	LogX, LogY  bool
	Curves      []Curve
	MarkX       bool // ticks only at measured X
	Bare        bool // lines without markers, for many points
}

// The size of a plot.
const (
	plotWidth  = 16 * vg.Centimeter
	plotHeight = 10 * vg.Centimeter
)

// points implements the plotting library's interfaces.
type points []Point

func (p points) Len() int                { return len(p) }
func (p points) XY(i int) (x, y float64) { return p[i].X, p[i].Y }
func (p points) YError(i int) (below, above float64) {
	if p[i].Low == 0 && p[i].High == 0 {
		return 0, 0
	}
	return p[i].Y - p[i].Low, p[i].High - p[i].Y
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
		drawn.X.Tick.Marker = ticks(slices.Compact(marks))
	}
	p.makeRoom(drawn)
	return WritePanels(to, drawn)
}

// makeRoom reserves a part of the height for the legend.
func (p *Plot) makeRoom(drawn *plot.Plot) {
	share := min(0.5, 0.08*float64(len(p.Curves)))
	if !p.LogY {
		drawn.Y.Max += drawn.Y.Max * share
		return
	}
	drawn.Y.Max *= math.Pow(drawn.Y.Max/drawn.Y.Min, share)
}

func (p *Plot) add(drawn *plot.Plot, c Curve, paint color.Color) error {
	for _, pt := range c.Points {
		if p.LogX && pt.X <= 0 || p.LogY && pt.Y <= 0 {
			return fmt.Errorf("a point at %v, %v cannot be drawn on a logarithmic axis", pt.X, pt.Y)
		}
	}
	line, marks, err := plotter.NewLinePoints(points(c.Points))
	if err != nil {
		return err
	}
	line.Color, line.Width = paint, vg.Points(1.5)
	if p.Bare {
		drawn.Add(line)
		drawn.Legend.Add(c.Name, line)
		return nil
	}
	marks.Color, marks.Shape = paint, draw.CircleGlyph{}
	bars, err := plotter.NewYErrorBars(points(c.Points))
	if err != nil {
		return err
	}
	bars.Color = paint
	drawn.Add(line, marks, bars)
	drawn.Legend.Add(c.Name, line, marks)
	return nil
}

// Axes returns an empty plot of the library, for plots that [Plot] does not support.
func Axes(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 2 * vg.Millimeter
	// The legend is at the left, because the width of fonts differs between viewers.
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	return p
}

// ticks returns ticks at the given values only.
func ticks(values []float64) (marks plot.ConstantTicks) {
	for _, v := range values {
		marks = append(marks, plot.Tick{Value: v, Label: Number(v)})
	}
	return marks
}

// WritePanels draws plots of the library as SVG, in rows of two, or one alone.
func WritePanels(to io.Writer, panels ...*plot.Plot) error {
	tiles := draw.Tiles{Cols: min(2, len(panels)), Rows: (len(panels) + 1) / 2, PadX: 6 * vg.Millimeter, PadY: 6 * vg.Millimeter}
	width, height := plotWidth, plotHeight
	if tiles.Cols > 1 { // smaller panels
		width, height = 0.7*width*vg.Length(tiles.Cols), 0.7*height*vg.Length(tiles.Rows)
	}
	c := vgsvg.New(width, height)
	const margin = 3 * vg.Millimeter
	canvas := draw.Crop(draw.New(c), margin, -margin, margin, -margin)
	for i, p := range panels {
		if tiles.Cols > 1 {
			p.Title.TextStyle.Font.Size *= 0.8
		}
		p.Draw(tiles.At(canvas, i%tiles.Cols, i/tiles.Cols))
	}
	if _, err := c.WriteTo(to); err != nil {
		return fmt.Errorf("writing a plot: %w", err)
	}
	return nil
}

// Paint returns the colour of a curve, from the palette of Okabe and Ito, which most
// colour-blind readers can distinguish.
func Paint(i int) color.Color {
	palette := []uint32{0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000, 0x999999}
	c := palette[i%len(palette)]
	return color.RGBA{R: byte(c >> 16), G: byte(c >> 8), B: byte(c), A: 0xff}
}
