package wire

import (
	"math"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const opMoves = "read moves"

// toTicket reads a ticket; no bytes are the zero ticket.
func toTicket(b []byte) (protocol.Ticket, error) {
	var t protocol.Ticket
	if len(b) != 0 && len(b) != len(t) {
		return t, leasehold.Errorf("read ticket", leasehold.ErrInvalid, "", "it has %d bytes, want %d", len(b), len(t))
	}
	copy(t[:], b)
	return t, nil
}

// fromTicket writes a ticket; the zero ticket is no bytes.
func fromTicket(t protocol.Ticket) []byte {
	if t.IsZero() {
		return nil
	}
	return t[:]
}

// tooMany reports an error if a list is longer than it may be, before anyone
// allocates for it.
func tooMany(what string, n, most int) error {
	if n > most {
		return leasehold.Errorf(opMoves, leasehold.ErrLimit, "", "%d %s, at most %d are allowed", n, what, most)
	}
	return nil
}

// each reads every element of a list with read. An empty list is nil.
func each[M, V any](list []M, read func(M) (V, error)) ([]V, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]V, len(list))
	for i := range list {
		var err error
		if out[i], err = read(list[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func fromMoveReports(moves []protocol.MoveReport) []*leaseholdv1.MoveReport {
	var out []*leaseholdv1.MoveReport
	for i := range moves {
		m := &moves[i]
		out = append(out, &leaseholdv1.MoveReport{
			Ticket:  fromTicket(m.Ticket),
			Start:   uint64(m.Range.Start),
			Limit:   uint64(m.Range.Limit),
			To:      FromHolder(m.To),
			State:   leaseholdv1.MoveState(m.State),
			Newest:  uint64(m.Newest),
			Backing: uint64(m.Backing),
			Records: m.Records,
			Bytes:   m.Bytes,
		})
	}
	return out
}

func toMoveReports(list []*leaseholdv1.MoveReport) ([]protocol.MoveReport, error) {
	if err := tooMany("moves", len(list), protocol.MaxMoves); err != nil {
		return nil, err
	}
	return each(list, toMoveReport)
}

func toMoveReport(m *leaseholdv1.MoveReport) (protocol.MoveReport, error) {
	if s := m.GetState(); s < 0 || s > math.MaxUint8 {
		return protocol.MoveReport{}, leasehold.Errorf(opMoves, leasehold.ErrInvalid, "", "unknown state %d", s)
	}
	ticket, err := toTicket(m.GetTicket())
	if err != nil {
		return protocol.MoveReport{}, err
	}
	to, err := ToHolder(m.GetTo())
	if err != nil {
		return protocol.MoveReport{}, err
	}
	return protocol.MoveReport{
		Ticket:  ticket,
		Range:   toRange(m.GetStart(), m.GetLimit()),
		To:      to,
		State:   protocol.MoveState(m.GetState()),
		Newest:  leasehold.Generation(m.GetNewest()),
		Backing: leasehold.Term(m.GetBacking()),
		Records: m.GetRecords(),
		Bytes:   m.GetBytes(),
	}, nil
}

func fromDepartures(list []protocol.Departure) []*leaseholdv1.Departure {
	var out []*leaseholdv1.Departure
	for i := range list {
		d := &list[i]
		out = append(out, &leaseholdv1.Departure{
			Ticket: fromTicket(d.Ticket),
			Start:  uint64(d.Range.Start),
			Limit:  uint64(d.Range.Limit),
			To:     FromHolder(d.To),
			Mover:  d.Mover,

			Identity: d.Identity,
		})
	}
	return out
}

func toDeparture(d *leaseholdv1.Departure) (protocol.Departure, error) {
	ticket, err := toTicket(d.GetTicket())
	if err != nil {
		return protocol.Departure{}, err
	}
	to, err := ToHolder(d.GetTo())
	if err != nil {
		return protocol.Departure{}, err
	}
	return protocol.Departure{Ticket: ticket, Range: toRange(d.GetStart(), d.GetLimit()), To: to, Mover: d.GetMover(), Identity: d.GetIdentity()}, nil
}

func fromArrivals(list []protocol.Arrival) []*leaseholdv1.Arrival {
	var out []*leaseholdv1.Arrival
	for i := range list {
		a := &list[i]
		out = append(out, &leaseholdv1.Arrival{
			Ticket: fromTicket(a.Ticket),
			Start:  uint64(a.Range.Start),
			Limit:  uint64(a.Range.Limit),
			From:   FromHolder(a.From),
			Lsn:    uint64(a.Since.LSN),
			Newest: uint64(a.Since.Newest),

			Identity: a.Identity,
		})
	}
	return out
}

func toArrival(a *leaseholdv1.Arrival) (protocol.Arrival, error) {
	ticket, err := toTicket(a.GetTicket())
	if err != nil {
		return protocol.Arrival{}, err
	}
	from, err := ToHolder(a.GetFrom())
	if err != nil {
		return protocol.Arrival{}, err
	}
	since := protocol.Since{LSN: leasehold.LSN(a.GetLsn()), Newest: leasehold.Generation(a.GetNewest())}
	return protocol.Arrival{Ticket: ticket, Range: toRange(a.GetStart(), a.GetLimit()), From: from, Since: since, Identity: a.GetIdentity()}, nil
}

func fromImports(list []protocol.Import) []*leaseholdv1.Import {
	var out []*leaseholdv1.Import
	for i := range list {
		m := &list[i]
		out = append(out, &leaseholdv1.Import{
			Ticket:  fromTicket(m.Ticket),
			Start:   uint64(m.Range.Start),
			Limit:   uint64(m.Range.Limit),
			Lsn:     uint64(m.Since.LSN),
			Newest:  uint64(m.Since.Newest),
			Backing: uint64(m.Backing),
		})
	}
	return out
}

func toImports(list []*leaseholdv1.Import) ([]protocol.Import, error) {
	if err := tooMany("imports", len(list), protocol.MaxMoves); err != nil {
		return nil, err
	}
	return each(list, toImport)
}

func toImport(m *leaseholdv1.Import) (protocol.Import, error) {
	ticket, err := toTicket(m.GetTicket())
	if err != nil {
		return protocol.Import{}, err
	}
	since := protocol.Since{LSN: leasehold.LSN(m.GetLsn()), Newest: leasehold.Generation(m.GetNewest())}
	return protocol.Import{Ticket: ticket, Range: toRange(m.GetStart(), m.GetLimit()), Since: since, Backing: leasehold.Term(m.GetBacking())}, nil
}

// fromOffers writes which offers are fresh, and the tickets of those.
func fromOffers(offers []protocol.Offer) (fresh []uint32, tickets [][]byte) {
	moved := false
	for i := range offers {
		if !offers[i].Fresh {
			continue
		}
		fresh = append(fresh, uint32(i))
		tickets = append(tickets, fromTicket(offers[i].Ticket))
		moved = moved || !offers[i].Ticket.IsZero()
	}
	if !moved {
		return fresh, nil
	}
	return fresh, tickets
}

// markFresh reads which of the offers are fresh, and the tickets of those.
func markFresh(offers []protocol.Offer, fresh []uint32, tickets [][]byte) error {
	if n := len(tickets); n != 0 && n != len(fresh) {
		return leasehold.Errorf(opReply, leasehold.ErrInvalid, "", "%d tickets of %d fresh offers: want none, or as many", n, len(fresh))
	}
	for i, place := range fresh {
		if int64(place) >= int64(len(offers)) || i > 0 && place <= fresh[i-1] {
			return leasehold.Errorf(opReply, leasehold.ErrInvalid, "", "fresh offer %d of %d: want places that rise", place, len(offers))
		}
		offers[place].Fresh = true
		if len(tickets) == 0 {
			continue
		}
		var err error
		if offers[place].Ticket, err = toTicket(tickets[i]); err != nil {
			return err
		}
	}
	return nil
}
