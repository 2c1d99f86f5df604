package wire_test

import (
	"math"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A refusal is a change that makes a message invalid, and the expected error.
type refusal[M any] struct {
	name  string
	spoil func(M)
	kind  leasehold.Kind
	want  string
}

func checkRefusals[M any](t *testing.T, good func() M, read func(M) error, refusals []refusal[M]) {
	t.Helper()
	if err := read(good()); err != nil {
		t.Fatalf("a valid message is rejected: %v", err)
	}
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			m := good()
			r.spoil(m)
			err := read(m)
			if leasehold.KindOf(err) != r.kind || !strings.Contains(err.Error(), r.want) {
				t.Errorf("error %v (%v), want %q (%v)", err, leasehold.KindOf(err), r.want, r.kind)
			}
		})
	}
}

// walk is a history of two holders, one of which has lost a range.
func walk() []table.Change {
	ann := &table.Holder{Owner: "ann", Session: leasehold.Session{1}, Addr: "a:1", Weight: 1, Process: "p"}
	bob := &table.Holder{Owner: "bob", Session: leasehold.Session{2}, Addr: "b:1", Weight: 2}
	return []table.Change{
		{LSN: 1, Kind: table.Granted, Range: leasehold.Range{Limit: 1 << 63}, Generation: 1, Holder: ann},
		{LSN: 2, Kind: table.Granted, Range: leasehold.Range{Start: 1 << 63}, Generation: 2, Holder: bob},
		{LSN: 3, Kind: table.Vacated, Range: leasehold.Range{Start: 7, Limit: 9}, Generation: 1, Holder: ann, Cause: leasehold.CauseReleased},
	}
}

// walkOn is a history that ends with a move to a holder that is in no other change.
func walkOn() []table.Change {
	cyd := &table.Holder{Owner: "cyd", Session: leasehold.Session{3}, Addr: "c:1", Weight: 1}
	past := walk()
	return append(past, table.Change{LSN: 4, Kind: table.Moved, Range: past[1].Range, Generation: 3, Holder: cyd, From: past[1].Holder})
}

func TestToHolderRefuses(t *testing.T) {
	type holder = *leaseholdv1.Holder
	good := func() holder { return wire.FromHolder(walk()[0].Holder) }
	read := func(h holder) error { _, err := wire.ToHolder(h); return err }
	checkRefusals(t, good, read, []refusal[holder]{
		{"a short session", func(h holder) { h.Session = h.Session[:15] }, leasehold.ErrInvalid, "15 bytes, want 16"},
		{"a long session", func(h holder) { h.Session = make([]byte, 1<<20) }, leasehold.ErrInvalid, "1048576 bytes, want 16"},
		{"no session", func(h holder) { h.Session = nil }, leasehold.ErrInvalid, "has no session"},
		{"no name", func(h holder) { h.Owner = "" }, leasehold.ErrInvalid, "owner id"},
		{"a weight that is no number", func(h holder) { h.Weight = math.NaN() }, leasehold.ErrInvalid, "weight is NaN"},
	})
	if _, err := wire.ToHolder(nil); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("no holder at all: %v", err)
	}
}

func TestToTableRefuses(t *testing.T) {
	type message = *leaseholdv1.Table
	good := func() message { return wire.FromTable(tableAfter(t, walk())) }
	read := func(m message) error { _, err := wire.ToTable(m, limits); return err }
	const invalid = leasehold.ErrInvalid
	checkRefusals(t, good, read, []refusal[message]{
		{"no ranges", func(m message) { m.Reset() }, invalid, "it has no range"},
		{"too many ranges", func(m message) { m.Starts = make([]uint64, limits.Ranges+1) }, leasehold.ErrLimit, "33 ranges, at most 32"},
		{"few generations", func(m message) { m.Generations = m.Generations[1:] }, invalid, "4 starts, 3 generations"},
		{"few holders", func(m message) { m.HeldBy = nil }, invalid, "0 holders and 4 losses"},
		{"many losses", func(m message) { m.Lost = append(m.Lost, 0) }, invalid, "5 losses"},
		{"more holders than ranges", func(m message) { m.Holders = make([]*leaseholdv1.Holder, 5) }, invalid, "5 holders of 4 ranges"},
		{"a holder that is not there", func(m message) { m.Holders[0] = nil }, invalid, "it is missing"},
		{"a holder behind the list", func(m message) { m.HeldBy[0] = 3 }, invalid, "range 0 is held by holder 3 of 2"},
		{"a holder far behind the list", func(m message) { m.HeldBy[0] = math.MaxUint32 }, invalid, "holder 4294967295 of 2"},
		{"a bad holder", func(m message) { m.Holders[1].Addr = "" }, invalid, "address has 0 bytes"},
		{"not from the start", func(m message) { m.Starts[0] = 1 }, invalid, "range 0 starts at 0000000000000001"},
		{"not sorted", func(m message) { m.Starts[1], m.Starts[2] = m.Starts[2], m.Starts[1] }, invalid, "range 2 starts at"},
		{"twice the same start", func(m message) { m.Starts[2] = m.Starts[1] }, invalid, "starts must rise"},
		{"held under no generation", func(m message) { m.Generations[0] = 0 }, invalid, "do not fit together"},
		{"a generation without holder", func(m message) { m.HeldBy[0] = 0 }, invalid, "do not fit together"},
		{"a generation to come", func(m message) { m.Newest = 1 }, invalid, "do not fit together"},
		{"a generation beyond the last", func(m message) { m.Newest = 1 << 63 }, invalid, "beyond the last"},
		{"a loss to come", func(m message) { m.Lost[0] = 4 }, invalid, "do not fit together"},
	})
	if err := read(nil); leasehold.KindOf(err) != invalid {
		t.Errorf("no table at all: %v", err)
	}
}

func TestToChangesRefuses(t *testing.T) {
	type message = *leaseholdv1.Changes
	good := func() message { return wire.FromChanges(4, walkOn()) }
	read := func(m message) error { _, err := wire.ToChanges(m, limits); return err }
	const invalid = leasehold.ErrInvalid
	checkRefusals(t, good, read, []refusal[message]{
		{"too many", func(m message) { m.Kinds = make([]leaseholdv1.ChangeKind, limits.Changes+1) }, leasehold.ErrLimit, "65 changes, at most 64"},
		{"more holders than changes", func(m message) { m.Holders = make([]*leaseholdv1.Holder, 9) }, invalid, "9 holders of 4 changes"},
		{"beyond the last lsn", func(m message) { m.From = math.MaxUint64 - 3 }, invalid, "beyond the last"},
		{"a short column", func(m message) { m.Causes = m.Causes[1:] }, invalid, "want as many of each"},
		{"a kind of a later version", func(m message) { m.Kinds[0] = 4 }, invalid, "unknown kind 4"},
		{"no kind", func(m message) { m.Kinds[0] = 0 }, invalid, "unknown kind 0"},
		{"a kind that looks known in 8 bits", func(m message) { m.Kinds[0] = 257 }, invalid, "unknown kind 257"},
		{"a negative kind", func(m message) { m.Kinds[0] = -255 }, invalid, "unknown kind -255"},
		{"a cause that is too large", func(m message) { m.Causes[0] = 256 }, invalid, "unknown cause 256"},
		{"a negative cause", func(m message) { m.Causes[0] = -1 }, invalid, "unknown cause -1"},
		{"a holder behind the list", func(m message) { m.HeldBy[0] = 3 }, invalid, "holder 3 of 3"},
		{"a grant from someone", func(m message) { m.MovedFrom[0] = 1 }, invalid, "change 0 of kind 1"},
		{"a move without source", func(m message) { m.MovedFrom[3] = 0 }, invalid, "change 3 of kind 3"},
		{"a move, and no column for it", func(m message) { m.MovedFrom = nil }, invalid, "change 3 of kind 3"},
		{"a move from behind the list", func(m message) { m.MovedFrom[3] = 4 }, invalid, "comes from holder 4 of 3"},
		{"a move from far behind the list", func(m message) { m.MovedFrom[3] = math.MaxUint32 }, invalid, "holder 4294967295 of 3"},
		{"a short column of reasons", func(m message) { m.Reasons = make([]leaseholdv1.Reason, 3) }, invalid, "3 changes have a reason, of 4"},
		{"a reason that is too large", func(m message) { m.Reasons = []leaseholdv1.Reason{256, 0, 0, 0} }, invalid, "unknown reason 256"},
		{"a negative reason", func(m message) { m.Reasons = []leaseholdv1.Reason{0, 0, 0, -1} }, invalid, "unknown reason -1"},
		{"a short column of sources", func(m message) { m.MovedFrom = m.MovedFrom[:3] }, invalid, "moved from: 3 values for 4 changes"},
		{"no range", func(m message) { m.Starts[0], m.Limits[0] = 5, 5 }, invalid, "is not a lease"},
		{"no generation", func(m message) { m.Generations[0] = 0 }, invalid, "is not a lease"},
		{"a generation beyond the last", func(m message) { m.Generations[0] = 1 << 63 }, invalid, "is not a lease"},
	})
	if err := read(nil); leasehold.KindOf(err) != invalid {
		t.Errorf("no changes at all: %v", err)
	}
}

// A change with an unknown cause of a newer peer is kept.
func TestToChangesKeepsUnknownCause(t *testing.T) {
	m := wire.FromChanges(0, walk())
	m.Causes[2] = 99
	got, err := wire.ToChanges(m, limits)
	if err != nil || got[2].Cause != 99 {
		t.Errorf("cause %v, error %v, want cause(99)", got[2].Cause, err)
	}
}

func TestToLeaseRequestRefuses(t *testing.T) {
	type message = *leaseholdv1.HoldRequest
	good := func() message {
		return wire.FromLeaseRequest(&protocol.LeaseRequest{
			Namespace: "n", Holder: walk()[0].Holder, Seq: 1, Gone: leasehold.Session{9},
			Leases: []leasehold.Lease{{Range: leasehold.Range{Limit: 5}, Generation: 1}},
			Loads: &partition.Loads{
				Cells: []partition.Cell{{Range: leasehold.Range{Limit: 5}, Rate: 7}},
				Hot:   []partition.HotKey{{Key: 3, Rate: 6}},
			},
			Mover:   "m:1",
			Moves:   []protocol.MoveReport{{Ticket: protocol.Ticket{1}, Range: leasehold.Range{Limit: 5}, To: walk()[0].Holder, State: protocol.MoveDone}},
			Imports: []protocol.Import{{Ticket: protocol.Ticket{3}, Range: leasehold.Range{Limit: 5}}},
		})
	}
	read := func(m message) error { _, err := wire.ToLeaseRequest(m, limits); return err }
	const invalid = leasehold.ErrInvalid
	checkRefusals(t, good, read, []refusal[message]{
		{"nothing in it", func(m message) { m.Reset() }, invalid, "read holder"},
		{"no sender", func(m message) { m.Holder = nil }, invalid, "it is missing"},
		{"too many leases", func(m message) { m.Leases.Starts = make([]uint64, limits.Leases+1) }, leasehold.ErrLimit, "17 leases, at most 16"},
		{"half a predecessor", func(m message) { m.Gone = m.Gone[:8] }, invalid, "8 bytes, want 16"},
		{"a short column", func(m message) { m.Leases.Limits = nil }, invalid, "columns of 1 starts, 0 limits and 1 generations"},
		{"a long column", func(m message) { m.Leases.Generations = []uint64{1, 2} }, invalid, "columns of 1 starts, 1 limits and 2 generations"},
		{"a lease of nothing", func(m message) { m.Leases.Generations[0] = 0 }, invalid, "want a range with keys in it"},
		{"a generation beyond the last", func(m message) { m.Leases.Generations[0] = 1 << 63 }, invalid, "a generation from 1 to"},
		{"what the protocol refuses", func(m message) { m.Seq = 0 }, invalid, "sequence numbers start at 1"},
		{"too many cells", func(m message) { m.Loads.Starts = make([]uint64, protocol.MaxCells+1) }, leasehold.ErrLimit, "4097 cells and 1 hot keys"},
		{"too many hot keys", func(m message) { m.Loads.HotKeys = make([]uint64, protocol.MaxHotKeys+1) }, leasehold.ErrLimit, "1 cells and 65 hot keys"},
		{"cells without limits", func(m message) { m.Loads.Limits = nil }, invalid, "columns of 1 starts, 0 limits and 1 rates"},
		{"cells without rates", func(m message) { m.Loads.Rates = nil }, invalid, "columns of 1 starts, 1 limits and 0 rates"},
		{"hot keys without rates", func(m message) { m.Loads.HotRates = nil }, invalid, "columns of 1 hot keys and 0 rates"},
		{"a rate that is no number", func(m message) { m.Loads.Rates[0] = math.NaN() }, invalid, "load is NaN"},
		{"a hot rate without end", func(m message) { m.Loads.HotRates[0] = math.Inf(1) }, invalid, "load is +Inf"},
		{"a cell of no key", func(m message) { m.Loads.Starts[0] = 5 }, invalid, "a cell of the loads is not a range"},
		{"a load without end", func(m message) { m.Load = math.Inf(1) }, invalid, "load is +Inf"},
		{"too many moves", func(m message) { m.Moves = make([]*leaseholdv1.MoveReport, protocol.MaxMoves+1) }, leasehold.ErrLimit, "257 moves, at most 256"},
		{"a move that is not there", func(m message) { m.Moves[0] = nil }, invalid, "read holder"},
		{"half a ticket", func(m message) { m.Moves[0].Ticket = m.Moves[0].Ticket[:8] }, invalid, "8 bytes, want 16"},
		{"an empty target", func(m message) { m.Moves[0].To = nil }, invalid, "read holder"},
		{"too many imports", func(m message) { m.Imports = make([]*leaseholdv1.Import, protocol.MaxMoves+1) }, leasehold.ErrLimit, "257 imports, at most 256"},
		{"an import without a ticket", func(m message) { m.Imports[0].Ticket = nil }, invalid, "import 0 of"},
		{"an import with half a ticket", func(m message) { m.Imports[0].Ticket = m.Imports[0].Ticket[:8] }, invalid, "8 bytes, want 16"},
		{"a state of a later version", func(m message) { m.Moves[0].State = 5 }, invalid, "in state 5 is invalid"},
		{"a state that looks known in 8 bits", func(m message) { m.Moves[0].State = 259 }, invalid, "unknown state 259"},
		{"a negative state", func(m message) { m.Moves[0].State = -253 }, invalid, "unknown state -253"},
		{"a mover without end", func(m message) { m.Mover = strings.Repeat("m", 257) }, invalid, "address has 257 bytes"},
	})
}

func TestToLeaseReplyRefuses(t *testing.T) {
	type message = *leaseholdv1.Grant
	good := func() message {
		return wire.FromLeaseReply(&protocol.LeaseReply{
			Namespace: "n", Session: leasehold.Session{1}, Term: 1, Seq: 1, Timing: protocol.DefaultTiming(),
			Offers:    []protocol.Offer{{Lease: leasehold.Lease{Generation: 1}, Fresh: true, Ticket: protocol.Ticket{3}}},
			Incumbent: walk()[0].Holder, Contender: walk()[1].Holder,
			Departures: []protocol.Departure{{Ticket: protocol.Ticket{1}, To: walk()[0].Holder, Mover: "m:1"}},
			Arrivals:   []protocol.Arrival{{Ticket: protocol.Ticket{2}, From: walk()[1].Holder}},
		}).GetGrant()
	}
	read := func(m message) error { _, err := wire.ToLeaseReply(m, limits); return err }
	const invalid = leasehold.ErrInvalid
	checkRefusals(t, good, read, []refusal[message]{
		{"nothing in it", func(m message) { m.Reset() }, invalid, "namespace"},
		{"too many offers", func(m message) { m.Offers.Starts = make([]uint64, limits.Leases+1) }, leasehold.ErrLimit, "17 leases, at most 16"},
		{"an offer of nothing", func(m message) { m.Offers.Generations[0] = 0 }, invalid, "want a range with keys in it"},
		{"a fresh offer that is not there", func(m message) { m.Fresh = []uint32{1} }, invalid, "fresh offer 1 of 1"},
		{"a fresh offer twice", func(m message) { m.Fresh, m.Tickets = []uint32{0, 0}, nil }, invalid, "want ascending places"},
		{"no timing", func(m message) { m.Timing = nil }, invalid, "a lease lasts"},
		{"half a session", func(m message) { m.Session = m.Session[:8] }, invalid, "8 bytes, want 16"},
		{"a bad incumbent", func(m message) { m.Incumbent.Addr = "" }, invalid, "address has 0 bytes"},
		{"a bad contender", func(m message) { m.Contender.Addr = "" }, invalid, "address has 0 bytes"},
		{"more tickets than fresh offers", func(m message) { m.Tickets = append(m.Tickets, nil) }, invalid, "2 tickets of 1 fresh offers"},
		{"half a ticket", func(m message) { m.Tickets[0] = m.Tickets[0][:8] }, invalid, "8 bytes, want 16"},
		{"too many departures", func(m message) { m.Departures = make([]*leaseholdv1.Departure, 2*protocol.MaxMoves) }, leasehold.ErrLimit, "513 departures and arrivals"},
		{"a departure that is not there", func(m message) { m.Departures[0] = nil }, invalid, "read holder"},
		{"a departure without target", func(m message) { m.Departures[0].To = nil }, invalid, "read holder"},
		{"a departure without a ticket", func(m message) { m.Departures[0].Ticket = nil }, invalid, "departure 0 is invalid"},
		{"a departure with half a ticket", func(m message) { m.Departures[0].Ticket = make([]byte, 8) }, invalid, "8 bytes, want 16"},
		{"an arrival of no key", func(m message) { m.Arrivals[0].Start, m.Arrivals[0].Limit = 5, 5 }, invalid, "arrival 0 is invalid"},
		{"an arrival without source", func(m message) { m.Arrivals[0].From = nil }, invalid, "read holder"},
		{"an arrival with a long ticket", func(m message) { m.Arrivals[0].Ticket = make([]byte, 17) }, invalid, "17 bytes, want 16"},
		{"a refusal that looks like none in 8 bits", func(m message) { m.Refusal = 256 }, invalid, "unknown refusal 256"},
	})
}

func TestToLookupReplyRefuses(t *testing.T) {
	type message = *leaseholdv1.Update
	good := func() message {
		return wire.FromLookupReply(&protocol.LookupReply{Namespace: "n", Term: 1, LSN: 3, Changes: walk()}).GetUpdate()
	}
	read := func(m message) error { _, err := wire.ToLookupReply(m, limits); return err }
	const invalid = leasehold.ErrInvalid
	checkRefusals(t, good, read, []refusal[message]{
		{"nothing in it", func(m message) { m.Reset() }, invalid, "namespace"},
		{"both kinds of news", func(m message) { m.Table = wire.FromTable(tableAfter(t, walk())) }, invalid, "both a snapshot and changes"},
		{"changes that lead elsewhere", func(m message) { m.Lsn = 4 }, invalid, "do not end at 4"},
		{"a bad change", func(m message) { m.Changes.Kinds[0] = 0 }, invalid, "unknown kind 0"},
		{"a bad table", func(m message) { m.Changes, m.Table = nil, &leaseholdv1.Table{} }, invalid, "it has no range"},
		{"a negative age", func(m message) { m.Age = -1 }, invalid, "age -1ns is negative"},
	})
}

func TestToNotLeaderRefuses(t *testing.T) {
	for _, m := range []*leaseholdv1.NotLeader{{Term: protocol.MaxTerm + 1}, {Leader: strings.Repeat("x", 129)}} {
		if _, err := wire.ToNotLeader(m); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%d %q: %v", m.GetTerm(), m.GetLeader(), err)
		}
	}
}

func TestToLookupRequestRefuses(t *testing.T) {
	for _, m := range []*leaseholdv1.FollowRequest{nil, {Namespace: "n"}, {Namespace: "N", Seq: 1}} {
		if _, err := wire.ToLookupRequest(m, 1); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%v: %v", m, err)
		}
	}
}
