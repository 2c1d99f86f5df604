package console

import (
	"fmt"
	"strings"
)

// An Entry is a line of a list: a name and its value, or a name alone.
type Entry struct{ Name, Value string }

const (
	gridIndent = 2
	gridGap    = 3 // between columns
)

// Grid lists entries in as many columns as fit into width, to be read
// downwards as with ls: names to the left, values to the right.
func Grid(entries []Entry, width int) string {
	var name, value int
	for _, e := range entries {
		name, value = max(name, len(e.Name)), max(value, len(e.Value))
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
			fmt.Fprintf(&line, "%*s%-*s%*s", gridGap, "", name, e.Name, cell-name, e.Value)
		}
		out.WriteString(strings.Repeat(" ", gridIndent))
		out.WriteString(strings.TrimRight(line.String()[gridGap:], " "))
		out.WriteString("\n")
	}
	return out.String()
}

// Grouped writes a number with commas between its thousands.
func Grouped(n uint64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Counted writes a number and its noun: 1 world, 2 worlds.
func Counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Grouped(uint64(max(n, 0))) + " " + noun
}
