package console

import (
	"fmt"
	"strings"
)

const (
	gridIndent = 2
	gridGap    = 3 // between columns
)

// Grid lists entries in as many columns as fit into width, to be read
// downwards as with ls: names to the left, values to the right.
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
