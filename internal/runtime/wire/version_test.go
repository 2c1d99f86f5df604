package wire_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func TestCheckVersion(t *testing.T) {
	for _, c := range []struct {
		peer uint32
		kind leasehold.Kind
		code codes.Code
	}{
		{0, leasehold.ErrInvalid, codes.InvalidArgument}, // no version
		{1, leasehold.Other, codes.OK},
		{2, leasehold.Other, codes.OK},
		{3, leasehold.Other, codes.OK},
		{4, leasehold.ErrStale, codes.FailedPrecondition},
		{math.MaxUint32, leasehold.ErrStale, codes.FailedPrecondition},
	} {
		err := wire.CheckVersion(c.peer)
		if leasehold.KindOf(err) != c.kind || status.Code(wire.FromError(err)) != c.code {
			t.Errorf("version %d: %v (%v), want %v", c.peer, err, leasehold.KindOf(err), c.code)
		}
	}
}

// Unknown fields of a newer peer are ignored at every depth.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	want := &protocol.LeaseRequest{
		Namespace: "n", Holder: walk()[0].Holder, Seq: 1,
		Leases: []leasehold.Lease{{Range: leasehold.Range{Limit: 5}, Generation: 1}},
	}
	m := wire.FromLeaseRequest(want)
	m.Version = wire.Version + 1
	var news []byte
	news = protowire.AppendTag(news, 1000, protowire.BytesType)
	news = protowire.AppendBytes(news, []byte("from the future"))
	news = protowire.AppendTag(news, 1001, protowire.VarintType)
	news = protowire.AppendVarint(news, 7)
	for _, part := range []proto.Message{m, m.Holder, m.Leases} {
		part.ProtoReflect().SetUnknown(news)
	}
	got, err := wire.ToLeaseRequest(through(t, m), limits)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// A response of an unknown kind is ignored.
func TestUnknownKindOfResponse(t *testing.T) {
	unknown := protowire.AppendTag(nil, 9, protowire.BytesType)
	unknown = protowire.AppendBytes(unknown, []byte("x"))
	var m leaseholdv1.HoldResponse
	if err := proto.Unmarshal(unknown, &m); err != nil || m.GetKind() != nil {
		t.Errorf("kind %v, error %v", m.GetKind(), err)
	}
}
