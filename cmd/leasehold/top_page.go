package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
)

// A topPage is what the screen shows below the facts.
type topPage int

const (
	pageOwners topPage = iota // and a few of all else
	pageRanges
	pageLookups
	pageEvents
	pageKey
)

// topPages are the keys to press for them. That of a key asks which.
var topPages = [...]string{pageOwners: "1", pageRanges: "2", pageLookups: "3", pageEvents: "4", pageKey: "f"}

// A topWish is what somebody wants to see.
type topWish struct {
	namespace string // "": the first
	page      topPage
	key       string // of pageKey, as it was typed
}

// topPaged is what only one page needs, and is asked for only while it is looked at.
type topPaged struct {
	of      topWish
	ranges  []admin.Range
	lookups admin.Lookups // of the manager that is asked, the one that lags most first
	log     []admin.Event
	found   *topFound
	problem string // why it is not known
}

// A topFound is what is known of a key.
type topFound struct {
	key     keyArgument
	held    admin.Range
	history admin.History
}

// A topTable is a page: rows that can be filtered and scrolled through. Rows are made when
// they are seen, because there may be tens of thousands.
type topTable struct {
	title   string
	columns []column
	rows    int
	row     func(i int) []string
}

// table returns what is to be seen on a page, but for the owners'.
func (s *topSnapshot) table(v topView) topTable {
	p := &s.paged
	switch v.page {
	case pageRanges:
		return p.rangesTable(v)
	case pageLookups:
		return p.lookupsTable(s, v)
	case pageEvents:
		return p.eventsTable(v)
	case pageKey:
		return p.keyTable()
	case pageOwners:
	}
	return topTable{}
}

// matching returns which of n rows have the text of the filter in them.
func matching(v topView, n int, text func(i int) string) []int {
	lower := strings.ToLower(v.filter)
	var out []int
	for i := range n {
		if lower == "" || strings.Contains(strings.ToLower(text(i)), lower) {
			out = append(out, i)
		}
	}
	return out
}

func (p *topPaged) rangesTable(v topView) topTable {
	seen := matching(v, len(p.ranges), func(i int) string { return p.ranges[i].Start.String() + " " + p.ranges[i].Owner })
	return topTable{
		title: heading(counted(len(p.ranges), "range")) + ofThem(v, len(seen)), rows: len(seen),
		columns: []column{left("RANGE"), number("SHARE"), left("OWNER"), number("GENERATION"), left("STATE LAST LOST")},
		row: func(i int) []string {
			r := &p.ranges[seen[i]]
			owner := orDash(r.Owner)
			if r.Owner == "" {
				owner = bad("nobody")
			}
			return []string{r.Keys().String(), percent(r.Share), owner, decimal(uint64(r.Generation)), lostText(*r)}
		},
	}
}

func (p *topPaged) lookupsTable(s *topSnapshot, v topView) topTable {
	all := p.lookups.Lookups
	seen := matching(v, len(all), func(i int) string { return all[i].Addr })
	return topTable{
		title: heading(counted(int(p.lookups.Total), "lookup")) + " of manager " + orDash(s.Status.Manager) + ofThem(v, len(seen)), rows: len(seen),
		columns: []column{left("FROM"), number("CONNECTED"), number("LAST HEARD"), number("CHANGES BEHIND")},
		row: func(i int) []string {
			l := &all[seen[i]]
			behind := grouped(l.Behind)
			if l.Behind > lagging || time.Duration(l.HeardAgo) > lookupSilence {
				behind = bad(behind)
			}
			return []string{orDash(l.Addr), seconds(l.Connected), seconds(l.HeardAgo) + " ago", behind}
		},
	}
}

func (p *topPaged) eventsTable(v topView) topTable {
	text := func(i int) []string { return eventWords(p.log[i]) }
	seen := matching(v, len(p.log), func(i int) string { return ansi.Strip(strings.Join(text(i), " ")) })
	return topTable{
		title: heading(counted(len(p.log), "event")) + ofThem(v, len(seen)) + ", newest first", rows: len(seen),
		columns: []column{left("TIME"), left("WHAT HAPPENED")},
		row: func(i int) []string {
			i = seen[len(seen)-1-i]
			return []string{clockText(p.log[i].At), strings.Join(text(i), "  ")}
		},
	}
}

func (p *topPaged) keyTable() topTable {
	if p.found == nil {
		return topTable{}
	}
	entries := p.found.history.Entries
	return topTable{
		title: heading("who held it") + ", newest first", rows: len(entries),
		columns: []column{left("TIME"), left("CHANGE"), left("OWNER"), number("GENERATION"), left("RANGE")},
		row: func(i int) []string {
			e := &entries[i]
			return []string{timeText(e.At), changeText(*e), orDash(e.Owner), decimal(uint64(e.Generation)), e.Keys().String()}
		},
	}
}

func ofThem(v topView, n int) string {
	if v.filter == "" {
		return ""
	}
	return fmt.Sprintf(", %s with %q", grouped(uint64(n)), shown(v.filter))
}

// topPageLines draws a page into so many lines.
func topPageLines(s *topSnapshot, v topView, room int) []string {
	p := &s.paged
	switch {
	case p.of.page != v.page || p.of.namespace != s.Namespace || v.page == pageKey && p.of.key != v.sought:
		return []string{"Asking ..."}
	case p.problem != "":
		return wrapped(bad(shown(p.problem)), v.width, max(1, room))
	}
	var lines []string
	if p.found != nil && v.page == pageKey {
		lines = p.found.lines()
	}
	t := s.table(v)
	room -= len(lines) + aboveList
	from := max(0, min(v.scroll, t.rows-room))
	rows := [][]string{}
	for i := from; i < min(t.rows, from+max(0, room)); i++ {
		rows = append(rows, t.row(i))
	}
	if len(rows) < t.rows && len(rows) > 0 {
		t.title += fmt.Sprintf(", %s to %s", grouped(uint64(from+1)), grouped(uint64(from+len(rows))))
	}
	lines = append(lines, t.title)
	if t.rows == 0 {
		return lines
	}
	return append(lines, strings.Split(strings.TrimSuffix(tableText(t.columns, rows), "\n"), "\n")...)
}

// lines is where a key is, and why.
func (f *topFound) lines() []string {
	owner := bad("nobody")
	if f.held.Owner != "" {
		owner = good(shown(f.held.Owner)) + " at " + orDash(f.held.Addr) + fmt.Sprintf(", generation %d", f.held.Generation)
	}
	text := facts([]entry{
		{"key", f.key.text()},
		{"owner", owner},
		{"range", fmt.Sprintf("%v, %s of the keys", f.held.Keys(), percent(f.held.Share))},
		{"state lost", lostText(f.held)},
	})
	return append(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), "")
}

// keyTyped reads a key as somebody types it.
func keyTyped(text string) (keyArgument, error) {
	digits, hex := strings.CutPrefix(strings.ToLower(text), "0x")
	if !hex {
		return keyArgument{name: text, key: leasehold.KeyOf(text)}, nil
	}
	const most = 16
	key, err := leasehold.ParseKey(strings.Repeat("0", max(0, most-len(digits))) + digits)
	if err != nil {
		return keyArgument{}, fmt.Errorf("%q: want 1 to %d hexadecimal digits after 0x", text, most)
	}
	return keyArgument{key: key}, nil
}

// pageNamed returns the page that a key of the keyboard is for.
func pageNamed(key string) (topPage, bool) {
	i := slices.Index(topPages[:], key)
	return topPage(i), i >= 0 && topPage(i) != pageKey
}
