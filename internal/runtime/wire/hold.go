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

// FromLeaseRequest encodes a request of an owner to the leader.
func FromLeaseRequest(r *protocol.LeaseRequest) *leaseholdv1.HoldRequest {
	return &leaseholdv1.HoldRequest{
		Version:   Version,
		Namespace: string(r.Namespace),
		Holder:    fromHolderWithHash(r.Holder),
		Seq:       uint64(r.Seq),
		Term:      uint64(r.Term),
		Heard:     uint64(r.Heard),
		Applied:   uint64(r.Applied),
		Leases:    fromLeases(len(r.Leases), func(i int) leasehold.Lease { return r.Leases[i] }),
		Leaving:   r.Leaving,
		Gone:      fromID(r.Gone),
		Load:      r.Load,
		Loads:     FromLoads(r.Loads),
		Mover:     r.Mover,
		Moves:     fromEach(r.Moves, fromMoveReport),
		Imports:   fromEach(r.Imports, fromImport),
		Parting:   r.Parting,
		Draining:  r.Draining,
		Suspended: r.Suspended,
		Resumed:   uint64(r.Resumed),
	}
}

// ToLeaseRequest decodes a request of an owner. It does not check the version: see [CheckClient].
func ToLeaseRequest(r *leaseholdv1.HoldRequest, l protocol.Limits) (*protocol.LeaseRequest, error) {
	leases, err := toLeases(r.GetLeases(), l, func(to *leasehold.Lease) *leasehold.Lease { return to })
	out := &protocol.LeaseRequest{
		Namespace: leasehold.Namespace(r.GetNamespace()),
		Holder:    get(&err, r.GetHolder(), ToHolder),
		Seq:       protocol.Seq(r.GetSeq()),
		Term:      leasehold.Term(r.GetTerm()),
		Heard:     protocol.Seq(r.GetHeard()),
		Applied:   protocol.Seq(r.GetApplied()),
		Leases:    leases,
		Leaving:   r.GetLeaving(),
		Gone:      get(&err, r.GetGone(), toSession),
		Load:      r.GetLoad(),
		Loads:     get(&err, r.GetLoads(), ToLoads),
		Mover:     r.GetMover(),
		Imports:   get(&err, r.GetImports(), toImports),
		Moves:     get(&err, r.GetMoves(), toMoveReports),
		Parting:   r.GetParting(),
		Draining:  r.GetDraining(),
		Suspended: r.GetSuspended(),
		Resumed:   leasehold.Generation(r.GetResumed()),
	}
	if err != nil {
		return nil, err
	}
	return checked(out, out.Validate(l))
}

// FromLeaseReply encodes a reply of the leader to an owner.
func FromLeaseReply(r *protocol.LeaseReply) *leaseholdv1.HoldResponse {
	grant := &leaseholdv1.Grant{
		Namespace:  string(r.Namespace),
		Session:    fromID(r.Session),
		Leader:     string(r.Leader),
		Term:       uint64(r.Term),
		Seq:        uint64(r.Seq),
		Echo:       uint64(r.Echo),
		Timing:     fromTiming(r.Timing),
		Offers:     fromLeases(len(r.Offers), func(i int) leasehold.Lease { return r.Offers[i].Lease }),
		Clock:      int64(r.Clock),
		Incumbent:  FromHolder(r.Incumbent),
		Contender:  FromHolder(r.Contender),
		Departures: fromEach(r.Departures, fromDeparture),
		Arrivals:   fromEach(r.Arrivals, fromArrival),
		Draining:   r.Draining,
		Idle:       r.Idle,
		Collecting: r.Collecting,
		Goodbye:    r.Goodbye,
		Refusal:    uint32(r.Refusal),
	}
	grant.Fresh, grant.Tickets = fromOffers(r.Offers)
	return &leaseholdv1.HoldResponse{Version: Version, Kind: &leaseholdv1.HoldResponse_Grant{Grant: grant}}
}

// ToLeaseReply decodes a reply of the leader to an owner.
func ToLeaseReply(g *leaseholdv1.Grant, l protocol.Limits) (*protocol.LeaseReply, error) {
	if g.GetRefusal() > math.MaxUint8 {
		return nil, leasehold.Errorf(opReply, leasehold.ErrInvalid, "", "unknown refusal %d", g.GetRefusal())
	}
	if err := tooMany("departures and arrivals", len(g.GetDepartures())+len(g.GetArrivals()), 2*protocol.MaxMoves); err != nil {
		return nil, err
	}
	offers, err := toLeases(g.GetOffers(), l, func(o *protocol.Offer) *leasehold.Lease { return &o.Lease })
	out := &protocol.LeaseReply{
		Namespace:  leasehold.Namespace(g.GetNamespace()),
		Session:    get(&err, g.GetSession(), toSession),
		Leader:     storage.ManagerID(g.GetLeader()),
		Term:       leasehold.Term(g.GetTerm()),
		Seq:        protocol.Seq(g.GetSeq()),
		Echo:       protocol.Seq(g.GetEcho()),
		Timing:     toTiming(g.GetTiming()),
		Offers:     offers,
		Clock:      mono.Instant(g.GetClock()),
		Incumbent:  get(&err, g.GetIncumbent(), toOptionalHolder),
		Contender:  get(&err, g.GetContender(), toOptionalHolder),
		Departures: get(&err, g.GetDepartures(), toDepartures),
		Arrivals:   get(&err, g.GetArrivals(), toArrivals),
		Draining:   g.GetDraining(),
		Idle:       g.GetIdle(),
		Goodbye:    g.GetGoodbye(),
		Collecting: g.GetCollecting(),
		Refusal:    leasehold.Kind(g.GetRefusal()),
	}
	if err == nil {
		err = markFresh(out.Offers, g.GetFresh(), g.GetTickets())
	}
	if err != nil {
		return nil, err
	}
	return checked(out, out.Validate(l))
}

// FromNotLeader encodes a redirect of a manager that is not the leader.
func FromNotLeader(n protocol.NotLeader) *leaseholdv1.NotLeader {
	return &leaseholdv1.NotLeader{Term: uint64(n.Term), Leader: string(n.Leader)}
}

// ToNotLeader decodes a redirect of a manager that is not the leader.
func ToNotLeader(n *leaseholdv1.NotLeader) (protocol.NotLeader, error) {
	out := protocol.NotLeader{Term: leasehold.Term(n.GetTerm()), Leader: storage.ManagerID(n.GetLeader())}
	if err := out.Validate(); err != nil {
		return protocol.NotLeader{}, err
	}
	return out, nil
}
