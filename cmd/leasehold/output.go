package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"

	"github.com/leasehold-dev/leasehold"
)

// What commands print for programs follows one rule: numbers that are names
// rather than amounts (keys, sessions, generations, terms, ids) are strings,
// because many readers of JSON keep only 53 bits of a number. Fields may be
// added; none is renamed or removed.

// writeLine writes a document as one line of JSON, for commands that print many.
func writeLine(out io.Writer, document any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		panic(err) // numbers, strings, and lists and structs of them
	}
	return write(out, line.String())
}

// A column of a table.
type column struct {
	title string
	right bool // numbers line up to the right
}

func left(title string) column   { return column{title: title} }
func number(title string) column { return column{title: title, right: true} }

// tableText lays out rows in columns, under titles. Cells may be coloured.
func tableText(columns []column, rows [][]string) string {
	titles := make([]string, len(columns))
	widths := make([]int, len(columns))
	for i, c := range columns {
		titles[i] = heading(c.title)
	}
	rows = append([][]string{titles}, rows...)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		out.WriteString(rowText(columns, widths, row))
	}
	return out.String()
}

func rowText(columns []column, widths []int, row []string) string {
	var line strings.Builder
	for i, cell := range row {
		pad := strings.Repeat(" ", widths[i]-lipgloss.Width(cell))
		switch {
		case columns[i].right:
			line.WriteString(pad + cell)
		case i == len(row)-1:
			line.WriteString(cell)
		default:
			line.WriteString(cell + pad)
		}
		if i < len(row)-1 {
			line.WriteString("  ")
		}
	}
	return line.String() + "\n"
}

// facts lists names and what belongs to them, one on a line.
func facts(entries []entry) string {
	width := 0
	for _, e := range entries {
		width = max(width, len(e.name))
	}
	var out strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&out, "%-*s  %s\n", width, e.name, e.value)
	}
	return out.String()
}

// shown makes what a manager sent fit for a terminal: nothing in it can move
// the cursor or colour what follows.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// orDash is what a cell shows that has nothing to say.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return shown(s)
}

// brief writes a duration with as much precision as people want: 350ms, 4.2s,
// 3m20s, 2h13m, 5d2h.
func brief(d time.Duration) string {
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

// trimZeros takes the parts off the end of a duration that are zero.
func trimZeros(s string) string {
	for _, part := range []string{"0s", "0m", "0h"} {
		if rest, found := strings.CutSuffix(s, part); found && rest != "" && !unicode.IsDigit(rune(rest[len(rest)-1])) {
			s = rest
		}
	}
	return s
}

// percent writes a share of 0 to 1.
func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// shareOf is the share of the key space that a range has.
func shareOf(r leasehold.Range) float64 { return float64(r.Size()) / (1 << 64) }

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
