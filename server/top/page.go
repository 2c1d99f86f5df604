package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/doctor"
)

// A topPage is a page of the screen.
type topPage int

const (
	pageOwners topPage = iota // with a few of the other lists
	PageRanges
	PageLookups
	PageEvents
	PageKey
)

// topPages are the keyboard keys of the pages. That of PageKey prompts for a key.
var topPages = [...]string{pageOwners: "1", PageRanges: "2", PageLookups: "3", PageEvents: "4", PageKey: "f"}

// A Wish selects the data to display.
type Wish struct {
	Namespace string // "": the first
	Page      topPage
	Key       string // of PageKey, as typed
}

// topPaged is the data of one page, requested only while the page is open.
type topPaged struct {
	Of      Wish
	Ranges  []admin.Range
	lookups admin.Lookups // of the polled manager, the largest lag first
	Log     []admin.Event
	Found   *topFound
	Problem string // set if the request failed
}

// A topFound is the owner and the history of a key.
type topFound struct {
	Key     cli.KeyArgument
	Held    admin.Range
	History admin.History
}

// A topTable is a page with rows that can be filtered and scrolled. Rows are formatted when they
// become visible, because there may be tens of thousands.
type topTable struct {
	title   string
	columns []console.Column
	rows    int
	row     func(i int) []string
}

func (s *Snapshot) table(v topView) topTable {
	p := &s.Paged
	switch v.page {
	case PageRanges:
		return p.rangesTable(v)
	case PageLookups:
		return p.lookupsTable(s, v)
	case PageEvents:
		return p.eventsTable(v)
	case PageKey:
		return p.keyTable()
	case pageOwners:
	}
	return topTable{}
}

// matching returns the indices of the rows that contain the filter.
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
	seen := matching(v, len(p.Ranges), func(i int) string { return p.Ranges[i].Start.String() + " " + p.Ranges[i].Owner })
	return topTable{
		title: console.Heading(console.Counted(len(p.Ranges), "range")) + ofThem(v, len(seen)), rows: len(seen),
		columns: []console.Column{console.Left("RANGE"), console.Number("SHARE"), console.Left("OWNER"), console.Number("GENERATION"), console.Left("STATE LAST LOST")},
		row: func(i int) []string {
			r := &p.Ranges[seen[i]]
			owner := cli.OrNone(r.Owner)
			return []string{r.Keys().String(), console.Percent(r.Share), owner, cli.Decimal(uint64(r.Generation)), cli.LostText(*r)}
		},
	}
}

func (p *topPaged) lookupsTable(s *Snapshot, v topView) topTable {
	all := p.lookups.Lookups
	seen := matching(v, len(all), func(i int) string { return all[i].Addr })
	return topTable{
		title: console.Heading(console.Counted(int(p.lookups.Total), "lookup")) + " of manager " + console.OrDash(s.Status.Manager) + ofThem(v, len(seen)), rows: len(seen),
		columns: []console.Column{console.Left("FROM"), console.Number("CONNECTED"), console.Number("LAST HEARD"), console.Number("CHANGES BEHIND")},
		row: func(i int) []string {
			l := &all[seen[i]]
			behind := console.Grouped(l.Behind)
			if l.Behind > doctor.Lagging || time.Duration(l.HeardAgo) > doctor.LookupSilence {
				behind = console.Bad(behind)
			}
			return []string{console.OrDash(l.Addr), cli.Seconds(l.Connected), cli.Seconds(l.HeardAgo) + " ago", behind}
		},
	}
}

func (p *topPaged) eventsTable(v topView) topTable {
	text := func(i int) []string { return cli.EventWords(p.Log[i]) }
	seen := matching(v, len(p.Log), func(i int) string { return ansi.Strip(strings.Join(text(i), " ")) })
	return topTable{
		title: console.Heading(console.Counted(len(p.Log), "event")) + ofThem(v, len(seen)) + ", newest first", rows: len(seen),
		columns: []console.Column{console.Left("TIME"), console.Left("WHAT HAPPENED")},
		row: func(i int) []string {
			i = seen[len(seen)-1-i]
			return []string{clockText(p.Log[i].At), strings.Join(text(i), "  ")}
		},
	}
}

func (p *topPaged) keyTable() topTable {
	if p.Found == nil {
		return topTable{}
	}
	entries := p.Found.History.Entries
	return topTable{
		title: console.Heading("history of the key") + ", newest first", rows: len(entries),
		columns: []console.Column{console.Left("TIME"), console.Left("CHANGE"), console.Left("OWNER"), console.Number("GENERATION"), console.Left("RANGE")},
		row: func(i int) []string {
			e := &entries[i]
			return []string{cli.TimeText(e.At), cli.ChangeText(*e), console.OrDash(e.Owner), cli.Decimal(uint64(e.Generation)), e.Keys().String()}
		},
	}
}

func ofThem(v topView, n int) string {
	if v.filter == "" {
		return ""
	}
	return fmt.Sprintf(", %s with %q", console.Grouped(uint64(n)), console.Shown(v.filter))
}

func topPageLines(s *Snapshot, v topView, room int) []string {
	p := &s.Paged
	switch {
	case p.Of.Page != v.page || p.Of.Namespace != s.Namespace || v.page == PageKey && p.Of.Key != v.sought:
		return []string{"Loading ..."}
	case p.Problem != "":
		return wrapped(console.Bad(console.Shown(p.Problem)), v.width, max(1, room))
	}
	var lines []string
	if p.Found != nil && v.page == PageKey {
		lines = p.Found.lines()
	}
	t := s.table(v)
	room -= len(lines) + aboveList
	from := max(0, min(v.scroll, t.rows-room))
	rows := [][]string{}
	for i := from; i < min(t.rows, from+max(0, room)); i++ {
		rows = append(rows, t.row(i))
	}
	if len(rows) < t.rows && len(rows) > 0 {
		t.title += fmt.Sprintf(", %s to %s", console.Grouped(uint64(from+1)), console.Grouped(uint64(from+len(rows))))
	}
	lines = append(lines, t.title)
	if t.rows == 0 {
		return lines
	}
	return append(lines, strings.Split(strings.TrimSuffix(console.Table(t.columns, rows), "\n"), "\n")...)
}

func (f *topFound) lines() []string {
	owner := cli.OrNone("")
	if f.Held.Owner != "" {
		owner = console.Good(console.Shown(f.Held.Owner)) + " at " + console.OrDash(f.Held.Addr) + fmt.Sprintf(", generation %d", f.Held.Generation)
	}
	text := console.Facts([]console.Entry{
		{"key", f.Key.Text()},
		{"owner", owner},
		{"range", fmt.Sprintf("%v, %s of the keys", f.Held.Keys(), console.Percent(f.Held.Share))},
		{"state lost", cli.LostText(f.Held)},
	})
	return append(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), "")
}

func keyTyped(text string) (cli.KeyArgument, error) {
	digits, hex := strings.CutPrefix(strings.ToLower(text), "0x")
	if !hex {
		return cli.KeyArgument{Name: text, Key: leasehold.KeyOf(text)}, nil
	}
	const maxDigits = 16
	key, err := leasehold.ParseKey(strings.Repeat("0", max(0, maxDigits-len(digits))) + digits)
	if err != nil {
		return cli.KeyArgument{}, fmt.Errorf("%q: want 1 to %d hexadecimal digits after 0x", text, maxDigits)
	}
	return cli.KeyArgument{Key: key}, nil
}

func pageNamed(key string) (topPage, bool) {
	i := slices.Index(topPages[:], key)
	return topPage(i), i >= 0 && topPage(i) != PageKey
}
