package wire

import (
	"math"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const opReply = "lease reply"

// FromLeaseRequest writes what an owner says to the leader.
func FromLeaseRequest(r *protocol.LeaseRequest) *leaseholdv1.HoldRequest {
	return &leaseholdv1.HoldRequest{
		Version:   Version,
		Namespace: string(r.Namespace),
		Holder:    FromHolder(r.Holder),
		Seq:       uint64(r.Seq),
		Term:      uint64(r.Term),
		Heard:     uint64(r.Heard),
		Applied:   uint64(r.Applied),
		Leases:    fromLeases(len(r.Leases), func(i int) leasehold.Lease { return r.Leases[i] }),
		Leaving:   r.Leaving,
		Gone:      fromSession(r.Gone),
		Load:      r.Load,
		Loads:     FromLoads(r.Loads),
		Mover:     r.Mover,
		Moves:     fromMoveReports(r.Moves),
		Imports:   fromImports(r.Imports),
		Parting:   r.Parting,
		Draining:  r.Draining,
		Suspended: r.Suspended,
		Resumed:   uint64(r.Resumed),
	}
}

// ToLeaseRequest reads what an owner says to the leader. It does not look at
// the version: see [CheckVersion].
func ToLeaseRequest(r *leaseholdv1.HoldRequest, l protocol.Limits) (*protocol.LeaseRequest, error) {
	n, err := countLeases(r.GetLeases(), l)
	if err != nil {
		return nil, err
	}
	holder, err := ToHolder(r.GetHolder())
	if err != nil {
		return nil, err
	}
	gone, err := toSession(r.GetGone())
	if err != nil {
		return nil, err
	}
	out := &protocol.LeaseRequest{
		Namespace: leasehold.Namespace(r.GetNamespace()),
		Holder:    holder,
		Seq:       protocol.Seq(r.GetSeq()),
		Term:      leasehold.Term(r.GetTerm()),
		Heard:     protocol.Seq(r.GetHeard()),
		Applied:   protocol.Seq(r.GetApplied()),
		Leases:    make([]leasehold.Lease, n),
		Leaving:   r.GetLeaving(),
		Gone:      gone,
		Load:      r.GetLoad(),
		Mover:     r.GetMover(),
		Parting:   r.GetParting(),
		Draining:  r.GetDraining(),
		Suspended: r.GetSuspended(),
		Resumed:   leasehold.Generation(r.GetResumed()),
	}
	if out.Loads, err = ToLoads(r.GetLoads()); err != nil {
		return nil, err
	}
	if out.Imports, err = toImports(r.GetImports()); err != nil {
		return nil, err
	}
	if out.Moves, err = toMoveReports(r.GetMoves()); err != nil {
		return nil, err
	}
	for i := range out.Leases {
		if out.Leases[i], err = leaseAt(r.GetLeases(), i); err != nil {
			return nil, err
		}
	}
	if err := out.Validate(l); err != nil {
		return nil, err
	}
	return out, nil
}

// FromLeaseReply writes what the leader says to an owner.
func FromLeaseReply(r *protocol.LeaseReply) *leaseholdv1.HoldResponse {
	grant := &leaseholdv1.Grant{
		Namespace:  string(r.Namespace),
		Session:    fromSession(r.Session),
		Leader:     string(r.Leader),
		Term:       uint64(r.Term),
		Seq:        uint64(r.Seq),
		Echo:       uint64(r.Echo),
		Timing:     fromTiming(r.Timing),
		Offers:     fromLeases(len(r.Offers), func(i int) leasehold.Lease { return r.Offers[i].Lease }),
		Clock:      int64(r.Clock),
		Incumbent:  FromHolder(r.Incumbent),
		Contender:  FromHolder(r.Contender),
		Departures: fromDepartures(r.Departures),
		Arrivals:   fromArrivals(r.Arrivals),
		Draining:   r.Draining,
		Idle:       r.Idle,
		Collecting: r.Collecting,
		Goodbye:    r.Goodbye,
		Refusal:    uint32(r.Refusal),
	}
	grant.Fresh, grant.Tickets = fromOffers(r.Offers)
	return &leaseholdv1.HoldResponse{Version: Version, Kind: &leaseholdv1.HoldResponse_Grant{Grant: grant}}
}

// ToLeaseReply reads what the leader says to an owner.
func ToLeaseReply(g *leaseholdv1.Grant, l protocol.Limits) (*protocol.LeaseReply, error) {
	if g.GetRefusal() > math.MaxUint8 {
		return nil, leasehold.Errorf(opReply, leasehold.ErrInvalid, "", "refusal %d is no kind of error", g.GetRefusal())
	}
	if err := tooMany("departures and arrivals", len(g.GetDepartures())+len(g.GetArrivals()), 2*protocol.MaxMoves); err != nil {
		return nil, err
	}
	n, err := countLeases(g.GetOffers(), l)
	if err != nil {
		return nil, err
	}
	session, err := toSession(g.GetSession())
	if err != nil {
		return nil, err
	}
	out := &protocol.LeaseReply{
		Namespace:  leasehold.Namespace(g.GetNamespace()),
		Session:    session,
		Leader:     storage.ManagerID(g.GetLeader()),
		Term:       leasehold.Term(g.GetTerm()),
		Seq:        protocol.Seq(g.GetSeq()),
		Echo:       protocol.Seq(g.GetEcho()),
		Timing:     toTiming(g.GetTiming()),
		Offers:     make([]protocol.Offer, n),
		Clock:      mono.Instant(g.GetClock()),
		Draining:   g.GetDraining(),
		Idle:       g.GetIdle(),
		Goodbye:    g.GetGoodbye(),
		Collecting: g.GetCollecting(),
		Refusal:    leasehold.Kind(g.GetRefusal()),
	}
	if out.Incumbent, err = toOptionalHolder(g.GetIncumbent()); err != nil {
		return nil, err
	}
	if out.Contender, err = toOptionalHolder(g.GetContender()); err != nil {
		return nil, err
	}
	if out.Departures, err = each(g.GetDepartures(), toDeparture); err != nil {
		return nil, err
	}
	if out.Arrivals, err = each(g.GetArrivals(), toArrival); err != nil {
		return nil, err
	}
	for i := range out.Offers {
		if out.Offers[i].Lease, err = leaseAt(g.GetOffers(), i); err != nil {
			return nil, err
		}
	}
	if err := markFresh(out.Offers, g.GetFresh(), g.GetTickets()); err != nil {
		return nil, err
	}
	if err := out.Validate(l); err != nil {
		return nil, err
	}
	return out, nil
}

// FromNotLeader writes the answer of a manager that does not lead.
func FromNotLeader(n protocol.NotLeader) *leaseholdv1.NotLeader {
	return &leaseholdv1.NotLeader{Term: uint64(n.Term), Leader: string(n.Leader)}
}

// ToNotLeader reads the answer of a manager that does not lead.
func ToNotLeader(n *leaseholdv1.NotLeader) (protocol.NotLeader, error) {
	out := protocol.NotLeader{Term: leasehold.Term(n.GetTerm()), Leader: storage.ManagerID(n.GetLeader())}
	if err := out.Validate(); err != nil {
		return protocol.NotLeader{}, err
	}
	return out, nil
}
