package manager

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
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

	Parting  bool // it wants to leave
	Draining bool // an operator wants it to hold nothing
	Mover    bool // it can move state
	MovesIn  int  // under way to it
	MovesOut int  // under way from it
	// Suspended: its leases have passed their deadline, and are kept (see outage.go), or wait to be
	// resumed (see restored.go).
	Suspended bool
}

// Owners returns all sessions, sorted by name; of one name, who has it first.
func (m *Machine) Owners(now mono.Instant) []Owner {
	var out []Owner
	for _, s := range m.members.seats {
		for _, p := range []*peer{s.incumbent, s.contender} {
			if p != nil {
				out = append(out, p.status(now))
			}
		}
	}
	for _, p := range m.members.ghosts() {
		out = append(out, p.status(now))
	}
	return out
}

// A HotKey is a key that costs its owner much.
type HotKey struct {
	Key   leasehold.Key
	Rate  float64 // work per second, as the owner last said
	Owner leasehold.OwnerID
}

// HotKeys returns the keys that cost most of those that their owners still hold,
// the hottest first.
func (m *Machine) HotKeys(most int) []HotKey {
	var out []HotKey
	for _, s := range m.members.seats {
		if s.incumbent.loads == nil {
			continue
		}
		for _, h := range s.incumbent.appendHot(nil) {
			out = append(out, HotKey{Key: h.Key, Rate: h.Rate, Owner: s.owner})
		}
	}
	slices.SortFunc(out, func(a, b HotKey) int { return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Key, b.Key)) })
	return out[:min(most, len(out))]
}

func (p *peer) status(now mono.Instant) Owner {
	o := Owner{
		Holder: p.holder, Leases: len(p.held.leases), Load: p.load, Patience: max(0, p.renewal.until.Sub(now)),
		Parting: p.exit.parting(), Draining: p.exit.draining, Mover: p.moves.mover != "", MovesIn: len(p.moves.in), MovesOut: len(p.moves.out),
		Suspended: len(p.held.leases) > 0 && (p.renewal.silent(now) || p.claims.deferred()),
	}
	switch {
	case p.acks.echo == 0:
		o.Standing = Silent
	case p.seat == nil || p.seat.incumbent != p:
		o.Standing = Waiting
	case !p.acks.proven:
		o.Standing = Greeted
	default:
		o.Standing = Member
	}
	for _, l := range p.held.leases {
		o.Share += (float64(l.Range.Last()-l.Range.Start) + 1) / (1 << 64)
	}
	return o
}

// A Move is state on its way from one owner to another, or to the same one if
// leases that lie side by side are made one.
type Move struct {
	ID       string // tells it from others, and gives its ticket not away; "" if it has not begun
	Range    leasehold.Range
	From, To leasehold.OwnerID
	State    protocol.MoveState // as the source last said; 0 if it has not spoken of it, or it has not begun

	Records, Bytes uint64        // sent
	Age            time.Duration // since it began
	Patience       time.Duration // how long it may still make no progress

	Reason table.Reason // why it is wanted
}

// Moves returns the moves under way, the oldest first, and then those that wait
// for their turn, by source: at most so many of both.
// What waits may turn out not to be wanted any more.
func (m *Machine) Moves(now mono.Instant, most int) []Move {
	out := make([]Move, 0, min(most, len(m.moves.all)+m.members.backlog()))
	for _, mv := range m.moves.all[:min(most, len(m.moves.all))] {
		out = append(out, Move{
			ID: mv.ticket.Short(), Range: mv.Range, From: mv.from.holder.Owner, To: mv.to.holder.Owner,
			State: mv.report.State, Records: mv.report.Records, Bytes: mv.report.Bytes,
			Age: now.Sub(mv.began), Patience: max(0, mv.deadline.Sub(now)), Reason: m.plan.reason(mv.Range, mv.from.holder, mv.to.holder),
		})
	}
	for _, s := range m.members.seats {
		for _, w := range s.incumbent.moves.backlog {
			if len(out) >= most {
				return out
			}
			if !w.to.gone {
				_, reason := m.plan.reasons.At(w.Start)
				out = append(out, Move{Range: w.Range, From: s.owner, To: w.to.owner, Reason: reason})
			}
		}
	}
	return out
}

// A Lull is why a policy that goes by loads does not.
type Lull uint8

// The lulls.
const (
	NoLull      Lull = 0 // it does, or it is one that never does
	LullQuiet   Lull = 1 // there is too little to do: Have per second and owner, Want at least
	LullUnknown Lull = 2 // too little is known: Have of the keys that are held, 0 to 1, Want at least
)

// Lull returns why nothing is moved for the sake of balance, with what was
// compared. It costs about as much as it costs the policy to be told the loads.
func (m *Machine) Lull() (why Lull, have, want float64) {
	switch m.cfg.Policy.Name() {
	case partition.Balanced{}.Name(), partition.Adaptive{}.Name():
	default:
		return NoLull, 0, 0
	}
	var rate, known, held float64
	for _, s := range m.members.seats {
		for _, l := range s.incumbent.held.leases {
			held += sizeOf(l.Range)
		}
		if s.incumbent.loads == nil {
			continue
		}
		for _, c := range s.incumbent.cells(1) {
			rate += c.Rate
			known += sizeOf(c.Range)
		}
	}
	switch {
	case held == 0:
		return NoLull, 0, 0 // there is nothing to balance
	case known < partition.EnoughKnown*held:
		return LullUnknown, known / held, partition.EnoughKnown
	case rate < quiet*float64(len(m.members.seats)):
		return LullQuiet, rate / float64(len(m.members.seats)), quiet
	}
	return NoLull, 0, 0
}
