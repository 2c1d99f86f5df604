package top

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/dustin/go-humanize"

	"github.com/leasehold-dev/leasehold/server/console"
)

// A topRoom is how many rows of each list there is room for.
type topRoom struct{ owners, moves, hot, events int }

// Lists have a blank line and a title above them, owners a title and the names of the
// columns.
const aboveList = 2

// Lines from which on there is room for more than the least.
const small, middling = 14, 24

// topRooms shares the lines of a terminal: owners have what the others leave, and the
// events what the owners leave. In a small one there are only owners.
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

// topMoves is what is on its way.
func topMoves(s *Snapshot, room int) []string {
	moves := s.Moves.Moves[:min(room, len(s.Moves.Moves))]
	if len(moves) == 0 {
		return nil
	}
	lines := []string{"", console.Heading("moves") + fmt.Sprintf("  %d under way, %d waiting", s.Moves.UnderWay, s.Moves.Waiting)}
	for _, m := range moves {
		line := fmt.Sprintf("%-7s  %8s  %s → %s", m.State, console.Percent(m.Share), console.Shown(m.From), cli.OrNobody(m.To))
		if m.ID != "" {
			line += fmt.Sprintf("  %s, %s, %s", console.Counted(int(m.Records), "record"), humanize.IBytes(m.Bytes), cli.Seconds(m.Age))
		}
		lines = append(lines, line)
	}
	return lines
}

// topHot is the keys that cost most.
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

// topLatest is what has happened last, newest last.
func topLatest(s *Snapshot, room int) []string {
	events := s.Events[max(0, len(s.Events)-room):]
	if len(events) == 0 {
		return nil
	}
	lines := []string{"", console.Heading("what happened")}
	for _, e := range events {
		lines = append(lines, clockText(e.At)+"  "+strings.Join(cli.EventWords(e), "  "))
	}
	return lines
}
