package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
)

// A Table is rows under a header, for a terminal or for a page.
type Table struct {
	Title  string     `json:"title,omitempty"`
	Header []string   `json:"header"`
	Rows   [][]string `json:"rows"`
}

// NewTable returns an empty table.
func NewTable(title string, header ...string) *Table { return &Table{Title: title, Header: header} }

// Add adds a row. Integers are written with [Thousands], other numbers with
// [Number], and a [Summary] is three cells: median, low and high.
func (t *Table) Add(cells ...any) {
	var row []string
	for _, c := range cells {
		switch c := c.(type) {
		case int:
			row = append(row, Thousands(float64(c)))
		case float64:
			row = append(row, Number(c))
		case Summary:
			row = append(row, Number(c.Median), Number(c.Low), Number(c.High))
		default:
			row = append(row, fmt.Sprint(c))
		}
	}
	t.Rows = append(t.Rows, row)
}

// Print writes the table as plain text, and an empty line.
func (t *Table) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if t.Title != "" {
		_, _ = fmt.Fprintln(w, t.Title) // Flush reports the first error
	}
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_, _ = fmt.Fprintln(w)
	return w.Flush()
}

// Markdown returns the table without its title.
func (t *Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("|")
		for i := range t.Header {
			cell := ""
			if i < len(cells) {
				cell = strings.ReplaceAll(cells[i], "|", `\|`)
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	line(t.Header)
	b.WriteString("|" + strings.Repeat("---|", len(t.Header)) + "\n")
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}

// Thousands writes a number as 51,029.
func Thousands(x float64) string { return humanize.Comma(int64(math.Round(x))) }

// Number writes a number with about three digits: 0.0123, 1.42, 33.8, 1,486.
func Number(x float64) string {
	if math.Abs(x) >= 999.5 {
		return Thousands(x)
	}
	return fmt.Sprintf("%.3g", x)
}

// Percent writes a share with its sign, as -12.0 %.
func Percent(share float64) string { return fmt.Sprintf("%+.1f %%", 100*share) }
