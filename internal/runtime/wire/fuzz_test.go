package wire_test

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"google.golang.org/protobuf/proto"
)

// The fuzz targets decode arbitrary bytes. Decoding does not panic. Errors have a kind. A decoded value passes the
// protocol's validation and survives encoding and decoding.

// seed adds the vectors of a message.
func seed(f *testing.F, message string) {
	for _, v := range readVectors(f) {
		if v.Message != "leasehold.v1."+message {
			continue
		}
		b, err := hex.DecodeString(v.Hex)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// parse decodes a message, and reports whether that is valid.
func parse[M any, P interface {
	*M
	proto.Message
}](b []byte) (P, bool) {
	m := P(new(M))
	return m, proto.Unmarshal(b, m) == nil
}

// checkRead checks the result of read for a message.
func checkRead[M proto.Message, V any](t *testing.T, m M, read func(M) (V, error), validate func(V) error, write func(V) M) {
	t.Helper()
	v, err := read(m)
	if err != nil {
		if k := leasehold.KindOf(err); k != leasehold.ErrInvalid && k != leasehold.ErrLimit {
			t.Fatalf("error of kind %v: %v", k, err)
		}
		return
	}
	if err := validate(v); err != nil {
		t.Fatalf("the decoded value is invalid: %v", err)
	}
	again, err := read(through(t, write(v)))
	if diff := cmp.Diff(v, again, compareTables); diff != "" || err != nil {
		t.Fatalf("encoded again: error %v (-want +got):\n%s", err, diff)
	}
}

func FuzzHoldRequest(f *testing.F) {
	seed(f, "HoldRequest")
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, ok := parse[leaseholdv1.HoldRequest](b); ok {
			checkRead(t, m, readLeaseRequest, validateLeaseRequest, wire.FromLeaseRequest)
		}
	})
}

func FuzzHoldResponse(f *testing.F) {
	seed(f, "HoldResponse")
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := parse[leaseholdv1.HoldResponse](b)
		if !ok {
			return
		}
		checkRead(t, m, readLeaseReply, validateLeaseReply, wire.FromLeaseReply)
		checkRead(t, m.GetNotLeader(), wire.ToNotLeader, validateNotLeader, wire.FromNotLeader)
		refusal := wire.ToRefusal(m.GetRefusal())
		if again := wire.ToRefusal(through(t, wire.FromRefusal(refusal))); again.Error() != refusal.Error() {
			t.Fatalf("%q is changed to %q", refusal, again)
		}
	})
}

func FuzzFollowRequest(f *testing.F) {
	seed(f, "FollowRequest")
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, ok := parse[leaseholdv1.FollowRequest](b); ok {
			checkRead(t, m, readLookupRequest, validateLookupRequest, wire.FromLookupRequest)
		}
	})
}

func FuzzFollowResponse(f *testing.F) {
	seed(f, "FollowResponse")
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, ok := parse[leaseholdv1.FollowResponse](b); ok {
			checkRead(t, m, readLookupReply, validateLookupReply, wire.FromLookupReply)
		}
	})
}

func FuzzNamespaceConfig(f *testing.F) {
	seed(f, "NamespaceConfig")
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, ok := parse[leaseholdv1.NamespaceConfig](b); ok {
			checkRead(t, m, wire.ToNamespace, validateNamespace, wire.FromNamespace)
		}
	})
}
