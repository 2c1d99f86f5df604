package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
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
	t.Rows = append(t.Rows, row)
}

// Print writes the table as plain text, followed by an empty line.
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

// Thousands formats a number as 51,029.
func Thousands(x float64) string { return humanize.Comma(int64(math.Round(x))) }

// Number formats a number with about three digits: 0.0123, 1.42, 33.8, 1,486.
func Number(x float64) string {
	if math.Abs(x) >= 999.5 {
		return Thousands(x)
	}
	return fmt.Sprintf("%.3g", x)
}

// Percent formats a share with its sign, as -12.0 %.
func Percent(share float64) string { return fmt.Sprintf("%+.1f %%", 100*share) }

const pageFile = "BENCHMARKS.md"

// WritePage writes the page from all stored results.
func WritePage(docs string) error {
	all, err := loadResults(docs)
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(docs, pageFile), func(w io.Writer) error {
		_, err := io.WriteString(w, page(all))
		return err
	})
}

const pageIntro = `# Benchmarks

<!-- Written by "make bench" from docs/benchmarks/*.json. Change the benchmarks in lab/bench, not this page. -->

Each number was printed by the command beside it, in one run with what it is compared with. Contestants take turns, and medians are compared; low and
high are those of the turns. Do not compare numbers of different runs: the speed of the host varies by tens of percent.

    make bench        # all benchmarks, and this page; 45 minutes on two cores at most
    make bench-quick  # the headlines, in minutes, as a table and as JSON lines

"Times better" is the peer's cost over ours, or our rate over the peer's; below 1 the peer is better. Some peers are lower bounds that do less: an index read,
a clock reading, bare gRPC, datagrams alone. The last section has [what we lose, and why](#what-we-lose-and-why), and missed goals.

`

func page(all []*Result) string {
	slices.SortFunc(all, func(a, b *Result) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Benchmark, b.Benchmark))
	})
	var b strings.Builder
	b.WriteString(pageIntro)
	writeSummary(&b, all)
	for _, r := range all {
		writeResult(&b, r)
	}
	writeLosses(&b, all)
	return b.String()
}

func writeSummary(b *strings.Builder, all []*Result) {
	t := NewTable("", "question", "what", "ours", "unit", "peer", "peer's", "times better")
	met, goals := 0, 0
	for _, r := range all {
		for _, h := range r.Headlines {
			name := strings.TrimPrefix(h.Name, r.Benchmark+".")
			t.Add(link(r), name, h.Value, h.Unit, h.Peer, h.PeerValue, h.Ratio)
		}
		goals += len(r.Goals)
		met += len(r.Goals) - r.Missed()
	}
	if len(t.Rows) > 0 {
		fmt.Fprintf(b, "## Headlines\n\n%s\n%d of %d goals are met.\n\n", t.Markdown(), met, goals)
	}
	for _, r := range all {
		if r.Failed != nil {
			fmt.Fprintf(b, "**Failed**: %s, in its last run.\n\n", link(r))
		}
	}
}

func link(r *Result) string { return fmt.Sprintf("[%s](#%s)", r.Benchmark, anchor(heading(r))) }

func heading(r *Result) string { return fmt.Sprintf("%d. %s", r.Number, r.Title) }

// anchor returns the anchor of a heading, as Markdown renderers derive it: lower case, blanks as
// hyphens, no punctuation.
func anchor(heading string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c > 127:
			return c
		}
		return -1
	}, strings.ToLower(heading))
}

func writeResult(b *strings.Builder, r *Result) {
	fmt.Fprintf(b, "## %s\n\n", heading(r))
	if f := r.Failed; f != nil {
		fmt.Fprintf(b, "**Failed** on %s: %s.", f.Date, strings.TrimSuffix(f.Why, "."))
		if r.Command == "" {
			b.WriteString(" There is no earlier result.\n\n")
			return
		}
		b.WriteString(" This is the earlier result.\n\n")
	}
	fmt.Fprintf(b, "%s\n\n    %s\n\n", strings.TrimSpace(r.About), r.Command)
	for _, s := range r.Sections {
		writeSection(b, s)
	}
	if len(r.Goals) > 0 {
		fmt.Fprintf(b, "%s\n", r.GoalTable().Markdown())
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(b, "**Skipped** %s.\n\n", strings.TrimSuffix(s, "."))
	}
	fmt.Fprintf(b, "Measured on %s, in %s s on: %s.", r.Date, Number(r.Seconds), r.Machine)
	if len(r.Versions) > 0 {
		fmt.Fprintf(b, " With %s.", strings.Join(r.Versions, ", "))
	}
	b.WriteString("\n\n")
}

func writeSection(b *strings.Builder, s Section) {
	if s.Title != "" {
		fmt.Fprintf(b, "### %s\n\n", s.Title)
	}
	if s.Text != "" {
		fmt.Fprintf(b, "%s\n\n", strings.TrimSpace(s.Text))
	}
	if s.Plot != "" {
		fmt.Fprintf(b, "![%s](%s)\n\n", s.Shows, s.Plot)
	}
	if s.Table == nil {
		return
	}
	if s.Table.Title != "" {
		fmt.Fprintf(b, "%s:\n\n", s.Table.Title)
	}
	fmt.Fprintf(b, "%s\n", s.Table.Markdown())
}

func writeLosses(b *strings.Builder, all []*Result) {
	b.WriteString("## What we lose, and why\n\n")
	for _, r := range all {
		for _, l := range r.Losses {
			fmt.Fprintf(b, "- %s: %s\n", link(r), strings.TrimSpace(l))
		}
		for _, g := range r.Goals {
			if !g.Met {
				fmt.Fprintf(b, "- %s, missed goal: %s; it is %s.\n", link(r), g.Want, g.Have)
			}
		}
	}
}
