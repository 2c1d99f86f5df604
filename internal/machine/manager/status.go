package manager

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// A Standing says what a leader makes of a session.
type Standing uint8

// The standings.
const (
	Member  Standing = 1 // it takes part
	Greeted Standing = 2 // it has spoken, but has not shown yet that it hears
	Waiting Standing = 3 // another session has its name
	Silent  Standing = 4 // it holds leases and has not spoken to this leader
)

// An Owner is a session as the leader sees it, for people to read.
type Owner struct {
	Holder   *table.Holder
	Standing Standing
	Leases   int
	Load     float64       // work per second, as it last said
	Share    float64       // of the key space, 0 to 1
	Patience time.Duration // how long it may still be silent
}

// Owners returns all sessions, sorted by name; of one name, who has it first.
func (m *Machine) Owners(now mono.Instant) []Owner {
	var out []Owner
	for _, s := range m.seats {
		for _, p := range []*peer{s.incumbent, s.contender} {
			if p != nil {
				out = append(out, p.status(now))
			}
		}
	}
	for _, p := range m.ghosts() {
		out = append(out, p.status(now))
	}
	return out
}

func (p *peer) status(now mono.Instant) Owner {
	o := Owner{Holder: p.holder, Leases: len(p.leases), Load: p.load, Patience: max(0, p.until.Sub(now))}
	switch {
	case p.echo == 0:
		o.Standing = Silent
	case p.seat == nil || p.seat.incumbent != p:
		o.Standing = Waiting
	case !p.proven:
		o.Standing = Greeted
	default:
		o.Standing = Member
	}
	for _, l := range p.leases {
		o.Share += (float64(l.Range.Last()-l.Range.Start) + 1) / (1 << 64)
	}
	return o
}
