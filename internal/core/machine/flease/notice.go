package flease

import "time"

// A Lease is a tenure of a resource. It is over when one of the clocks has
// reached its part of Until.
type Lease struct {
	Fence uint64
	Until Time
}

// A Notable is something that the shell should know.
type Notable uint8

// What a machine may have to say.
const (
	Acquired    Notable = iota + 1 // we have the lease
	Renewed                        // we have it for longer
	Lost                           // we have it no more, and did not release it
	Refused                        // of a try: someone else has it, and most members know
	Unreachable                    // of a try, or a release: too few members answer
	Disputed                       // of a try, or a release: others got in the way, or members disagree, time and again
	Released                       // most members know that we have released it
	Changed                        // a watched resource seems to have another holder
	Ready                          // we take part from now on, or again
	ClockStep                      // our wall clock was set: all leases are dropped, and if it was set forward all else is forgotten
	OwnClock                       // most others find our clock wrong: all leases are dropped
	PeerClock                      // a peer's clock is wrong: it is ignored
	PeerClockOK                    // it is right again
	Stopped                        // of any bid: it has ended, because we gave way
	GaveWay                        // another process with our id is alive, and stays: we never take part again
	EqualIDs                       // two processes with the same id are alive, and we are not the one that gives way
	notables
)

var notableNames = [notables]string{
	"", "acquired", "renewed", "lost", "refused", "unreachable", "disputed", "released", "changed", "ready",
	"clock step", "own clock wrong", "peer's clock wrong", "peer's clock right", "stopped", "gave way", "equal ids",
}

func (n Notable) String() string { return notableNames[n] }

// A Notice is one of them.
type Notice struct {
	What   Notable
	Name   string        // of the resource, where it is about one
	Tag    any           // of the bid, where it is about one
	Lease  Lease         // of Acquired, Renewed and Lost
	Holder Process       // of Refused and Changed: who has it; 0 is nobody
	Fence  uint64        // of Refused and Changed
	Until  Wall          // of Refused and Changed: when it ends, by the holder's clock
	Unsure bool          // of Changed: whether somebody has it is not known yet
	Peer   Process       // whose clock, or id, it is about
	By     time.Duration // by how much a clock is off
}

func (m *Machine) notice(n Notice) { m.notices = append(m.notices, n) }

// tell says something about a bid.
func (m *Machine) tell(b *bid, n Notice) {
	n.Name, n.Tag = b.cell.name, b.tag
	m.notice(n)
}

// Notices returns what there is to say since the last call. It is valid until
// the next.
func (m *Machine) Notices() []Notice {
	m.told, m.notices = m.notices, m.told[:0]
	return m.told
}
