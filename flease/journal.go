package flease

import (
	"context"
	"log/slog"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
)

// An aftermath is what a step leaves to be done when the lock is free again.
type aftermath struct {
	wake   []*batch // have ended
	lines  []line   // for the log
	losses []loss
}

// A line is something to be logged.
type line struct {
	subject
	level slog.Level
	count int // of events
	args  []any
}

// A subject is what a line is about. It is not repeated too often.
type subject struct {
	text string
	id   ID // of the member that it is about; 0 if none
}

// A loss is leases that a step has lost, for one reason.
type loss struct {
	why   ending
	first string // resource
	count int
}

// note notes something for the log, about a member if the ID is not 0.
func (n *Node) note(id ID, level slog.Level, text string, args ...any) {
	n.after.lines = append(n.after.lines, line{subject{text, id}, level, 1, args})
}

// lost notes that a lease was lost. One line tells of all that a step has lost for
// the same reason.
func (a *aftermath) lost(resource string, why ending) {
	if last := len(a.losses) - 1; last >= 0 && a.losses[last].why == why {
		a.losses[last].count++
		return
	}
	a.losses = append(a.losses, loss{why, resource, 1})
}

// A journal writes to the log, each subject once in a while.
type journal struct {
	*slog.Logger
	throttle *logthrottle.Throttle[subject]
}

// quiet is how long a subject is not mentioned again.
const quiet = 10 * time.Second

func newJournal(c *Config) journal {
	return journal{c.Logger.With("member", c.self().name()), logthrottle.New[subject](quiet)}
}

// write logs what a step has left. There are as many subjects as there are members
// and strangers, times a few.
func (j *journal) write(a *aftermath) {
	for _, l := range a.losses {
		text := "leases lost: " + l.why.String()
		a.lines = append(a.lines, line{subject{text: text}, slog.LevelWarn, l.count, []any{"count", l.count, "first", l.first}})
	}
	for _, l := range a.lines {
		suppressed, ok := j.throttle.Allow(l.subject, l.count)
		if !ok {
			continue
		}
		if suppressed > 0 {
			l.args = append(l.args, "since_last", suppressed)
		}
		j.Log(context.Background(), l.level, l.text, l.args...)
	}
}

// trouble remembers what is wrong with a clock, and returns the reason for leases
// that are lost with it.
func (n *Node) trouble(note *machine.Notice) ending {
	id := ID(note.Peer)
	m := n.roster.member(id)
	switch note.What {
	case machine.ClockStep:
		now, _ := n.time.read()
		n.clock.Steps++
		n.clock.Stepped, n.clock.By, n.clock.Wrong = timeOf(now.Wall), note.By, false
		for _, m := range n.roster.members {
			m.off = 0
		}
		n.note(0, slog.LevelError, "the wall clock of this computer was set: all leases are dropped", "by", note.By)
		return clockStepped
	case machine.OwnClock:
		n.clock.Wrong = true
		n.note(0, slog.LevelError, "most other members find the wall clock of this computer wrong: all leases are dropped, and none is to be had until it is right")
		return clockWrong
	case machine.PeerClock:
		m.off = note.By
		n.note(id, slog.LevelError, "a member's wall clock differs from ours by more than epsilon: it is ignored until it is right", "of", n.nameOf(id), "ahead", note.By)
	case machine.PeerClockOK:
		m.off = 0
		n.clock.Wrong = n.clock.Wrong && n.mostDiffer()
		n.note(id, slog.LevelInfo, "a member's wall clock is right again", "of", n.nameOf(id))
	case machine.EqualIDs:
		n.sawTwins(id)
	default: // is no trouble
	}
	return notRenewed
}

// mostDiffer reports whether the clocks of most others differ from ours.
func (n *Node) mostDiffer() bool {
	differ := 0
	for _, m := range n.roster.members {
		if m.off != 0 {
			differ++
		}
	}
	return 2*differ > len(n.roster.members)
}
