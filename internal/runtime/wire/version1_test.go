package wire_test

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"google.golang.org/protobuf/proto"
)

// Messages of version 1, without loads and moves. Stores contain logs of such changes.
const (
	requestOfVersion1 = "0801120870726573656e63651a280a03616e6e1210010000000000000000000000000000001a03613a3121000000000000f03f2a0170200c280330ac02" +
		"38ab0242300a10000000000000000000000000000000801210000000000000008000000000000000001a0a01ffffffffffffffff7f521009080700000000000000000000000000"
	grantOfVersion1 = "0801129d010a0870726573656e63651210010000000000000000000000000000001a076d313a37343030200328ad02300c3a150880c8afa0251080f28ba809" +
		"19333333333333f33f42290a100000000000000000ffffffffffffffff1210000000000000008000000000000000001a0301ac0248959aef3a5a250a03626f62" +
		"1210020000000000000000000000000000001a03623a31210000000000000040720101"
	changesOfVersion1 = "12280a03616e6e1210010000000000000000000000000000001a03613a3121000000000000f03f2a017012250a03626f6212100200000000000000000000000000" +
		"00001a03623a312100000000000000401a0301010222180000000000000000000000000000008007000000000000002a18000000000000008000000000000000" +
		"00090000000000000032030102013a030001004203000002"
)

func decode[M proto.Message](t *testing.T, text string, m M) M {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestReadsTheChangesOfVersion1(t *testing.T) {
	got, err := wire.ToChanges(decode(t, changesOfVersion1, &leaseholdv1.Changes{}), limits)
	if diff := cmp.Diff(walk(), got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// A log without moves has the encoding of version 1, so that a manager of version 1 can succeed a leader of
// version 2.
func TestWritesChangesWithoutMovesAsVersion1Did(t *testing.T) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(wire.FromChanges(0, walk()))
	if got := hex.EncodeToString(b); got != changesOfVersion1 || err != nil {
		t.Errorf("error %v, bytes\n%s\nwant\n%s", err, got, changesOfVersion1)
	}
}

func TestReadsARequestOfVersion1(t *testing.T) {
	want := &protocol.LeaseRequest{
		Namespace: "presence", Holder: walk()[0].Holder, Seq: 12, Term: 3, Heard: 300, Applied: 299, Gone: leasehold.Session{9, 8, 7},
		Leases: []leasehold.Lease{
			{Range: leasehold.Range{Limit: 1 << 63}, Generation: 1},
			{Range: leasehold.Range{Start: 1 << 63}, Generation: 1<<63 - 1},
		},
	}
	m := decode(t, requestOfVersion1, &leaseholdv1.HoldRequest{})
	if err := wire.CheckVersion(m.GetVersion()); err != nil {
		t.Error(err)
	}
	got, err := wire.ToLeaseRequest(m, limits)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestReadsAGrantOfVersion1(t *testing.T) {
	want := &protocol.LeaseReply{
		Namespace: "presence", Session: leasehold.Session{1}, Leader: "m1:7400", Term: 3, Seq: 301, Echo: 12, Timing: protocol.DefaultTiming(),
		Offers: []protocol.Offer{
			{Lease: leasehold.Lease{Range: leasehold.Range{Limit: 1 << 63}, Generation: 1}},
			{Lease: leasehold.Lease{Range: leasehold.Range{Start: 1<<64 - 1}, Generation: 300}, Fresh: true},
		},
		Clock: 123456789, Contender: walk()[1].Holder,
	}
	got, err := wire.ToLeaseReply(decode(t, grantOfVersion1, &leaseholdv1.HoldResponse{}).GetGrant(), limits)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}
