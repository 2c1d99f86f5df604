package flease

import (
	"log/slog"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/mono"
)

// aftermath is what a step leaves to be done when the lock is free again.
type aftermath struct {
	wake    []*batch // have ended
	remarks []remark // for the log
}

// A subject is what a remark is about. Remarks on the same subject are not
// repeated too often.
type subject struct {
	what topic
	id   ID // of the member that it is about; 0 if none
}

// A topic is a kind of remark.
type topic uint8

const (
	sleeping topic = iota + 1
	stepping
	ownClockWrong
	memberClockWrong
	memberClockRight
	equalIDs
	ousted
	otherGroup
	losing
)

// A remark is something to be logged.
type remark struct {
	subject
	name     string // of the member that it is about
	by       time.Duration
	resource string // the first of
	count    int    // so many
	why      ending
	args     []any // more to say
}

func (a *aftermath) note(r remark) { a.remarks = append(a.remarks, r) }

// noteOf notes something about a member.
func (n *Node) noteOf(what topic, id ID, r remark) {
	r.subject, r.name = subject{what, id}, n.nameOf(id)
	n.after.note(r)
}

// lost notes that a lease was lost. A remark tells of all that a step has lost for
// the same reason.
func (a *aftermath) lost(resource string, why ending) {
	if last := len(a.remarks) - 1; last >= 0 && a.remarks[last].what == losing && a.remarks[last].why == why {
		a.remarks[last].count++
		return
	}
	a.note(remark{subject: subject{what: losing}, resource: resource, count: 1, why: why})
}

// trouble remembers what is wrong with a clock, and returns the reason for leases
// that are lost with it.
func (n *Node) trouble(note *machine.Notice) ending {
	id := ID(note.Peer)
	m := n.member(id)
	switch note.What {
	case machine.ClockStep:
		now, _ := n.time.read()
		n.clock.Steps++
		n.clock.Stepped, n.clock.By, n.clock.Wrong = time.Unix(0, int64(now.Wall)), note.By, false
		for _, m := range n.members {
			m.off = 0
		}
		n.after.note(remark{subject: subject{what: stepping}, by: note.By})
		return clockStepped
	case machine.OwnClock:
		n.clock.Wrong = true
		n.after.note(remark{subject: subject{what: ownClockWrong}})
		return clockWrong
	case machine.PeerClock:
		m.off = note.By
		n.noteOf(memberClockWrong, id, remark{by: note.By})
	case machine.PeerClockOK:
		m.off = 0
		n.clock.Wrong = n.clock.Wrong && n.mostDiffer()
		n.noteOf(memberClockRight, id, remark{})
	case machine.EqualIDs:
		n.sawTwins(id)
	default: // is no trouble
	}
	return notRenewed
}

// mostDiffer reports whether the clocks of most others differ from ours.
func (n *Node) mostDiffer() bool {
	differ := 0
	for _, m := range n.members {
		if m.off != 0 {
			differ++
		}
	}
	return 2*differ > len(n.members)
}

// quiet is how long a subject is not mentioned again.
const quiet = 10 * time.Second

// A journal writes remarks to the log, each subject once in a while.
type journal struct {
	log  *slog.Logger
	said map[subject]saying
}

// A saying is when a subject was mentioned last, and how often it would have been
// since.
type saying struct {
	at     mono.Instant
	passed int
}

// A line is ready to be logged.
type line struct {
	level slog.Level
	text  string
	args  []any
}

// write turns remarks into lines, under the node's lock. There are as many
// subjects as there are members, times a few.
func (j *journal) write(now machine.Time, a *aftermath) []line {
	var lines []line
	for i := range a.remarks {
		r := &a.remarks[i]
		last, known := j.said[r.subject]
		if known && now.Mono.Sub(last.at) < quiet {
			last.passed += max(1, r.count)
			j.said[r.subject] = last
			continue
		}
		l := r.line()
		if last.passed > 0 {
			l.args = append(l.args, "since_last", last.passed)
		}
		lines = append(lines, l)
		if j.said == nil {
			j.said = make(map[subject]saying)
		}
		j.said[r.subject] = saying{at: now.Mono}
	}
	return lines
}

// line words a remark.
func (r *remark) line() line {
	of := append([]any{"of", r.name}, r.args...)
	switch r.what {
	case sleeping:
		return line{slog.LevelWarn, "the computer was suspended: all leases are dropped", nil}
	case stepping:
		return line{slog.LevelError, "the wall clock of this computer was set: all leases are dropped", []any{"by", r.by}}
	case ownClockWrong:
		return line{slog.LevelError, "most other members find the wall clock of this computer wrong: all leases are dropped, and none is to be had until it is right", nil}
	case memberClockWrong:
		return line{slog.LevelError, "a member's wall clock differs from ours by more than epsilon: it is ignored until it is right", append(of, "ahead", r.by)}
	case memberClockRight:
		return line{slog.LevelInfo, "a member's wall clock is right again", of}
	case equalIDs:
		return line{slog.LevelError, "two processes run as the same member, and one of them is told to give way: stop it, and give each process an ID of its own", of}
	case ousted:
		return line{slog.LevelError, "another process runs as this member: this one takes part no more, and all its leases are dropped. Stop one of the two", r.args}
	case otherGroup:
		return line{slog.LevelError, otherGroupText, append([]any{"stranger", r.name}, r.args...)}
	default:
		return line{slog.LevelWarn, "leases lost: " + r.why.String(), []any{"count", r.count, "first", r.resource}}
	}
}
