package console

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

// A Column of a table.
type Column struct {
	Title string
	Right bool // it lines up to the right
}

// Left is a column of text.
func Left(title string) Column { return Column{Title: title} }

// Number is a column of numbers, which line up to the right.
func Number(title string) Column { return Column{title, true} }

// columnGap is the space between two columns.
const columnGap = 2

// Table lays out rows in columns, under titles. Cells may be coloured.
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

// An Entry is a name and what belongs to it, or a name alone.
type Entry [2]string

// Facts lists entries, one on a line.
func Facts(entries []Entry) string {
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
