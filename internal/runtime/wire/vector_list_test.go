package wire_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// readAny decodes a message of any type.
func readAny(m proto.Message) error {
	var err error
	switch m := m.(type) {
	case *leaseholdv1.HoldRequest:
		if err = wire.CheckVersion(m.GetVersion()); err == nil {
			_, err = wire.ToLeaseRequest(m, protocol.DefaultLimits)
		}
	case *leaseholdv1.HoldResponse:
		switch m.GetKind().(type) {
		case *leaseholdv1.HoldResponse_Grant:
			_, err = wire.ToLeaseReply(m.GetGrant(), protocol.DefaultLimits)
		case *leaseholdv1.HoldResponse_NotLeader:
			_, err = wire.ToNotLeader(m.GetNotLeader())
		}
	case *leaseholdv1.FollowRequest:
		if err = wire.CheckVersion(m.GetVersion()); err == nil {
			_, err = wire.ToLookupRequest(m, 1)
		}
	case *leaseholdv1.FollowResponse:
		_, err = wire.ToLookupReply(m.GetUpdate(), protocol.DefaultLimits)
	case *leaseholdv1.NamespaceConfig:
		_, err = wire.ToNamespace(m)
	default:
		err = errors.New("message of no receiver")
	}
	return err
}

// allVectors returns every message in its smallest and in its largest form, and messages that must be
// rejected for reasons that an implementation may miss.
func allVectors(t *testing.T) []vector {
	ann, bob := walk()[0].Holder, walk()[1].Holder
	ticket := protocol.Ticket{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	request := wire.FromLeaseRequest(&protocol.LeaseRequest{
		Namespace: "presence", Holder: ann, Seq: 12, Term: 3, Heard: 300, Applied: 299, Gone: leasehold.Session{9, 8, 7},
		Leases: []leasehold.Lease{
			{Range: leasehold.Range{Limit: 1 << 63}, Generation: 1},
			{Range: leasehold.Range{Start: 1 << 63}, Generation: 1<<63 - 1},
		},
		Load: 60.5, Mover: "a:2", Parting: true, Draining: true,
		Loads: &partition.Loads{
			Cells: []partition.Cell{{Range: leasehold.Range{Limit: 1 << 63}, Rate: 50.5}, {Range: leasehold.Range{Start: 1 << 63}, Rate: 10}},
			Hot:   []partition.HotKey{{Key: 7, Rate: 40}},
		},
		Moves: []protocol.MoveReport{
			{Ticket: ticket, Range: leasehold.Range{Start: 1 << 63}, To: bob, State: protocol.MoveDone, Records: 1000, Bytes: 1 << 20, Backing: 3},
		},
		Imports: []protocol.Import{{Ticket: protocol.Ticket{3}, Range: leasehold.Range{Limit: 7}, Since: protocol.Since{LSN: 2, Newest: 9}, Backing: 2}},
	})
	reply := &protocol.LeaseReply{
		Namespace: "presence", Session: ann.Session, Leader: "m1:7400", Term: 3, Seq: 301, Echo: 12, Timing: protocol.DefaultTiming(),
		Offers: []protocol.Offer{
			{Lease: leasehold.Lease{Range: leasehold.Range{Limit: 1 << 63}, Generation: 1}},
			{Lease: leasehold.Lease{Range: leasehold.Range{Start: 1<<64 - 1}, Generation: 300}, Fresh: true},
		},
		Clock: 123456789, Contender: bob,
	}
	onTheMove := *reply
	onTheMove.Draining, onTheMove.Idle = true, true
	onTheMove.Offers = []protocol.Offer{
		{Lease: leasehold.Lease{Range: leasehold.Range{Limit: 7}, Generation: 301}, Fresh: true},
		{Lease: leasehold.Lease{Range: leasehold.Range{Start: 7, Limit: 9}, Generation: 302}, Fresh: true, Ticket: ticket},
	}
	onTheMove.Departures = []protocol.Departure{{Ticket: protocol.Ticket{1}, Range: leasehold.Range{Limit: 7}, To: bob, Mover: "b:2"}}
	onTheMove.Arrivals = []protocol.Arrival{{Ticket: protocol.Ticket{2}, Range: leasehold.Range{Start: 1 << 63}, From: bob, Since: protocol.Since{LSN: 2, Newest: 9}}}
	collecting := *reply
	collecting.Collecting, collecting.Contender = true, nil
	collecting.Offers = reply.Offers[:1]
	turnedAway := &protocol.LeaseReply{
		Namespace: "presence", Session: bob.Session, Leader: "m1:7400", Term: 3, Seq: 302, Echo: 1, Timing: protocol.PaperTiming(),
		Clock: -1, Incumbent: ann, Refusal: leasehold.ErrNameTaken,
	}
	news := &protocol.LookupReply{Namespace: "presence", Leader: "m1:7400", Term: 3, LSN: 3, Changes: walk()}
	snapshot := &protocol.LookupReply{
		Namespace: "presence", Leader: "m2:7400", Term: 3, Echo: 7, LSN: 3, Age: 5 * time.Millisecond, Snapshot: tableAfter(t, walk()),
	}
	found := &protocol.LookupReply{
		Namespace: "presence", Leader: "m2:7400", Term: 4, Echo: 8, LSN: 4 << 20, Snapshot: foundTable(t, ann),
	}
	out := []vector{
		newVector(t, "the first word of an owner", wire.FromLeaseRequest(&protocol.LeaseRequest{Namespace: "presence", Holder: bob, Seq: 1}), nil),
		newVector(t, "a request with everything", request, nil),
		newVector(t, "an owner that leaves", wire.FromLeaseRequest(&protocol.LeaseRequest{Namespace: "presence", Holder: ann, Seq: 13, Term: 3, Leaving: true}), nil),
		newVector(t, "a grant", wire.FromLeaseReply(reply), nil),
		newVector(t, "a grant with moves", wire.FromLeaseReply(&onTheMove), nil),
		newVector(t, "a grant of a leader that collects", wire.FromLeaseReply(&collecting), nil),
		newVector(t, "a grant of nothing, because the name is taken", wire.FromLeaseReply(turnedAway), nil),
		newVector(t, "a manager that does not lead", &leaseholdv1.HoldResponse{
			Version: wire.Version, Kind: &leaseholdv1.HoldResponse_NotLeader{NotLeader: wire.FromNotLeader(protocol.NotLeader{Term: 3, Leader: "m1:7400"})},
		}, nil),
		newVector(t, "a refusal", &leaseholdv1.HoldResponse{
			Version: wire.Version, Kind: &leaseholdv1.HoldResponse_Refusal{Refusal: wire.FromRefusal(leasehold.Errorf("hold", leasehold.ErrNotFound, "presence", "no such namespace"))},
		}, nil),
		newVector(t, "a lookup that has no table", wire.FromLookupRequest(&protocol.LookupRequest{Namespace: "presence", Seq: 1}), nil),
		newVector(t, "a lookup that has one", wire.FromLookupRequest(&protocol.LookupRequest{Namespace: "presence", Seq: 2, LSN: 1 << 40}), nil),
		newVector(t, "no news", wire.FromLookupReply(&protocol.LookupReply{Namespace: "presence", Leader: "m1:7400", Term: 3, Echo: 2, LSN: 1 << 40}), nil),
		newVector(t, "no news of a leader", wire.FromLookupReply(&protocol.LookupReply{Namespace: "presence", Leader: "m1:7400", Leads: true, Term: 3, Echo: 2, LSN: 1 << 40}), nil),
		newVector(t, "a table of a leader that has collected", wire.FromLookupReply(found), nil),
		newVector(t, "changes", wire.FromLookupReply(news), nil),
		newVector(t, "changes, one of which moves a range", wire.FromLookupReply(&protocol.LookupReply{
			Namespace: "presence", Leader: "m1:7400", Term: 3, LSN: 4, Changes: walkOn(),
		}), nil),
		newVector(t, "a table", wire.FromLookupReply(snapshot), nil),
		newVector(t, "the empty table", wire.FromLookupReply(&protocol.LookupReply{Namespace: "presence", Leader: "m1:7400", Term: 3, Snapshot: table.New()}), nil),
		newVector(t, "a namespace with all defaults", &leaseholdv1.NamespaceConfig{Name: "presence"}, nil),
		newVector(t, "a static namespace", wire.FromNamespace(storage.Namespace{
			Name: "presence", Lease: time.Minute, Renew: 15 * time.Second, Drift: 1.5, Policy: "static", MaxOwners: 2,
			Static: []storage.StaticSlot{{Owner: "ann"}, {Start: 1 << 63, Owner: "bob"}},
		}), nil),
	}
	return append(out, trickyVectors(t, request, snapshot)...)
}

// trickyVectors returns unusual protobuf encodings that must be accepted or rejected.
func trickyVectors(t *testing.T, request *leaseholdv1.HoldRequest, snapshot *protocol.LookupReply) []vector {
	spoiled := func(name string, spoil func(*leaseholdv1.HoldRequest)) vector {
		m := proto.Clone(request).(*leaseholdv1.HoldRequest)
		spoil(m)
		return newVector(t, name, m, nil)
	}
	spoiledTable := func(name string, spoil func(*leaseholdv1.Table)) vector {
		m := wire.FromLookupReply(snapshot)
		spoil(m.GetUpdate().GetTable())
		return newVector(t, name, m, nil)
	}
	answered := *snapshot
	answered.Echo, answered.Age = 8, 0
	return []vector{
		newVector(t, "an update in two parts, the second of which replaces echo and age", wire.FromLookupReply(&answered),
			append(marshal(t, wire.FromLookupReply(snapshot)), 0x12, 0x04, 0x20, 0x08, 0x30, 0x00)),
		newVector(t, "fields of a later version are ignored", request,
			protowire.AppendBytes(protowire.AppendTag(marshal(t, request), 1000, protowire.BytesType), []byte("later"))),
		spoiled("a peer that is one version ahead", func(m *leaseholdv1.HoldRequest) { m.Version = wire.Version + 1 }),
		spoiled("a peer that is two versions ahead", func(m *leaseholdv1.HoldRequest) { m.Version = wire.Version + 2 }),
		spoiled("a peer that is one version behind", func(m *leaseholdv1.HoldRequest) { m.Version = wire.Version - 1 }),
		spoiled("a peer that names no version", func(m *leaseholdv1.HoldRequest) { m.Version = 0 }),
		spoiled("a session of 15 bytes", func(m *leaseholdv1.HoldRequest) { m.Holder.Session = m.Holder.Session[:15] }),
		spoiled("a lease that wraps around", func(m *leaseholdv1.HoldRequest) { m.Leases.Limits[1] = 5 }),
		spoiled("leases that overlap", func(m *leaseholdv1.HoldRequest) { m.Leases.Starts[1] = 5 }),
		spoiled("a generation of 2^63", func(m *leaseholdv1.HoldRequest) { m.Leases.Generations[1] = 1 << 63 }),
		spoiled("an owner that leaves with leases", func(m *leaseholdv1.HoldRequest) { m.Leaving = true }),
		spoiled("a move in a state of a later version", func(m *leaseholdv1.HoldRequest) { m.Moves[0].State = 5 }),
		spoiled("loads with a short column", func(m *leaseholdv1.HoldRequest) { m.Loads.Rates = m.Loads.Rates[1:] }),
		spoiled("loads with a rate below 0", func(m *leaseholdv1.HoldRequest) { m.Loads.Rates[0] = -1 }),
		spoiledTable("a table that does not start at 0", func(m *leaseholdv1.Table) { m.Starts[0] = 1 }),
		spoiledTable("a table with a short column", func(m *leaseholdv1.Table) { m.Lost = m.Lost[1:] }),
		spoiledTable("a table with a holder that is not there", func(m *leaseholdv1.Table) { m.HeldBy[0] = 9 }),
	}
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// foundTable returns a table of a leader without a store: one range is held, the state of the other is unknown.
func foundTable(t testing.TB, by *table.Holder) *table.Table {
	const term = 4 << 20
	entries := keyrange.NewMap(table.Entry{Lost: term})
	entries.Set(leasehold.Range{Limit: 1 << 63}, table.Entry{Generation: 7, Holder: by, Lost: term, Adopted: 7})
	out, err := table.Restore(term, term, entries)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
