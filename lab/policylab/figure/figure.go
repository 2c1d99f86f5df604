// Package figure draws the results of policies: values over time, and a version of figure 10 of PRS, the load
// of the heavily loaded servers.
package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // draws PNG
	_ "gonum.org/v1/plot/vg/vgsvg" // draws SVG

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/policylab"
)

// A Format is an image format.
type Format string

// The formats.
const (
	PNG Format = "png"
	SVG Format = "svg"
)

// FormatOf returns the format for the ending of a file name.
func FormatOf(file string) (Format, error) {
	switch f := Format(strings.ToLower(strings.TrimPrefix(filepath.Ext(file), "."))); f {
	case PNG, SVG:
		return f, nil
	}
	return "", leasehold.Errorf("plot", leasehold.ErrInvalid, file, "want a name with the ending .png or .svg")
}

// The sizes of a panel. With 3 panels in a row each has the width of a column of a paper.
const (
	panelWidth  = 11 * vg.Centimeter
	panelHeight = 8 * vg.Centimeter
)

// Draw draws at least one result, all of the same length and with loads. The upper row compares them, the
// lower one has a panel for each. Equal results have equal images.
func Draw(to io.Writer, format Format, results []*policylab.Result, meanLoad float64) error {
	upper := []*plot.Plot{
		compared(results, "Most loaded server", "load / mean", maxOverMean),
		compared(results, "Keys moved so far", "% of all keys", keysMoved),
		compared(results, "Ranges", "ranges", ranges),
	}
	var lower []*plot.Plot
	for i, r := range results {
		lower = append(lower, heavilyLoaded(r, lineColor(i), meanLoad))
	}
	sameHeight(lower)
	columns := max(len(upper), len(lower))
	width, height := panelWidth*vg.Length(columns), 2*panelHeight
	c, err := draw.NewFormattedCanvas(width, height, string(format))
	if err == nil {
		paint(draw.New(c), upper, lower)
		_, err = c.WriteTo(to)
	}
	if err != nil {
		return fmt.Errorf("writing the plot: %w", err)
	}
	return nil
}

// paint lays out two rows of panels.
func paint(c draw.Canvas, rows ...[]*plot.Plot) {
	height := (c.Max.Y - c.Min.Y) / vg.Length(len(rows))
	for i, row := range rows {
		width := (c.Max.X - c.Min.X) / vg.Length(len(row))
		for j, p := range row {
			panel := draw.Crop(c, width*vg.Length(j), -width*vg.Length(len(row)-1-j),
				height*vg.Length(len(rows)-1-i), -height*vg.Length(i))
			p.Draw(draw.Crop(panel, vg.Millimeter*3, -vg.Millimeter*3, vg.Millimeter*3, -vg.Millimeter*3))
		}
	}
}

// lineColor returns a distinguishable color, also for the colour-blind (Okabe and Ito's palette).
func lineColor(i int) color.Color {
	palette := []color.Color{
		color.RGBA{0x00, 0x72, 0xb2, 0xff},
		color.RGBA{0xd5, 0x5e, 0x00, 0xff},
		color.RGBA{0x00, 0x9e, 0x73, 0xff},
		color.RGBA{0xcc, 0x79, 0xa7, 0xff},
		color.RGBA{0xe6, 0x9f, 0x00, 0xff},
		color.RGBA{0x56, 0xb4, 0xe9, 0xff},
	}
	return palette[i%len(palette)]
}

// A curve is a value for each period.
type curve func(period int) float64

func maxOverMean(r *policylab.Result) curve {
	return func(p int) float64 { return r.Samples[p].MaxOverMean }
}

func keysMoved(r *policylab.Result) curve {
	sums := make([]float64, len(r.Samples))
	sum := 0.0
	for i, s := range r.Samples {
		sum += s.Moved
		sums[i] = 100 * sum
	}
	return func(p int) float64 { return sums[p] }
}

func ranges(r *policylab.Result) curve {
	return func(p int) float64 { return float64(r.Samples[p].Ranges) }
}

// newPanel returns an empty plot over time.
func newPanel(title, unit string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = 2 * vg.Millimeter
	p.X.Label.Text, p.Y.Label.Text = "minutes", unit
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	return p
}

// compared returns a plot with one line for each result.
func compared(results []*policylab.Result, title, unit string, of func(*policylab.Result) curve) *plot.Plot {
	p := newPanel(title, unit)
	for i, r := range results {
		l := newLine(r, of(r), lineColor(i), 1.5)
		p.Add(l)
		p.Legend.Add(r.Policy, l)
	}
	p.Y.Min, p.Y.Max = 0, 1.4*p.Y.Max // room for the legend
	return p
}

// newLine returns a line over all periods. It omits points inside constant sections: most values are
// constant, and the files are much smaller.
func newLine(r *policylab.Result, value curve, c color.Color, width vg.Length) *plotter.Line {
	var points plotter.XYs
	last := len(r.Samples) - 1
	for i := range r.Samples {
		y := value(i)
		if i > 0 && i < last && value(i-1) == y && y == value(i+1) {
			continue
		}
		points = append(points, plotter.XY{X: float64(i) * r.Period.Minutes(), Y: y})
	}
	return &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: c, Width: width}}
}

// heavy is the multiple of the mean at which a server is drawn: in PRS, 40 % with a mean of 20 %.
const heavy = 2

// maxLines limits the servers in a panel: more lines would hide each other, and enlarge the file.
const maxLines = 60

// heavilyLoaded draws figure 10 of PRS: the load of all servers that are heavily loaded at any time, or of
// the heaviest if there are too many.
func heavilyLoaded(r *policylab.Result, c color.Color, meanLoad float64) *plot.Plot {
	limit := float32(heavy * meanLoad)
	servers := heaviest(r.Loads, limit)
	p := newPanel("", "load, %")
	p.Title.Text = fmt.Sprintf("%s: servers above %.0f %%: %d at first, %d at last", r.Policy, 100*limit,
		above(r.Loads[0], limit), above(r.Loads[len(r.Loads)-1], limit))
	if all := len(servers); all > maxLines {
		p.Title.Text += fmt.Sprintf("\n(the %d heaviest of %d)", maxLines, all)
		servers = servers[:maxLines]
	}
	p.Add(newLine(r, func(int) float64 { return 100 * meanLoad }, color.Gray{0x80}, 1))
	p.Y.Max = 100 * heavy * meanLoad
	for _, server := range servers {
		p.Add(newLine(r, func(period int) float64 { return percent(r.Loads[period], server) }, c, 0.5))
	}
	return p
}

// heaviest returns the servers that are above limit at any time, the heaviest
// first.
func heaviest(loads [][]float32, limit float32) (servers []int) {
	peaks := make([]float32, len(loads[len(loads)-1]))
	for _, busy := range loads {
		for i, b := range busy {
			peaks[i] = max(peaks[i], b)
		}
	}
	for i, peak := range peaks {
		if peak > limit {
			servers = append(servers, i)
		}
	}
	slices.SortStableFunc(servers, func(a, b int) int { return cmp.Compare(peaks[b], peaks[a]) })
	return servers
}

func above(busy []float32, limit float32) int {
	n := 0
	for _, b := range busy {
		if b > limit {
			n++
		}
	}
	return n
}

// percent returns the load of a server, 0 before it has joined.
func percent(busy []float32, server int) float64 {
	if server >= len(busy) {
		return 0
	}
	return 100 * float64(busy[server])
}

// sameHeight sets the same scale for all panels. Loads above 100 % are cut off, so that one hot key does not
// flatten the other lines.
func sameHeight(panels []*plot.Plot) {
	top := 0.0
	for _, p := range panels {
		top = max(top, p.Y.Max)
	}
	for _, p := range panels {
		p.Y.Min, p.Y.Max = 0, min(1.05*top, 100)
	}
}
