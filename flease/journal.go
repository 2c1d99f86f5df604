package flease

import (
	"context"
	"log/slog"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
)

// deferredWork is the work of a step after it releases the lock.
type deferredWork struct {
	wake   []*batch // ended ones
	lines  []line   // for the log
	losses []loss
}

// A line is a log line.
type line struct {
	subject
	level slog.Level
	count int // of events
	args  []any
}

// A subject identifies lines that share a rate limit.
type subject struct {
	text string
	id   ID // of a member; 0 if none
}

// A loss is the leases that a step has lost for one reason.
type loss struct {
	why   ending
	first string // resource
	count int
}

// note adds a line to the log, about a member if the ID is not 0.
func (n *Node) note(id ID, level slog.Level, text string, args ...any) {
	n.deferred.lines = append(n.deferred.lines, line{subject{text, id}, level, 1, args})
}

// lost adds a lost lease. Consecutive losses for the same reason share a line.
func (a *deferredWork) lost(resource string, why ending) {
	if last := len(a.losses) - 1; last >= 0 && a.losses[last].why == why {
		a.losses[last].count++
		return
	}
	a.losses = append(a.losses, loss{why, resource, 1})
}

// A journal writes to the log, at a limited rate per subject.
type journal struct {
	*slog.Logger
	throttle *logthrottle.Throttle[subject]
}

// logInterval is the shortest time between two lines of a subject.
const logInterval = 10 * time.Second

func newJournal(c *Config) journal {
	return journal{c.Logger.With("member", c.self().name()), logthrottle.New[subject](logInterval)}
}

// write logs the lines of a step. The number of subjects is bounded: a few per member
// and stranger.
func (j *journal) write(a *deferredWork) {
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

// handleClock records a notice about clocks or equal IDs, and returns the reason for the
// leases that are lost with it.
func (n *Node) handleClock(note *machine.Notice) ending {
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
		n.note(0, slog.LevelError, "the wall clock of this computer differs from those of most other members: all leases are dropped, and none can be acquired until it is right")
		return clockWrong
	case machine.PeerClock:
		m.off = note.By
		n.note(id, slog.LevelError, "a member's wall clock differs from this one's by more than epsilon: its messages are dropped until it is right", "of", n.nameOf(id), "ahead", note.By)
	case machine.PeerClockOK:
		m.off = 0
		n.clock.Wrong = n.clock.Wrong && n.mostDiffer()
		n.note(id, slog.LevelInfo, "a member's wall clock is right again", "of", n.nameOf(id))
	case machine.EqualIDs:
		n.sawTwins(id)
	default:
	}
	return notRenewed
}

// mostDiffer reports whether the clocks of most other members are wrong compared with
// this node's.
func (n *Node) mostDiffer() bool {
	differ := 0
	for _, m := range n.roster.members {
		if m.off != 0 {
			differ++
		}
	}
	return 2*differ > len(n.roster.members)
}
