package console

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// A Column of a table.
type Column struct {
	Title string
	Right bool // right-aligned
}

// Left is a column of text.
func Left(title string) Column { return Column{Title: title} }

// Number is a right-aligned column of numbers.
func Number(title string) Column { return Column{title, true} }

// columnGap is the space between two columns.
const columnGap = 2

// Table formats rows in columns with titles. Cells may be coloured.
func Table(columns []Column, rows [][]string) string {
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = Heading(c.Title)
	}
	style := func(_, column int) lipgloss.Style {
		s := lipgloss.NewStyle()
		if columns[column].Right {
			s = s.Align(lipgloss.Right)
		}
		if column < len(columns)-1 {
			s = s.PaddingRight(columnGap)
		}
		return s
	}
	text := table.New().Headers(titles...).Rows(rows...).StyleFunc(style).Wrap(false).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).BorderHeader(false).
		String()
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}

// Rows converts items to rows.
func Rows[T any](items []T, row func(T) []string) [][]string {
	rows := make([][]string, len(items))
	for i, item := range items {
		rows[i] = row(item)
	}
	return rows
}

// An Entry is a name and a value, or only a name.
type Entry [2]string

// If is an entry under a condition; otherwise it is empty, and Facts omits it.
func If(condition bool, name, value string) Entry {
	if !condition {
		return Entry{}
	}
	return Entry{name, value}
}

// Facts formats entries, one per line.
func Facts(entries []Entry) string {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e == Entry{} })
	width := 0
	for _, e := range entries {
		width = max(width, len(e[0]))
	}
	var out strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&out, "%-*s  %s\n", width, e[0], e[1])
	}
	return out.String()
}

const (
	gridIndent = 2
	gridGap    = 3 // between columns
)

// Grid formats entries in as many columns as fit into width, sorted downwards like ls: names are
// left-aligned, values right-aligned.
func Grid(entries []Entry, width int) string {
	var name, value int
	for _, e := range entries {
		name, value = max(name, len(e[0])), max(value, len(e[1]))
	}
	cell := name + value
	if value > 0 {
		cell += 2
	}
	columns := max(1, (width-gridIndent+gridGap)/(cell+gridGap))
	rows := (len(entries) + columns - 1) / columns
	var out strings.Builder
	for r := range rows {
		var line strings.Builder
		for i := r; i < len(entries); i += rows {
			e := entries[i]
			fmt.Fprintf(&line, "%*s%-*s%*s", gridGap, "", name, e[0], cell-name, e[1])
		}
		out.WriteString(strings.Repeat(" ", gridIndent))
		out.WriteString(strings.TrimRight(line.String()[gridGap:], " "))
		out.WriteString("\n")
	}
	return out.String()
}

// Grouped formats a number with commas between thousands.
func Grouped(n uint64) string { return humanize.BigComma(new(big.Int).SetUint64(n)) }

// Counted formats a number and its noun: 1 world, 2 worlds.
func Counted(n int, noun string) string {
	return Grouped(uint64(max(n, 0))) + " " + english.PluralWord(n, noun, "")
}

// Shown makes a string from a manager safe for a terminal: it replaces control characters, which
// could move the cursor or change colours.
func Shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// OrDash returns "-" for an empty cell.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return Shown(s)
}

// Brief formats a duration with a suitable precision: 350ms, 4.2s, 3m20s, 2h13m, 5d2h.
func Brief(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return trimZeros(d.Round(time.Second).String())
	case d < day:
		return trimZeros(d.Round(time.Minute).String())
	}
	d = d.Round(time.Hour)
	return trimZeros(fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour))
}

func trimZeros(s string) string {
	for _, part := range []string{"0s", "0m", "0h"} {
		if rest, found := strings.CutSuffix(s, part); found && rest != "" && !unicode.IsDigit(rune(rest[len(rest)-1])) {
			s = rest
		}
	}
	return s
}

// Percent formats a share from 0 to 1.
func Percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }
