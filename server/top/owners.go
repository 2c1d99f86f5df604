package top

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

// Widths of the bar of an owner; a narrower bar is not drawn.
const (
	minBar = 8
	maxBar = 40
)

// A topColumn is a column of the owners. Its width is fixed, so that the layout is stable.
type topColumn struct {
	console.Column
	width int
	from  int // the minimum width of the terminal
	cell  func(*topOwner) string
}

func topColumns(width int) []topColumn {
	all := []topColumn{
		{console.Left("STATE"), 9, 0, (*topOwner).stateColoured},
		{console.Number("SHARE"), 8, 34, func(o *topOwner) string { return console.Percent(o.Share) }},
		{console.Number("LOAD"), 10, 46, func(o *topOwner) string { return cli.Load(o.Load) }},
		{console.Number("LEASES"), 7, 72, func(o *topOwner) string { return console.Grouped(uint64(o.Leases)) }},
		{console.Number("PATIENCE"), 8, 90, func(o *topOwner) string { return cli.Seconds(o.Patience) }},
		{console.Left("MOVES"), 13, 105, func(o *topOwner) string { return cli.OwnerMoves(o.Owner) }},
		{console.Left("ADDRESS"), 22, 132, func(o *topOwner) string { return console.OrDash(o.Addr) }},
	}
	var fitting []topColumn
	for _, c := range all {
		if width >= c.from {
			fitting = append(fitting, c)
		}
	}
	return fitting
}

const (
	leastName = 8
	mostName  = 32
)

// topOwners formats the table of owners in at most room rows.
func topOwners(s *Snapshot, v topView, rows []*topOwner, room int) []string {
	if len(s.Owners) == 0 {
		return []string{"No owner has joined yet: all keys are vacant."}
	}
	from := max(0, min(v.scroll, len(rows)-room))
	seen := rows[from:min(len(rows), from+max(0, room))]
	columns := topColumns(v.width)
	name, bar := leastName, v.width
	for _, o := range s.Owners {
		name = max(name, lipgloss.Width(console.Shown(o.Owner.Owner)))
	}
	name = min(name, mostName, max(leastName, v.width/4))
	for _, c := range columns {
		bar -= c.width + 2
	}
	bar = min(maxBar, bar-name-2)
	fair := newFairness(s.Owners)

	titles := []string{cell("OWNER", name, false)}
	for _, c := range columns {
		titles = append(titles, cell(c.Title, c.width, c.Right))
	}
	lines := []string{ownersTitle(s, v, len(rows), from, len(seen)), console.Heading(strings.TrimRight(strings.Join(titles, "  "), " "))}
	for _, o := range seen {
		cells := []string{cell(console.Shown(o.Owner.Owner), name, false)}
		for _, c := range columns {
			cells = append(cells, cell(c.cell(o), c.width, c.Right))
		}
		if bar >= minBar {
			cells = append(cells, barText(fair.of(o), bar))
		}
		lines = append(lines, strings.Join(cells, "  "))
	}
	return lines
}

func ownersTitle(s *Snapshot, v topView, rows, from, seen int) string {
	title := console.Heading(console.Counted(len(s.Owners), "owner")) + " by " + v.sort.String()
	if v.filter != "" {
		title += fmt.Sprintf(", %s with %q", console.Grouped(uint64(rows)), console.Shown(v.filter))
	}
	if seen < rows && seen > 0 {
		title += fmt.Sprintf(", %d to %d", min(from+1, rows), from+seen)
	}
	return title
}

func cell(text string, width int, right bool) string {
	text = ansi.Truncate(text, width, "…")
	pad := strings.Repeat(" ", width-lipgloss.Width(text))
	if right {
		return pad + text
	}
	return text + pad
}

func (o *topOwner) stateName() string {
	if o.Late && !o.Suspended {
		return "late"
	}
	return ansi.Strip(cli.OwnerState(o.Owner))
}

func (o *topOwner) stateColoured() string {
	if o.Late && !o.Suspended {
		return console.Bad("late")
	}
	return cli.OwnerState(o.Owner)
}

// A fairness is the fair part per weight: of the loads, or of the key shares without loads.
type fairness struct {
	byLoad    bool
	perWeight float64
}

func newFairness(owners []topOwner) fairness {
	var loads, shares, weights float64
	for _, o := range owners {
		loads, shares = loads+o.Load, shares+o.Share
		if o.State == admin.OwnerMember && !o.Draining && !o.Leaving {
			weights += o.Weight
		}
	}
	f := fairness{byLoad: loads > 0, perWeight: shares}
	if f.byLoad {
		f.perWeight = loads
	}
	if weights > 0 {
		f.perWeight /= weights
	}
	return f
}

func (f fairness) of(o *topOwner) float64 {
	have, part := o.Share, f.perWeight*o.Weight
	if f.byLoad {
		have = o.Load
	}
	if part <= 0 {
		return 0
	}
	return have / part
}

// barText draws a bar that is half full at the fair part, which is marked, and ends in an arrow
// above twice the fair part.
func barText(times float64, room int) string {
	const much = 1.5
	full := int(min(times/2, 1)*float64(room) + 0.5)
	bar := []rune(strings.Repeat("█", full) + strings.Repeat(" ", room-full))
	if middle := room / 2; full <= middle {
		bar[middle] = '┊'
	}
	if times > 2 {
		bar[room-1] = '▶'
	}
	style := lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	if times > much {
		style = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	}
	return style.Render(strings.TrimRight(string(bar), " "))
}
