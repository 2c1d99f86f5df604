package top

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// topPatience is how old a picture may be beyond the time between two looks before it
// is said to be old.
const topPatience = 2 * time.Second

// topTick is sent once a second, so that it is noticed when nothing else happens.
type topTick time.Time

func tickTop() tea.Cmd { return tea.Tick(time.Second, func(t time.Time) tea.Msg { return topTick(t) }) }

// A topModel is what the terminal shows. It is bubbletea's idea of one: a value that
// messages turn into another.
type topModel struct {
	seen   *Snapshot // nil until something was
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

// pressed does what a key is for.
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

// turn goes to another namespace.
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

// wish asks for the page that is looked at.
func (m topModel) wish(namespace string) {
	m.choose(Wish{namespace, m.view.page, m.view.sought})
}

// rows is how many can be scrolled through.
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
	text := "Asking the managers ...\n"
	if m.seen != nil {
		text = topScreen(m.seen, m.view)
	}
	v := tea.NewView(strings.TrimSuffix(text, "\n"))
	v.AltScreen = true
	v.WindowTitle = "leasehold top"
	return v
}
