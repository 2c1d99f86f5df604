package wire

import (
	"math"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const opMoves = "read moves"

func toTicket(b []byte) (protocol.Ticket, error) { return toID[protocol.Ticket]("read ticket", b) }

// tooMany returns an error for a list above its limit, before memory is allocated for it.
func tooMany(what string, n, most int) error {
	if n > most {
		return leasehold.Errorf(opMoves, leasehold.ErrLimit, "", "%d %s, at most %d are allowed", n, what, most)
	}
	return nil
}

func fromMoveReport(m *protocol.MoveReport) *leaseholdv1.MoveReport {
	return &leaseholdv1.MoveReport{
		Ticket:  fromID(m.Ticket),
		Start:   uint64(m.Range.Start),
		Limit:   uint64(m.Range.Limit),
		To:      FromHolder(m.To),
		State:   leaseholdv1.MoveState(m.State),
		Newest:  uint64(m.Newest),
		Backing: uint64(m.Backing),
		Records: m.Records,
		Bytes:   m.Bytes,
	}
}

func toMoveReports(list []*leaseholdv1.MoveReport) ([]protocol.MoveReport, error) {
	if err := tooMany("moves", len(list), protocol.MaxMoves); err != nil {
		return nil, err
	}
	return toEach(list, toMoveReport)
}

func toMoveReport(m *leaseholdv1.MoveReport) (out protocol.MoveReport, err error) {
	if s := m.GetState(); s < 0 || s > math.MaxUint8 {
		return out, leasehold.Errorf(opMoves, leasehold.ErrInvalid, "", "unknown state %d", s)
	}
	out = protocol.MoveReport{
		Ticket:  get(&err, m.GetTicket(), toTicket),
		Range:   toRange(m.GetStart(), m.GetLimit()),
		To:      get(&err, m.GetTo(), ToHolder),
		State:   protocol.MoveState(m.GetState()),
		Newest:  leasehold.Generation(m.GetNewest()),
		Backing: leasehold.Term(m.GetBacking()),
		Records: m.GetRecords(),
		Bytes:   m.GetBytes(),
	}
	return out, err
}

func fromDeparture(d *protocol.Departure) *leaseholdv1.Departure {
	return &leaseholdv1.Departure{
		Ticket:   fromID(d.Ticket),
		Start:    uint64(d.Range.Start),
		Limit:    uint64(d.Range.Limit),
		To:       FromHolder(d.To),
		Mover:    d.Mover,
		Identity: d.Identity,
	}
}

func toDeparture(d *leaseholdv1.Departure) (out protocol.Departure, err error) {
	out = protocol.Departure{
		Ticket:   get(&err, d.GetTicket(), toTicket),
		Range:    toRange(d.GetStart(), d.GetLimit()),
		To:       get(&err, d.GetTo(), ToHolder),
		Mover:    d.GetMover(),
		Identity: d.GetIdentity(),
	}
	return out, err
}

func toDepartures(list []*leaseholdv1.Departure) ([]protocol.Departure, error) {
	return toEach(list, toDeparture)
}

func fromArrival(a *protocol.Arrival) *leaseholdv1.Arrival {
	return &leaseholdv1.Arrival{
		Ticket:   fromID(a.Ticket),
		Start:    uint64(a.Range.Start),
		Limit:    uint64(a.Range.Limit),
		From:     FromHolder(a.From),
		Lsn:      uint64(a.Since.LSN),
		Newest:   uint64(a.Since.Newest),
		Identity: a.Identity,
	}
}

func toArrival(a *leaseholdv1.Arrival) (out protocol.Arrival, err error) {
	out = protocol.Arrival{
		Ticket:   get(&err, a.GetTicket(), toTicket),
		Range:    toRange(a.GetStart(), a.GetLimit()),
		From:     get(&err, a.GetFrom(), ToHolder),
		Since:    protocol.Since{LSN: leasehold.LSN(a.GetLsn()), Newest: leasehold.Generation(a.GetNewest())},
		Identity: a.GetIdentity(),
	}
	return out, err
}

func toArrivals(list []*leaseholdv1.Arrival) ([]protocol.Arrival, error) {
	return toEach(list, toArrival)
}

func fromImport(m *protocol.Import) *leaseholdv1.Import {
	return &leaseholdv1.Import{
		Ticket:  fromID(m.Ticket),
		Start:   uint64(m.Range.Start),
		Limit:   uint64(m.Range.Limit),
		Lsn:     uint64(m.Since.LSN),
		Newest:  uint64(m.Since.Newest),
		Backing: uint64(m.Backing),
	}
}

func toImports(list []*leaseholdv1.Import) ([]protocol.Import, error) {
	if err := tooMany("imports", len(list), protocol.MaxMoves); err != nil {
		return nil, err
	}
	return toEach(list, toImport)
}

func toImport(m *leaseholdv1.Import) (protocol.Import, error) {
	ticket, err := toTicket(m.GetTicket())
	since := protocol.Since{LSN: leasehold.LSN(m.GetLsn()), Newest: leasehold.Generation(m.GetNewest())}
	return protocol.Import{Ticket: ticket, Range: toRange(m.GetStart(), m.GetLimit()), Since: since, Backing: leasehold.Term(m.GetBacking())}, err
}

func fromOffers(offers []protocol.Offer) (fresh []uint32, tickets [][]byte) {
	moved := false
	for i := range offers {
		if !offers[i].Fresh {
			continue
		}
		fresh = append(fresh, uint32(i))
		tickets = append(tickets, fromID(offers[i].Ticket))
		moved = moved || !offers[i].Ticket.IsZero()
	}
	if !moved {
		return fresh, nil
	}
	return fresh, tickets
}

func markFresh(offers []protocol.Offer, fresh []uint32, tickets [][]byte) (err error) {
	if n := len(tickets); n != 0 && n != len(fresh) {
		return leasehold.Errorf(opReply, leasehold.ErrInvalid, "", "%d tickets of %d fresh offers: want none, or as many", n, len(fresh))
	}
	for i, place := range fresh {
		if int64(place) >= int64(len(offers)) || i > 0 && place <= fresh[i-1] {
			return leasehold.Errorf(opReply, leasehold.ErrInvalid, "", "fresh offer %d of %d: want ascending places", place, len(offers))
		}
		offers[place].Fresh = true
		if len(tickets) > 0 {
			offers[place].Ticket = get(&err, tickets[i], toTicket)
		}
	}
	return err
}
