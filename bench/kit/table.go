package kit

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// A Table is numbers with names, for a terminal or for a page.
type Table struct {
	Title  string     `json:"title,omitempty"`
	Header []string   `json:"header"`
	Rows   [][]string `json:"rows"`
}

// NewTable returns an empty table.
func NewTable(title string, header ...string) *Table { return &Table{Title: title, Header: header} }

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print writes the table as plain text, and an empty line.
func (t *Table) Print(out io.Writer) error {
	var text strings.Builder
	if t.Title != "" {
		text.WriteString(t.Title + "\n")
	}
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		text.WriteString(strings.Join(row, "\t") + "\n")
	}
	text.WriteString("\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	return w.Flush()
}

// Markdown returns the table, without its title, as a page has it.
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
func Thousands(x float64) string {
	digits := fmt.Sprintf("%.0f", math.Abs(x))
	var b strings.Builder
	if x <= -0.5 {
		b.WriteByte('-')
	}
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Number writes a number with about three digits: 0.0123, 1.42, 33.8, 1,486.
func Number(x float64) string {
	if math.Abs(x) >= 999.5 {
		return Thousands(x)
	}
	return fmt.Sprintf("%.3g", x)
}

// Percent writes a share with its sign, as -12.0 %.
func Percent(share float64) string { return fmt.Sprintf("%+.1f %%", 100*share) }
