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

// A Standing is the status of a session.
type Standing uint8

// The standings.
const (
	Member  Standing = 1 // takes part in the partitioning
	Greeted Standing = 2 // has sent a request, and has not acknowledged a message
	Waiting Standing = 3 // waits for another session with its owner name
	Silent  Standing = 4 // holds leases, and has sent no request in this term
)

// An Owner is the status of a session, for display.
type Owner struct {
	Holder   *table.Holder
	Standing Standing
	Leases   int
	Load     float64       // work per second, as last reported
	Share    float64       // of the key space, 0 to 1
	Patience time.Duration // remaining time until its deadline

	Parting  bool // it is leaving
	Draining bool // an operator drains it
	Mover    bool // it can move state
	// Supervised: it has announced a death hash.
	Supervised bool
	MovesIn    int // moves to it
	MovesOut   int // moves from it
	// Suspended: its leases are past their deadline and kept (see outage.go), or wait to be resumed (see
	// restored.go).
	Suspended bool
}

// Owners returns all sessions, sorted by owner name; the incumbent of a name comes first.
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

// Reserved returns the leases that this leader grants to no session but s, and the instant until which it does so without a
// request of s. They are immutable. known is false while the table may lack leases: the store may have lost history.
func (m *Machine) Reserved(s leasehold.Session) (leases []leasehold.Lease, until mono.Instant, known bool) {
	if p := m.members.sessions[s]; p != nil {
		leases, until = p.held.leases, p.renewal.until
	}
	return leases, until, !m.history.doubted()
}

// A HotKey is a key with a high load.
type HotKey struct {
	Key   leasehold.Key
	Rate  float64 // work per second, as last reported
	Owner leasehold.OwnerID
}

// HotKeys returns the keys with the highest load that their owners still hold, the hottest first.
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
		Parting: p.exit.parting(), Draining: p.exit.draining, Mover: p.moves.mover != "", Supervised: !p.holder.DeathHash.IsZero(), MovesIn: len(p.moves.in), MovesOut: len(p.moves.out),
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

// A Move is the status of a move from one owner to another, or to the same one to merge adjacent leases.
type Move struct {
	ID       string // identifies the move without disclosing its ticket; "" if it has not started
	Range    leasehold.Range
	From, To leasehold.OwnerID
	State    protocol.MoveState // as last reported by the source; 0 if not reported

	Records, Bytes uint64        // sent
	Age            time.Duration // since it started
	Patience       time.Duration // remaining time without progress until it fails

	Reason table.Reason // why the plan requires it
}

// Moves returns the moves in progress, the oldest first, and then those in the backlog, by source: at most most of
// them. A move in the backlog may be obsolete.
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

// A Lull is why a policy that uses loads does not balance them.
type Lull uint8

// The lulls.
const (
	NoLull      Lull = 0 // it balances, or does not use loads
	LullQuiet   Lull = 1 // the load is too low: value and threshold are work per second and owner
	LullUnknown Lull = 2 // too little load is reported: value and threshold are the share of held keys with reports, 0 to 1
)

// Lull returns why nothing is moved for balance, with the value that is below a threshold. It costs about as much
// as preparing the policy's input.
func (m *Machine) Lull() (why Lull, value, threshold float64) {
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
		return NoLull, 0, 0 // nothing to balance
	case known < partition.EnoughKnown*held:
		return LullUnknown, known / held, partition.EnoughKnown
	case rate < m.cfg.MinLoad*float64(len(m.members.seats)):
		return LullQuiet, rate / float64(len(m.members.seats)), m.cfg.MinLoad
	}
	return NoLull, 0, 0
}
