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
	Bare        bool // lines without marks, for those of many points
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
	share := min(0.5, 0.08*float64(len(p.Curves)))
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
	if p.Bare {
		drawn.Add(line)
		drawn.Legend.Add(c.Name, line)
		return nil
	}
	drawn.Add(line, marks, bars)
	drawn.Legend.Add(c.Name, line, marks)
	return nil
}

// Axes returns an empty plot of the library, for what [Plot] cannot do.
func Axes(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 2 * vg.Millimeter
	p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, roundTicks{}
	// At the left, names begin beside their lines and end where they like. At the right
	// they would have to end there, and fonts differ from reader to reader.
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	return p
}

// roundTicks marks some five round numbers: multiples of 1, 2 or 5 times a power of
// ten.
type roundTicks struct{}

// Ticks returns those between two values.
func (roundTicks) Ticks(low, high float64) []plot.Tick {
	const most = 6
	if !(high > low) { // so written, NaN is none either
		return []plot.Tick{{Value: low, Label: Number(low)}}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/most)))
	for _, factor := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if (high-low)/step > most {
			step *= factor
		}
	}
	var ticks []plot.Tick
	for n := math.Ceil(low / step); n*step <= high; n++ {
		ticks = append(ticks, plot.Tick{Value: n * step, Label: Number(n * step)})
	}
	return ticks
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
func WriteSVG(to io.Writer, p *plot.Plot) error { return WritePanels(to, []*plot.Plot{p}) }

// WritePanels draws plots of the library in rows of two, or one alone.
func WritePanels(to io.Writer, panels []*plot.Plot) error {
	columns := min(2, len(panels))
	rows := (len(panels) + 1) / 2
	// Panels are smaller than a plot: they are looked at together.
	width, height := plotWidth, plotHeight
	if columns > 1 {
		width, height = 0.7*width, 0.7*height
	}
	c := vgsvg.New(width*vg.Length(columns), height*vg.Length(rows))
	const margin = 3 * vg.Millimeter
	for i, p := range panels {
		if columns > 1 {
			p.Title.TextStyle.Font.Size *= 0.8
		}
		x, y := vg.Length(i%columns), vg.Length(i/columns)
		panel := draw.Crop(draw.New(c), width*x, -width*(vg.Length(columns)-1-x), height*(vg.Length(rows)-1-y), -height*y)
		p.Draw(draw.Crop(panel, margin, -margin, margin, -margin))
	}
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
