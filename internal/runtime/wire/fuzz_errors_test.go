package wire_test

import (
	"strings"
	"testing"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// FuzzError decodes arbitrary errors of a peer: each has a known kind and a bounded length, and keeps its
// kind when it is forwarded.
func FuzzError(f *testing.F) {
	for _, err := range []error{
		leasehold.Errorf("hold", leasehold.ErrNotOwner, "o", "because"),
		leasehold.Errorf("hold", leasehold.ErrLimit, "\xff", "%s", string(make([]byte, 1<<12))),
	} {
		b, failed := proto.Marshal(status.Convert(wire.FromError(err)).Proto())
		if failed != nil {
			f.Fatal(failed)
		}
		f.Add(b)
	}
	long, failed := proto.Marshal(&spb.Status{Code: 14, Message: strings.Repeat("x", 20_000)}) // not of a Leasehold peer
	if failed != nil {
		f.Fatal(failed)
	}
	f.Add(long)
	f.Add([]byte("\x08\x00"))                 // code OK
	f.Add([]byte("\x08\xff\xff\xff\xff\x0f")) // an unknown code
	f.Fuzz(func(t *testing.T, b []byte) {
		var s spb.Status
		if proto.Unmarshal(b, &s) != nil {
			return
		}
		err := wire.ToError(status.ErrorProto(&s))
		if err == nil {
			if s.GetCode() != 0 {
				t.Fatalf("no error for code %d", s.GetCode())
			}
			return
		}
		const longest = 3 * (3*1024 + 100) // an operation, a subject and a message, with bytes replaced
		if n := len(err.Error()); n > longest {
			t.Fatalf("error of %d bytes", n)
		}
		kind := leasehold.KindOf(err)
		again := wire.ToError(wire.FromError(err))
		if leasehold.KindOf(again) != kind {
			t.Fatalf("%v of kind %v is forwarded as %v of kind %v", err, kind, again, leasehold.KindOf(again))
		}
	})
}
