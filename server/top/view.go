package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// A topView is the user's selection and the terminal size.
type topView struct {
	width, height int // of the terminal; height 0 is unlimited
	sort          topSort
	filter        string
	filtering     bool // the filter is being typed
	page          topPage
	finding       bool   // a key is being typed
	typing        string // its text so far
	sought        string // the key of PageKey
	help          bool
	scroll        int // rows above the visible ones
	// now is the drawing time, and patience the maximum age of a snapshot that is not stale.
	// If now is zero, no snapshot is stale.
	now      time.Time
	patience time.Duration
}

// A topSort is a sort order of owners: an index of sorts.
type topSort int

const (
	byLoad topSort = iota
	byShare
	byName
)

var sorts = [...]string{byLoad: "load", byShare: "share", byName: "name"}

func sortNamed(name string) (topSort, error) {
	if i := slices.Index(sorts[:], name); i >= 0 {
		return topSort(i), nil
	}
	return 0, fmt.Errorf("--sort %q: want %s", name, strings.Join(sorts[:], ", "))
}

func (s topSort) String() string { return sorts[s] }

func (s topSort) compare(a, b *topOwner) int {
	most := 0
	switch s {
	case byLoad:
		most = cmp.Or(cmp.Compare(b.Load, a.Load), cmp.Compare(b.Share, a.Share))
	case byShare:
		most = cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.Load, a.Load))
	case byName:
	}
	if most != 0 {
		return most
	}
	return cmp.Or(strings.Compare(a.Owner.Owner, b.Owner.Owner), strings.Compare(a.Session, b.Session))
}

// topRows returns the owners that match the filter, in the sort order.
func topRows(s *Snapshot, v topView) []*topOwner {
	if s == nil {
		return nil
	}
	rows := make([]*topOwner, 0, len(s.Owners))
	for i := range s.Owners {
		if o := &s.Owners[i]; v.filter == "" || o.has(strings.ToLower(v.filter)) {
			rows = append(rows, o)
		}
	}
	slices.SortFunc(rows, v.sort.compare)
	return rows
}

// has reports whether a visible column of an owner contains a text.
func (o *topOwner) has(lower string) bool {
	for _, text := range []string{o.Owner.Owner, o.Addr, o.stateName()} {
		if strings.Contains(strings.ToLower(text), lower) {
			return true
		}
	}
	return false
}

// Maximum lengths of the filter and of a key.
const mostFilter, mostKey = 64, 256

// edited returns a line after a key press.
func edited(line, key, text string, most int) string {
	switch {
	case key == "backspace":
		_, size := utf8.DecodeLastRuneInString(line)
		return line[:len(line)-size]
	case len(line)+len(text) <= most:
		return line + text
	}
	return line
}

func (v topView) typed(key, text string) topView {
	switch key {
	case "enter":
		v.filtering = false
	case "esc":
		v.filtering, v.filter = false, ""
	default:
		v.filter = edited(v.filter, key, text, mostFilter)
	}
	v.scroll = 0
	return v
}

// asked handles a key press while a key of the namespace is typed.
func (v topView) asked(key, text string) topView {
	if key == "esc" || key == "enter" {
		v.finding, v.typing = false, ""
	} else {
		v.typing = edited(v.typing, key, text, mostKey)
	}
	return v
}

func (v topView) found() topView {
	v.page, v.sought, v.finding, v.typing, v.scroll, v.filter = PageKey, v.typing, false, "", 0, ""
	return v
}

func (v topView) command(key string, rows int) topView {
	page := max(1, v.height/2)
	if to, ok := pageNamed(key); ok {
		v.page, v.scroll, v.filter = to, 0, ""
		return v
	}
	switch key {
	case topPages[PageKey]:
		v.finding, v.typing = true, ""
	case "s":
		v.sort, v.scroll = (v.sort+1)%topSort(len(sorts)), 0
	case "/":
		v.filtering = true
	case "?", "h":
		v.help = true
	case "esc":
		v.filter = ""
	case "down", "j":
		v.scroll++
	case "up", "k":
		v.scroll--
	case "pgdown", "space":
		v.scroll += page
	case "pgup":
		v.scroll -= page
	case "home", "g":
		v.scroll = 0
	case "end", "G":
		v.scroll = rows
	}
	v.scroll = max(0, min(v.scroll, rows-1))
	return v
}

// topKeysHelp fits into a narrow terminal.
const topKeysHelp = `  q, Ctrl-C       quit
  n, p, ← →       next or previous namespace
  1, 2, 3, 4      owners, ranges, lookups, events
  f               find a key: its owner and history
  ↑ ↓, PgUp PgDn  scroll
  s               sort owners by load, share or name
  /               filter rows
  ?               help

The bar of an owner is its load against its fair part, which
is its part if all loads were spread by weight: half a bar is
the fair part, a full one twice that or more. If no owner
reports loads it is the share of the keys.`

// topPatience is the maximum age of a snapshot, beyond the polling interval, before it is marked
// as stale.
const topPatience = 2 * time.Second

// topTick is sent every second, so that staleness is displayed without other events.
type topTick time.Time

func tickTop() tea.Cmd { return tea.Tick(time.Second, func(t time.Time) tea.Msg { return topTick(t) }) }

// A topModel is the model of bubbletea: an immutable value that messages transform.
type topModel struct {
	seen   *Snapshot // nil before the first
	view   topView
	choose func(Wish)
}

func (m topModel) Init() tea.Cmd { return tickTop() }

func (m topModel) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case *Snapshot:
		if m.seen != nil && message.Namespace != m.seen.Namespace {
			m.view.scroll = 0
		}
		m.seen, m.view.now = message, message.At
	case topTick:
		m.view.now = time.Time(message)
		return m, tickTop()
	case tea.WindowSizeMsg:
		m.view.width, m.view.height = message.Width, message.Height
	case tea.KeyPressMsg:
		return m.pressed(message)
	}
	return m, nil
}

func (m topModel) pressed(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	name := key.String()
	switch {
	case name == "ctrl+c":
		return m, tea.Quit
	case m.view.finding && name == "enter" && m.view.typing != "":
		m.view = m.view.found()
		m.wish(m.namespace())
	case m.view.finding:
		m.view = m.view.asked(name, key.Text)
	case m.view.filtering:
		m.view = m.view.typed(name, key.Text)
	case m.view.help:
		m.view.help = false // any key
	default:
		switch name {
		case "q":
			return m, tea.Quit
		case "n", "right", "tab":
			m.turn(1)
		case "p", "left", "shift+tab":
			m.turn(-1)
		default:
			before := m.view.page
			if m.view = m.view.command(name, m.rows()); m.view.page != before {
				m.wish(m.namespace())
			}
		}
	}
	return m, nil
}

func (m topModel) turn(by int) {
	if m.seen == nil || len(m.seen.Status.Namespaces) == 0 {
		return
	}
	all := m.seen.Status.Namespaces
	at := 0
	for i, n := range all {
		if n.Name == m.seen.Namespace {
			at = (i + by + len(all)) % len(all)
		}
	}
	m.wish(all[at].Name)
}

func (m topModel) namespace() string {
	if m.seen == nil {
		return ""
	}
	return m.seen.Namespace
}

func (m topModel) wish(namespace string) {
	m.choose(Wish{namespace, m.view.page, m.view.sought})
}

func (m topModel) rows() int {
	switch {
	case m.seen == nil:
		return 0
	case m.view.page == pageOwners:
		return len(topRows(m.seen, m.view))
	}
	return m.seen.table(m.view).rows
}

func (m topModel) View() tea.View {
	text := "Connecting to the managers ...\n"
	if m.seen != nil {
		text = topScreen(m.seen, m.view)
	}
	v := tea.NewView(strings.TrimSuffix(text, "\n"))
	v.AltScreen = true
	v.WindowTitle = "leasehold top"
	return v
}
