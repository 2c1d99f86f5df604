package bylease

import (
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Problem: an owner that has received a higher term than the leader's rejects all its messages.
// Terms are derived from wall clocks, and increase from leader to leader as long as a majority of
// the managers keeps its memory. So either the owner is faulty, or the group has lost its memory:
// too many managers were restarted at once, and the wall clocks are behind the old term. In the
// second case a term above the owner's helps.
//
// Idea: the managers' memory distinguishes the two cases. A leader has the catalog from a majority
// that is not blank, or from all managers if too many were blank; and no manager that has received
// a later term accepts an earlier leader. So once a process has known a leader, all later leaders
// have higher terms than all those that the group has a record of. Terms without a record were lost
// before that moment, and an owner that has such a term has existed since then. Running owners
// reconnect within seconds. So an owner's claim is credible for a while after that moment
// (Config.Remember), and never again. An owner that reconnects later must be restarted, unless the
// wall clocks reach its term first. Not covered: a manager that keeps running in a partition until
// all others were restarted.
//
// A credible claim may still be false. Each claim may be ahead by about a day (manager.Config) and
// costs one election, and the next one counts only after a backoff that doubles.
//
// A term that was raised in this way is ahead of the clock. If all managers are restarted again
// before the clock has reached it, the next leader's term is lower again, until an owner reports
// it: fences only increase without reports if they are not ahead of the clocks.
//
// A claim of another manager always counts: it comes from a request that a leader has sent to it.
const (
	claimFades   = 4  // the backoff after a claim that counted, in Fades,
	claimDoubles = 10 // doubled for each earlier one, at most so many times
)

// claims has the history of owners' claims of higher terms.
type claims struct {
	known   bool
	since   mono.Instant // when a leader was first known
	counted int          // claims that ended a leadership
	last    mono.Instant // time of the last one
	noted   mono.Instant // time of the last note about a rejected claim
}

// leaderKnown records that a leader is known.
func (c *claims) leaderKnown(now mono.Instant) {
	if !c.known {
		c.known, c.since = true, now
	}
}

// credible reports whether a claim counts.
func (m *Machine) credible(now mono.Instant, e byrecord.Outranked) bool {
	c := &m.claims
	switch {
	case e.Manager:
		return true
	case now >= c.since.Add(m.cfg.Remember),
		c.counted > 0 && now < c.last.Add(claimFades*m.cfg.Fade<<min(c.counted-1, claimDoubles)):
		if c.noted == 0 || now >= c.noted.Add(m.cfg.Fade) {
			c.noted = now
			m.emit(byrecord.Note{What: byrecord.NoteDisbelieved, Term: e.By, OwnTerm: m.term})
		}
		return false
	}
	c.counted, c.last = c.counted+1, now
	return true
}
