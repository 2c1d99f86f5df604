package flease

import "time"

// A Lease is a tenure of a resource. It has ended when one of the clocks has reached its part of
// Until.
type Lease struct {
	Fence uint64
	Until Time
}

// A Notable is the type of a notice.
type Notable uint8

// Types of notices.
const (
	Acquired    Notable = iota + 1 // this process has the lease
	Renewed                        // the lease was extended
	Lost                           // the lease has ended without a release
	Refused                        // of a try: another process has it, and a majority knows
	Unreachable                    // of a try, or a release: too few members reply
	Disputed                       // of a try, or a release: repeatedly lost to other proposers, or members disagree
	Released                       // a majority knows of the release
	Changed                        // a watched resource seems to have another holder
	Ready                          // this process participates from now on, or again
	ClockStep                      // the wall clock was stepped: all leases are dropped, and after a forward step all other state too
	OwnClock                       // most others find this clock wrong: all leases are dropped
	PeerClock                      // a peer's clock is wrong: the peer is ignored
	PeerClockOK                    // it is right again
	Stopped                        // of any bid: it has ended, because this process gave way to its twin
	GaveWay                        // a twin stays: this process never participates again
	EqualIDs                       // two processes with the same id are alive, and this one does not give way
	notables
)

var notableNames = [notables]string{
	"", "acquired", "renewed", "lost", "refused", "unreachable", "disputed", "released", "changed", "ready",
	"clock step", "own clock wrong", "peer's clock wrong", "peer's clock right", "stopped", "gave way", "equal ids",
}

func (n Notable) String() string { return notableNames[n] }

// A Notice is an event for the shell.
type Notice struct {
	What   Notable
	Name   string        // of the resource, if any
	Tag    any           // of the bid, if any
	Lease  Lease         // of Acquired, Renewed and Lost
	Holder Process       // of Refused and Changed: holder; 0 if there is none
	Fence  uint64        // of Refused and Changed
	Until  Wall          // of Refused and Changed: end on the holder's wall clock
	Unsure bool          // of Changed: it is not known yet whether there is a holder
	Peer   Process       // the process whose clock or id it is about
	By     time.Duration // clock error
}

func (m *Machine) notice(n Notice) { m.notices = append(m.notices, n) }

// noticeBid emits a notice about a bid.
func (m *Machine) noticeBid(b *bid, n Notice) {
	n.Name, n.Tag = b.cell.name, b.tag
	m.notice(n)
}

// Notices returns the notices since the last call. The slice is valid until the next call.
func (m *Machine) Notices() []Notice {
	m.delivered, m.notices = m.notices, m.delivered[:0]
	return m.delivered
}
