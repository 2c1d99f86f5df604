package bylease

import (
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// An owner that has heard of a higher term than ours takes no message of ours. Terms are made of wall clocks, and rise from
// leader to leader while a majority of the managers remembers. So it is either broken, or all managers have forgotten: too many were
// restarted at a time, and wall clocks are behind what they were. Then a term above that one helps.
//
// The managers' memory tells the two apart. A leader has the catalog from a majority that remembers, or from all
// if too many were blank; and no manager that has heard of a later leader takes it from an earlier one. So once a
// process has known a leader, all later ones have higher terms than those before, as far as the group remembers. What the
// group has forgotten, it had forgotten before that moment, and an owner that remembers it has been there since. Owners that
// live come back within seconds. So an owner's claim is credible for a while after that moment (Config.Remember), and then never
// again: an owner that comes back later must be started anew, if wall clocks do not reach its term before.
// What is not covered is a manager that runs on while it is cut off, until all others were restarted.
//
// While it is credible it may still be a lie. Each claim may be ahead by a day or so (manager.Config), costs one election, and the next one
// counts only after a time that doubles.
//
// A term that was raised is ahead of the clock. If all managers are restarted again before the clock has reached it, the next leader's term
// is lower once more, until an owner that lives has said so: fences rise by themselves only where they do not run ahead of clocks.
//
// A manager of the group is believed at any time: what it has heard of is a request that a leader has sent it.
const (
	claimFades   = 4  // after a claim that counted, the next one does so many Fades later,
	claimDoubles = 10 // times 2 for each before, so many times at most
)

// claims is what became of owners' claims to have heard of higher terms.
type claims struct {
	known   bool
	since   mono.Instant // when we first knew of a leader
	counted int          // claims that we gave a leadership up for
	last    mono.Instant // when
	noted   mono.Instant // when one was last noted that does not count
}

// met is a leader being known.
func (c *claims) met(now mono.Instant) {
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
			m.note(byrecord.NoteDisbelieved, uint64(e.By), uint64(m.term))
		}
		return false
	}
	c.counted, c.last = c.counted+1, now
	return true
}
