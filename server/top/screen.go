package top

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/dustin/go-humanize"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

// topScreen draws a snapshot for a terminal: one line per row, none wider than the terminal. The
// cost is that of the visible rows, and of sorting the owners.
func topScreen(s *Snapshot, v topView) string {
	lines := topTitle(s, v)
	if v.help {
		return fit(append(append(lines, ""), wrapped(topKeysHelp, v.width, max(1, v.height))...), v, "any key goes back")
	}
	trouble := topTrouble(s, v)
	body := topBody(s, v, len(lines)+len(trouble))
	if len(trouble) > 0 { // the rest may be stale
		for i, line := range body {
			body[i] = lipgloss.NewStyle().Faint(true).Render(ansi.Strip(line))
		}
	}
	return fit(append(append(lines, trouble...), body...), v, topKeys(v))
}

// fit truncates lines to the terminal, and adds the last line in interactive mode.
func fit(lines []string, v topView, last string) string {
	if v.height > 0 {
		lines = lines[:min(len(lines), max(0, v.height-1))]
		for len(lines) < v.height-1 {
			lines = append(lines, "")
		}
		lines = append(lines, lipgloss.NewStyle().Faint(true).Render(last))
	}
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(ansi.Truncate(line, max(1, v.width), "…") + "\n")
	}
	return out.String()
}

func topKeys(v topView) string {
	switch {
	case v.finding:
		return "key: " + console.Shown(v.typing) + "▏  a name, or 0x and digits; Enter finds it, Esc does not"
	case v.filtering:
		return "/" + console.Shown(v.filter) + "▏  Enter keeps it, Esc clears it"
	case v.filter != "":
		return "q quit  ? help  1-4 pages  f find a key  Esc clears the filter"
	}
	return "q quit  ? help  1-4 pages  f find a key  n/p namespace  / filter  s sort"
}

func topTitle(s *Snapshot, v topView) []string {
	title := console.Heading("leasehold top") + "  " + console.OrDash(s.Namespace)
	for i, n := range s.Status.Namespaces {
		if n.Name == s.Namespace && len(s.Status.Namespaces) > 1 {
			title += fmt.Sprintf(" (%d of %d)", i+1, len(s.Status.Namespaces))
		}
	}
	at := clockText(s.At)
	gap := v.width - lipgloss.Width(title) - len(at)
	return []string{title + strings.Repeat(" ", max(2, gap)) + at}
}

func clockText(t time.Time) string { return t.Local().Format("15:04:05") }

// topTrouble describes since when and why the display is stale.
func topTrouble(s *Snapshot, v topView) []string {
	var since time.Time
	why := "Waiting for a response."
	switch {
	case s.Stale != nil:
		since, why = s.Stale.Since, s.Stale.Why
	case !v.now.IsZero() && v.now.Sub(s.At) > v.patience:
		since = s.At
	default:
		return nil
	}
	now := s.At
	if v.now.After(now) {
		now = v.now
	}
	lines := []string{console.Bad(fmt.Sprintf("NO RESPONSE since %s, for %s.", clockText(since), console.Brief(now.Sub(since).Round(time.Second)))) + staleNote(s)}
	return append(lines, wrapped(why, v.width, 3)...)
}

func staleNote(s *Snapshot) string {
	if s.Status.Leader == "" {
		return ""
	}
	return " Last known state:"
}

func wrapped(text string, width, most int) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(ansi.Wordwrap(text, max(1, width), ""), "\n")
	return lines[:min(most, len(lines))]
}

// topBody formats all lines below the title; above is the number of lines before it.
func topBody(s *Snapshot, v topView, above int) []string {
	if s.Stale != nil && s.Status.Leader == "" {
		return nil // there is no data yet
	}
	lines := append(topFacts(s, v), "")
	if n := s.status(); n == nil || !n.Ready {
		return append(lines, wrapped(topUnready(s), v.width, 3)...)
	}
	if v.page != pageOwners {
		return append(lines, topPageLines(s, v, v.height-above-len(lines)-1)...)
	}
	rows := topRows(s, v)
	room := topRooms(v.height-above-len(lines)-1, len(rows), s)
	if v.height == 0 {
		room = topRoom{owners: len(rows), moves: topHotKeys, hot: topHotKeys, events: 2 * topHotKeys}
	}
	lines = append(lines, topOwners(s, v, rows, room.owners)...)
	lines = append(lines, topMoves(s, room.moves)...)
	lines = append(lines, topHot(s, room.hot)...)
	return append(lines, topLatest(s, room.events)...)
}

func topUnready(s *Snapshot) string {
	n := s.status()
	switch {
	case n != nil:
		return console.Bad("not ready") + ": " + console.OrDash(n.Problem)
	case s.Namespace == "":
		return "There is no namespace yet. Create one with 'leasehold namespace create NAME'."
	}
	return console.Bad("There is no namespace "+console.Shown(s.Namespace)+".") + " Create it with 'leasehold namespace create " + console.Shown(s.Namespace) + "'."
}

func topFacts(s *Snapshot, v topView) []string {
	d := &s.Status
	leader := console.Bad("none")
	if d.Leader != "" {
		leader = fmt.Sprintf("%s, term %d", console.Good(console.Shown(d.Leader)), d.Term)
	}
	if d.Leader != "" && d.LedFor > 0 {
		leader += ", leader for " + cli.Seconds(d.LedFor)
	}
	entries, notes := []console.Entry{{"leader", leader}}, []string(nil)
	if n := s.status(); n != nil && n.Ready {
		entries = append(entries,
			console.Entry{"keys", fmt.Sprintf("%s, %s; LSN %s", console.Counted(int(n.Ranges), "range"), s.vacantText(), console.Grouped(uint64(n.LSN)))},
			console.Entry{"policy", fmt.Sprintf("%s; %s, %s waiting; %s", console.OrDash(s.Policy),
				console.Counted(int(s.Moves.UnderWay), "move"), console.Grouped(uint64(s.Moves.Waiting)), console.Counted(int(n.Lookups), "lookup"))})
		if n.Problem != "" {
			notes = append(notes, console.Bad(console.Shown(n.Problem)))
		}
		if n.Lull != "" && !v.tiny() {
			notes = append(notes, "Not balanced by load now: "+console.Shown(n.Lull)+".")
		}
	}
	for _, w := range d.Warnings {
		notes = append(notes, console.Bad("Warning: ")+console.Shown(w)+".")
	}
	entries = append(entries, console.Entry{"store", console.Shown(d.Store) + silentMembers(s.Members)})
	most := 4 // notes
	if v.tiny() {
		entries, most = entries[:min(2, len(entries))], 1
	}
	lines := strings.Split(strings.TrimSuffix(console.Facts(entries), "\n"), "\n")
	return append(lines, wrapped(strings.Join(notes, "\n"), v.width, most)...)
}

// tiny reports whether the terminal has room only for the most important lines.
func (v topView) tiny() bool { return v.height > 0 && v.height < small }

func (s *Snapshot) vacantText() string {
	if s.Vacant == 0 {
		return "none vacant"
	}
	return console.Bad(console.Percent(s.Vacant) + " of the keys vacant")
}

func silentMembers(members []admin.Member) string {
	var silent []string
	for _, m := range members {
		if !m.Healthy {
			silent = append(silent, console.Shown(m.Name))
		}
	}
	if len(silent) == 0 {
		return ""
	}
	return "; " + console.Bad(strings.Join(silent, ", ")+" not responding")
}

// A topRoom is the number of rows for each list.
type topRoom struct{ owners, moves, hot, events int }

// aboveList counts the blank line and the title above a list; for owners, the title and the column
// names.
const aboveList = 2

// Minimum numbers of lines for more than the owners, and for all lists.
const small, middling = 14, 24

// topRooms distributes the lines of a terminal. Owners get the rest after minimum sizes of the other
// lists, and events get spare lines. A small terminal shows only owners.
func topRooms(lines, owners int, s *Snapshot) topRoom {
	r := topRoom{owners: lines - aboveList}
	take := func(have, most int) int {
		n := min(have, most)
		if n > 0 {
			r.owners -= n + aboveList
		}
		return n
	}
	if lines >= small {
		r.events = take(len(s.Events), max(3, lines/4))
		r.moves = take(len(s.Moves.Moves), max(1, lines/8))
	}
	if lines >= middling {
		r.hot = take(len(s.HotKeys), max(1, lines/8))
	}
	if spare := r.owners - owners; spare > 0 {
		if r.events > 0 {
			r.events = min(len(s.Events), r.events+spare)
		}
		r.owners = owners
	}
	r.owners = max(0, r.owners)
	return r
}

func topMoves(s *Snapshot, room int) []string {
	moves := s.Moves.Moves[:min(room, len(s.Moves.Moves))]
	if len(moves) == 0 {
		return nil
	}
	lines := []string{"", console.Heading("moves") + fmt.Sprintf("  %d in progress, %d queued", s.Moves.UnderWay, s.Moves.Waiting)}
	for _, m := range moves {
		line := fmt.Sprintf("%-7s  %8s  %s → %s", m.State, console.Percent(m.Share), console.Shown(m.From), cli.OrNone(m.To))
		if m.ID != "" {
			line += fmt.Sprintf("  %s, %s, %s", console.Counted(int(m.Records), "record"), humanize.IBytes(m.Bytes), cli.Seconds(m.Age))
		}
		lines = append(lines, line)
	}
	return lines
}

func topHot(s *Snapshot, room int) []string {
	keys := s.HotKeys[:min(room, len(s.HotKeys))]
	if len(keys) == 0 {
		return nil
	}
	lines := []string{"", console.Heading("hot keys")}
	for _, k := range keys {
		lines = append(lines, fmt.Sprintf("%s  %10s  %s", k.Key, cli.Load(k.Rate), console.OrDash(k.Owner)))
	}
	return lines
}

func topLatest(s *Snapshot, room int) []string {
	events := s.Events[max(0, len(s.Events)-room):]
	if len(events) == 0 {
		return nil
	}
	lines := []string{"", console.Heading("events")}
	for _, e := range events {
		lines = append(lines, clockText(e.At)+"  "+strings.Join(cli.EventWords(e), "  "))
	}
	return lines
}
