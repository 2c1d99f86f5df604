package flease

import (
	"math/bits"
	"slices"
	"time"
)

// decide decides what to write, now that a majority has promised the round and
// said what was written before. What is written replaces all of that, so it must
// do no harm to any of it.
func (m *Machine) decide(now Time, b *bid) {
	own, other, others := m.sift(now, b)
	switch {
	case b.held && (own == nil || own.Released || own.Fence != b.lease.Fence || now.reached(b.lease.Until)):
		m.lost(b)
	case b.held:
		m.claim(now, b, b.lease.Fence) // while we have it, nothing else that was seen can come to count
	case b.wish == wishNone && own != nil && !own.Released && others == 0:
		m.giveUp(now, b, own.Fence)
	case b.wish == wishNone:
		m.unclaimed(b)
	case others == 0:
		m.claimNew(now, b)
	case b.wish == wishHold:
		m.await(now, b, &other.Value)
	case others == 1 && b.known(other):
		m.refused(b, other)
	case others == 1 && m.latest(b, other):
		b.purpose, b.value = toTell, other.Value
		m.write(now, b)
	default:
		// A member has missed a release; or is it the others who have forgotten a
		// lease that they accepted? To wait is safe, but a try wants an answer:
		// perhaps other members answer first the next time.
		m.retry(now, b)
	}
}

// sift finds what we wrote ourselves among what was seen, and what keeps us from
// the lease: how much, and of that what lasts longest.
func (m *Machine) sift(now Time, b *bid) (own, other *sighting, others int) {
	for i := range b.round.seen {
		switch s := &b.round.seen[i]; {
		case m.ours(&s.Value):
			own = s
		case m.binds(now, &s.Value):
			others++
			if other == nil || other.Left < s.Left {
				other = s
			}
		}
	}
	return own, other, others
}

// latest reports whether nothing was seen that was written after a value, nor the
// fence of a later tenure.
func (m *Machine) latest(b *bid, v *sighting) bool {
	return v.Fence == b.round.fence && !slices.ContainsFunc(b.round.seen, func(s sighting) bool { return v.at.Less(s.at) })
}

func (m *Machine) ours(v *Value) bool {
	return v.Owner == m.cfg.Self && v.Incarnation == m.cfg.Incarnation
}

// binds reports whether a value keeps others from the lease.
func (m *Machine) binds(now Time, v *Value) bool {
	return v.Owner != 0 && !v.Released && !m.ours(v) && !m.over(now, v, now.Mono.Add(v.Left))
}

// claimNew claims a tenure. Its fence is at least the wall clock's milliseconds,
// and more if there were more tenures than that. It must not run away from the
// clock: then the first one after all have forgotten would be lower. So we wait
// if it would be ahead by more than epsilon; but if it would be by more than twice
// that, some clock was wrong, and to wait for who knows how long proves nothing.
func (m *Machine) claimNew(now Time, b *bid) {
	clock := millis(now.Wall)
	fence := max(b.round.fence+1, clock)
	ahead := fence - clock
	if e := millis(Wall(m.cfg.Epsilon)); ahead > e && ahead <= 2*e+1 {
		b.phase = waiting
		m.at(b, now.Mono.Add(time.Duration(ahead-e)*time.Millisecond))
		return
	}
	m.claim(now, b, fence)
}

// Raise makes sure that the next fence that we give a resource is above a given one, and others' if they ask us: somebody has
// heard of that fence, and it was forgotten. It may be ahead of all clocks: then nobody waits for them.
func (m *Machine) Raise(now Time, name string, fence uint64) error {
	m.observe(now)
	c, err := m.cell(now, name, m.cfg.Self)
	if err == nil {
		c.fence = max(c.fence, fence)
	}
	return err
}

func millis(w Wall) uint64 { return uint64(max(0, w) / Wall(time.Millisecond)) }

// claim writes a lease of ours, that counts from now.
func (m *Machine) claim(now Time, b *bid, fence uint64) {
	m.proposer.serial++
	b.purpose, b.decided = toHold, now
	until := now.Wall.Add(m.cfg.Lease)
	if b.held {
		// Our clock may have been set back a little. What we believe in until this is
		// accepted, and what others were told, must not end later than this.
		until = max(until, b.value.Until)
	}
	b.value = Value{
		Owner: m.cfg.Self, Incarnation: m.cfg.Incarnation, Serial: m.proposer.serial, Fence: fence,
		Until: until, Left: m.cfg.Lease,
	}
	m.write(now, b)
}

// giveUp writes that we have released a lease of ours.
func (m *Machine) giveUp(now Time, b *bid, fence uint64) {
	m.proposer.serial++
	b.purpose = toRelease
	b.value = Value{Owner: m.cfg.Self, Incarnation: m.cfg.Incarnation, Serial: m.proposer.serial, Fence: fence, Until: now.Wall, Released: true}
	m.write(now, b)
}

// write begins the second half of a round, or a renewal in the same round. Only
// those are asked whose promise was considered.
func (m *Machine) write(now Time, b *bid) {
	b.phase, b.round.sends = writing, 0
	b.round.accepts, b.round.rejects = 0, 0
	m.send(now, b)
}

// await waits until someone else's lease is over on both clocks. Who has it tells
// those who know of it when it is released; if we do not, we ask again before.
func (m *Machine) await(now Time, b *bid, v *Value) {
	b.phase, b.losses, b.insist = waiting, 0, false
	b.awaited, b.awaits = *v, now.Mono.Add(m.cfg.Drift.Stretch(v.Left))
	m.inform(now, b.cell)
	wall := v.Until.Add(m.cfg.Epsilon).Sub(now.Wall) + 1
	monotonic := m.cfg.Drift.Stretch(v.Left)
	wait := max(wall, monotonic) + m.jitter(m.cfg.Backoff)
	if c := &b.cell.value; !c.sameOwner(v) || c.Fence != v.Fence {
		wait = min(wait, m.cfg.Resend<<3)
	}
	m.at(b, now.Mono.Add(wait))
}

// committed learns that a majority has accepted.
func (m *Machine) committed(now Time, b *bid) {
	b.losses, b.insist = 0, false
	switch b.purpose {
	case toTell:
		m.tell(b, Notice{What: Refused, Holder: b.value.Owner, Fence: b.value.Fence, Until: b.value.Until})
		m.after(now, b)
	case toRelease:
		m.tell(b, Notice{What: Released, Fence: b.value.Fence})
		m.after(now, b)
	case toHold:
		m.granted(now, b)
	}
}

// after goes on with what was wished for meanwhile, if anything was.
func (m *Machine) after(now Time, b *bid) {
	if b.wish == wishHold || b.wish == wishTry && b.purpose == toRelease {
		m.begin(now, b)
		return
	}
	m.proposer.finish(b)
}

// unclaimed ends a bid that has nothing to release.
func (m *Machine) unclaimed(b *bid) {
	m.tell(b, Notice{What: Released})
	m.proposer.finish(b)
}

// granted has the lease, unless it took so long that it is over again; or that
// the one which was to be renewed is: what was over is not brought back.
func (m *Machine) granted(now Time, b *bid) {
	until := Time{b.decided.Mono.Add(m.cfg.Lease), b.decided.Wall.Add(m.cfg.Lease)}
	if b.held && now.reached(b.lease.Until) {
		m.lost(b)
		return
	}
	if now.reached(until) {
		m.begin(now, b)
		return
	}
	what := Acquired
	if b.held {
		what = Renewed
	}
	m.took(now.Mono.Sub(b.decided.Mono))
	b.held, b.lease = true, Lease{b.value.Fence, until}
	b.wish = wishHold
	b.phase = resting
	early := m.jitter(m.cfg.Renew / 8) // leases that were acquired together are not renewed together
	m.at(b, b.decided.Mono.Add(min(m.cfg.Renew-early, m.remaining(now, b))))
	m.tell(b, Notice{What: what, Lease: b.lease})
	if what == Acquired {
		m.inform(now, b.cell)
	}
}

// remaining is how long a lease lasts, on the clock by which it ends first.
func (m *Machine) remaining(now Time, b *bid) time.Duration {
	return max(0, min(b.lease.Until.Mono.Sub(now.Mono), b.lease.Until.Wall.Sub(now.Wall)+1))
}

// lost ends a bid whose lease is over.
func (m *Machine) lost(b *bid) {
	m.tell(b, Notice{What: Lost, Lease: b.lease})
	m.proposer.finish(b)
}

// fire does what a bid has waited for.
func (m *Machine) fire(now Time, b *bid) {
	if b.held && now.reached(b.lease.Until) {
		m.lost(b)
		return
	}
	switch b.phase {
	case waiting:
		m.begin(now, b)
	case resting:
		if bits.OnesCount64(b.round.promises) < b.cell.group.majority || b.round.rejects != 0 {
			m.begin(now, b) // or who has forgotten the round would never hear of the lease
			return
		}
		m.claim(now, b, b.lease.Fence) // in the same round: one message there and one back
	case reading, writing:
		why := Unreachable
		if b.round.rejects != 0 {
			why = Disputed
		}
		switch {
		case max(b.round.sends, b.losses) >= maxSends && m.exhausted(b, why):
		case b.round.rejects != 0 || b.phase == writing && m.tired(now, b):
			b.losses++
			b.insist = b.insist || b.round.withheld
			m.begin(now, b)
		default:
			m.send(now, b)
		}
	}
}

// tired reports whether a write was asked for often enough: others than those who
// promised may answer by now, or what it asks for has become too short.
func (m *Machine) tired(now Time, b *bid) bool {
	if b.purpose == toHold && !b.held {
		return now.Mono >= b.decided.Mono.Add(m.cfg.Renew)
	}
	return b.round.sends > 1
}

// Release gives up a lease, or the wish for one. The lease is over for us at
// once: whoever calls this has seen to it that nobody relies on it any more.
func (m *Machine) Release(now Time, name string) {
	m.observe(now)
	if c, _ := m.acceptor.cells.find(name); c != nil && c.bid != nil {
		m.release(now, c.bid)
	}
}

// Leave is Release for a shell that has a stake, with its tag. If that bid is over,
// nothing happens.
func (m *Machine) Leave(now Time, r Ref, tag any) {
	m.observe(now)
	if c := m.acceptor.cells.at(r); c != nil && c.bid != nil && c.bid.tag == tag {
		m.release(now, c.bid)
	}
}

func (m *Machine) release(now Time, b *bid) {
	held := b.held
	b.wish, b.held = wishNone, false
	switch b.phase {
	case resting:
		m.giveUp(now, b, b.lease.Fence)
	case writing:
		if b.purpose == toHold {
			m.giveUp(now, b, b.value.Fence)
		}
	case reading: // when it is known what was written, what is ours is released
	case waiting:
		if held {
			m.begin(now, b) // to find out in which round it can be released
			return
		}
		m.unclaimed(b)
	}
}
