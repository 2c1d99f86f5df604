package wire_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

func supervised() *table.Holder {
	return &table.Holder{Owner: "ann", Session: leasehold.Session{1}, Addr: "a:1", Weight: 1, DeathHash: table.DeathToken{7}.Hash()}
}

// The leader and its store get the death hash; lookups and other owners do not.
func TestDeathHashIsForLeaders(t *testing.T) {
	h := supervised()
	changes := []table.Change{{LSN: 1, Kind: table.Granted, Range: leasehold.Range{}, Generation: 1, Holder: h}}
	held := table.New()
	if err := held.Apply(&changes[0]); err != nil {
		t.Fatal(err)
	}
	request, err := wire.ToLeaseRequest(through(t, wire.FromLeaseRequest(&protocol.LeaseRequest{Namespace: "n", Holder: h, Seq: 1})), limits)
	if err != nil || request.Holder.DeathHash != h.DeathHash {
		t.Errorf("request: %v, %v", request, err)
	}
	stored, err := wire.ToChanges(through(t, wire.FromChanges(0, changes)), limits)
	if err != nil || stored[0].Holder.DeathHash != h.DeathHash {
		t.Errorf("stored changes: %v, %v", stored, err)
	}
	snapshot, err := wire.ToTable(through(t, wire.FromTable(held)), limits)
	if err != nil {
		t.Fatal(err)
	}
	if _, e := snapshot.At(0); e.Holder.DeathHash != h.DeathHash {
		t.Errorf("stored table: %v", e.Holder)
	}

	news := wire.FromLookupReply(&protocol.LookupReply{Namespace: "n", Term: 1, LSN: 1, Changes: changes}).GetUpdate()
	whole := wire.FromLookupReply(&protocol.LookupReply{Namespace: "n", Term: 1, LSN: 1, Snapshot: held}).GetUpdate()
	reply := wire.FromLeaseReply(&protocol.LeaseReply{
		Namespace: "n", Session: leasehold.Session{2}, Term: 1, Seq: 1, Incumbent: h, Contender: h,
		Departures: []protocol.Departure{{To: h}}, Arrivals: []protocol.Arrival{{From: h}},
	}).GetGrant()
	for name, given := range map[string]*leaseholdv1.Holder{
		"changes": news.GetChanges().GetHolders()[0], "snapshot": whole.GetTable().GetHolders()[0],
		"incumbent": reply.GetIncumbent(), "contender": reply.GetContender(),
		"departure": reply.GetDepartures()[0].GetTo(), "arrival": reply.GetArrivals()[0].GetFrom(),
	} {
		if given.GetOwner() != "ann" || given.GetDeathHash() != nil {
			t.Errorf("%s: %v, want ann without a hash", name, given)
		}
	}
}

func TestDeathNotice(t *testing.T) {
	n := &protocol.DeathNotice{Namespace: "n", Owner: "ann", Session: leasehold.Session{1}, Token: table.DeathToken{7}}
	got, err := wire.ToDeathNotice(through(t, wire.FromDeathNotice(n)))
	if err != nil || *got != *n {
		t.Errorf("got %v, %v", got, err)
	}
	for name, change := range map[string]func(*leaseholdv1.ReportDeathRequest){
		"no namespace":   func(r *leaseholdv1.ReportDeathRequest) { r.Namespace = "" },
		"no owner":       func(r *leaseholdv1.ReportDeathRequest) { r.Owner = "" },
		"no session":     func(r *leaseholdv1.ReportDeathRequest) { r.Session = nil },
		"short session":  func(r *leaseholdv1.ReportDeathRequest) { r.Session = r.GetSession()[1:] },
		"no token":       func(r *leaseholdv1.ReportDeathRequest) { r.Token = nil },
		"zero token":     func(r *leaseholdv1.ReportDeathRequest) { r.Token = make([]byte, 32) },
		"short token":    func(r *leaseholdv1.ReportDeathRequest) { r.Token = r.GetToken()[1:] },
		"a longer token": func(r *leaseholdv1.ReportDeathRequest) { r.Token = append(r.GetToken(), 0) },
	} {
		r := through(t, wire.FromDeathNotice(n))
		change(r)
		if _, err := wire.ToDeathNotice(r); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
}

func TestDeathHashOfWrongLength(t *testing.T) {
	h := wire.FromHolder(supervised())
	h.DeathHash = make([]byte, 31)
	if _, err := wire.ToHolder(h); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("error %v, want ErrInvalid", err)
	}
}
