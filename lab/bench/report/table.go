package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/leasehold-dev/leasehold/server/console"
)

// A Table is rows under a header, for a terminal or a page.
type Table struct {
	Title  string     `json:"title,omitempty"`
	Header []string   `json:"header"`
	Rows   [][]string `json:"rows"`
}

// NewTable returns an empty table.
func NewTable(title string, header ...string) *Table { return &Table{Title: title, Header: header} }

// Add adds a row. Integers are formatted with [Thousands], other numbers with [Number];
// a [Summary] is three cells: median, low and high.
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
	for len(row) < len(t.Header) {
		row = append(row, "")
	}
	t.Rows = append(t.Rows, row)
}

// Print writes the table as plain text, followed by an empty line.
func (t *Table) Print(out io.Writer) error {
	columns := make([]console.Column, len(t.Header))
	for i, title := range t.Header {
		columns[i] = console.Left(title)
	}
	title := t.Title
	if title != "" {
		title = console.Heading(title) + "\n"
	}
	_, err := fmt.Fprintf(console.New(out), "%s%s\n", title, console.Table(columns, t.Rows))
	return err
}

// Markdown returns the table without its title.
func (t *Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		for _, cell := range cells {
			b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	line(t.Header)
	b.WriteString("|" + strings.Repeat("---|", len(t.Header)) + "\n")
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}

// Thousands formats a number as 51,029.
func Thousands(x float64) string { return humanize.Comma(int64(math.Round(x))) }

// Number formats a number with about three digits: 0.0123, 1.42, 33.8, 1,486.
func Number(x float64) string {
	if math.Abs(x) >= 999.5 {
		return Thousands(x)
	}
	return fmt.Sprintf("%.3g", x)
}
