package flease

import (
	"math/bits"
	"slices"
	"time"
)

// decide chooses the value to write, after a majority has promised the round and reported its
// values. The new value replaces all of these, so it must not violate any of them.
func (m *Machine) decide(now Time, b *bid) {
	own, other, others := m.classify(now, b)
	switch {
	case b.held && (own == nil || own.Released || own.Fence != b.lease.Fence || now.reached(b.lease.Until)):
		m.lost(b)
	case b.held:
		m.claim(now, b, b.lease.Fence) // while we have it, no other reported value can be committed
	case b.wish == wishNone && own != nil && !own.Released && others == 0:
		m.writeRelease(now, b, own.Fence)
	case b.wish == wishNone:
		m.endUnclaimed(b)
	case others == 0:
		m.claimNew(now, b)
	case b.wish == wishHold:
		m.await(now, b, &other.Value)
	case others == 1 && b.known(other):
		m.refused(b, other)
	case others == 1 && m.latest(b, other):
		b.purpose, b.value = toReport, other.Value
		m.write(now, b)
	default:
		// A member has missed a release, or the others have lost a lease that they accepted.
		// Waiting is safe, but a try needs a result: other members may reply first the next time.
		m.retry(now, b)
	}
}

// classify classifies the reported values: our own; the number of values that keep us from the lease;
// and the longest of these.
func (m *Machine) classify(now Time, b *bid) (own, other *sighting, others int) {
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

// latest reports whether there is no value of a later ballot, nor the fence of a later tenure.
func (m *Machine) latest(b *bid, v *sighting) bool {
	return v.Fence == b.round.fence && !slices.ContainsFunc(b.round.seen, func(s sighting) bool { return v.at.Less(s.at) })
}

func (m *Machine) ours(v *Value) bool {
	return v.Owner == m.cfg.Self && v.Incarnation == m.cfg.Incarnation
}

// binds reports whether a value keeps other processes from the lease.
func (m *Machine) binds(now Time, v *Value) bool {
	return v.Owner != 0 && !v.Released && !m.ours(v) && !m.over(now, v, now.Mono.Add(v.Left))
}

// claimNew claims a new tenure. Its fence is at least the wall clock's milliseconds, and more if
// there were more tenures. It must not run ahead of the clock; otherwise the first fence after a
// loss of all memories would be lower. So the bid waits if the fence would be ahead by more than
// epsilon. If it would be ahead by more than twice epsilon, some clock was wrong, and a wait of
// unknown length proves nothing.
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

// Raise makes the next fence of a resource from this process higher than the given one, and those
// from other members that read from it. It is for a fence that is known elsewhere and was lost
// here. The fence may be ahead of all clocks; no process waits for the clocks to reach it.
func (m *Machine) Raise(now Time, name string, fence uint64) error {
	m.observe(now)
	c, err := m.cell(now, name, m.cfg.Self)
	if err == nil {
		c.fence = max(c.fence, fence)
	}
	return err
}

func millis(w Wall) uint64 { return uint64(max(0, w) / Wall(time.Millisecond)) }

// claim writes our lease, which counts from now.
func (m *Machine) claim(now Time, b *bid, fence uint64) {
	m.proposer.serial++
	b.purpose, b.decided = toHold, now
	until := now.Wall.Add(m.cfg.Lease)
	if b.held {
		// Our clock may have been set back a little. The lease that is held until this write is
		// accepted, and the end that was reported to others, must not be later than the new end.
		until = max(until, b.value.Until)
	}
	b.value = Value{
		Owner: m.cfg.Self, Incarnation: m.cfg.Incarnation, Serial: m.proposer.serial, Fence: fence,
		Until: until, Left: m.cfg.Lease,
	}
	m.write(now, b)
}

// writeRelease writes the release of our lease.
func (m *Machine) writeRelease(now Time, b *bid, fence uint64) {
	m.proposer.serial++
	b.purpose = toRelease
	b.value = Value{Owner: m.cfg.Self, Incarnation: m.cfg.Incarnation, Serial: m.proposer.serial, Fence: fence, Until: now.Wall, Released: true}
	m.write(now, b)
}

// write begins the second phase of a round, or a renewal in the same round. It only goes to members
// whose promise was considered.
func (m *Machine) write(now Time, b *bid) {
	b.phase, b.round.sends = writing, 0
	b.round.accepts, b.round.rejects = 0, 0
	m.send(now, b)
}

// await waits until another process's lease has ended on both clocks. The owner sends its release
// to the members that have the lease; if we do not have it, we query again before.
func (m *Machine) await(now Time, b *bid, v *Value) {
	b.phase, b.losses, b.insist = waiting, 0, false
	b.awaited, b.awaits = *v, now.Mono.Add(m.cfg.Drift.Stretch(v.Left))
	m.notifyWatcher(now, b.cell)
	wall := v.Until.Add(m.cfg.Epsilon).Sub(now.Wall) + 1
	monotonic := m.cfg.Drift.Stretch(v.Left)
	wait := max(wall, monotonic) + m.jitter(m.cfg.Backoff)
	if c := &b.cell.value; !c.sameOwner(v) || c.Fence != v.Fence {
		wait = min(wait, m.cfg.Resend<<3)
	}
	m.at(b, now.Mono.Add(wait))
}

// committed handles acceptance by a majority.
func (m *Machine) committed(now Time, b *bid) {
	b.losses, b.insist = 0, false
	switch b.purpose {
	case toReport:
		m.noticeBid(b, Notice{What: Refused, Holder: b.value.Owner, Fence: b.value.Fence, Until: b.value.Until})
		m.after(now, b)
	case toRelease:
		m.noticeBid(b, Notice{What: Released, Fence: b.value.Fence})
		m.after(now, b)
	case toHold:
		m.granted(now, b)
	}
}

// after continues with a request that was made in the meantime, if any.
func (m *Machine) after(now Time, b *bid) {
	if b.wish == wishHold || b.wish == wishTry && b.purpose == toRelease {
		m.begin(now, b)
		return
	}
	m.proposer.finish(b)
}

// endUnclaimed ends a bid that has nothing to release.
func (m *Machine) endUnclaimed(b *bid) {
	m.noticeBid(b, Notice{What: Released})
	m.proposer.finish(b)
}

// granted handles a committed lease. If the lease, or the one that it renews, has ended in the
// meantime, it is not revived.
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
	m.updateRTT(now.Mono.Sub(b.decided.Mono))
	b.held, b.lease = true, Lease{b.value.Fence, until}
	b.wish = wishHold
	b.phase = resting
	early := m.jitter(m.cfg.Renew / 8) // spreads the renewals of leases that were acquired together
	m.at(b, b.decided.Mono.Add(min(m.cfg.Renew-early, m.remaining(now, b))))
	m.noticeBid(b, Notice{What: what, Lease: b.lease})
	if what == Acquired {
		m.notifyWatcher(now, b.cell)
	}
}

// remaining is the time until the lease ends on one of the clocks.
func (m *Machine) remaining(now Time, b *bid) time.Duration {
	return max(0, min(b.lease.Until.Mono.Sub(now.Mono), b.lease.Until.Wall.Sub(now.Wall)+1))
}

// lost ends a bid whose lease has ended.
func (m *Machine) lost(b *bid) {
	m.noticeBid(b, Notice{What: Lost, Lease: b.lease})
	m.proposer.finish(b)
}

// handleTimer handles the timer of a bid.
func (m *Machine) handleTimer(now Time, b *bid) {
	if b.held && now.reached(b.lease.Until) {
		m.lost(b)
		return
	}
	switch b.phase {
	case waiting:
		m.begin(now, b)
	case resting:
		if bits.OnesCount64(b.round.promises) < b.cell.group.majority || b.round.rejects != 0 {
			m.begin(now, b) // so that members without the round get the lease
			return
		}
		m.claim(now, b, b.lease.Fence) // in the same round: one round trip
	case reading, writing:
		why := Unreachable
		if b.round.rejects != 0 {
			why = Disputed
		}
		switch {
		case max(b.round.sends, b.losses) >= maxSends && m.exhausted(b, why):
		case b.round.rejects != 0 || b.phase == writing && m.abandons(now, b):
			b.losses++
			b.insist = b.insist || b.round.withheld
			m.begin(now, b)
		default:
			m.send(now, b)
		}
	}
}

// abandons reports whether to abandon a write: other members than those that promised may reply now,
// or too little of the lease remains.
func (m *Machine) abandons(now Time, b *bid) bool {
	if b.purpose == toHold && !b.held {
		return now.Mono >= b.decided.Mono.Add(m.cfg.Renew)
	}
	return b.round.sends > 1
}

// Release releases a lease, or cancels a bid. The lease ends for us at once: the caller must have
// stopped using it.
func (m *Machine) Release(now Time, name string) {
	m.observe(now)
	if c, _ := m.acceptor.cells.find(name); c != nil && c.bid != nil {
		m.release(now, c.bid)
	}
}

// Leave is Release for a shell that has a stake, with its tag. If that bid has ended, it has no
// effect.
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
		m.writeRelease(now, b, b.lease.Fence)
	case writing:
		if b.purpose == toHold {
			m.writeRelease(now, b, b.value.Fence)
		}
	case reading: // when the values are known, our own is released
	case waiting:
		if held {
			m.begin(now, b) // to find the round in which it can be released
			return
		}
		m.endUnclaimed(b)
	}
}
