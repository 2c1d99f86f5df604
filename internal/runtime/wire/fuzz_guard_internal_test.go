package wire

import (
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// FuzzGuard decodes arbitrary bytes: an accepted message has at most the allowed number of parts, and a
// rejected one has enough bytes for more.
func FuzzGuard(f *testing.F) {
	const most = 8
	empty := func(number protowire.Number, n int) (b []byte) {
		for range n {
			b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), nil)
		}
		return b
	}
	f.Add(empty(responseUpdate, most+1))
	f.Add(empty(responseUpdate, most))
	nested := empty(4, 20)
	for range 12 {
		nested = protowire.AppendBytes(protowire.AppendTag(nil, responseUpdate, protowire.BytesType), nested)
	}
	f.Add(nested)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range []proto.Message{&leaseholdv1.FollowResponse{}, &leaseholdv1.HoldRequest{}, &leaseholdv1.NamespaceConfig{}} {
			err := newCodec(most).Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, m)
			switch n := parts(m.ProtoReflect()); {
			case err == nil && n > most:
				t.Fatalf("%d parts were accepted, at most %d are allowed", n, most)
			case leasehold.KindOf(err) == leasehold.ErrLimit && len(b) < 2*most:
				t.Fatalf("%d bytes cannot have more than %d parts: %v", len(b), most, err)
			}
		}
	})
}

// parts returns the number of nested messages.
func parts(m protoreflect.Message) (n int) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				n += 1 + parts(v.List().Get(i).Message())
			}
		default:
			n += 1 + parts(v.Message())
		}
		return true
	})
	return n
}
