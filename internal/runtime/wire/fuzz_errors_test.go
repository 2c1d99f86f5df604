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

// FuzzError: whatever a peer says went wrong, it is an error of a kind that we know and not of
// endless length, and those that we pass it on to are told the same kind.
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
	long, failed := proto.Marshal(&spb.Status{Code: 14, Message: strings.Repeat("x", 20_000)}) // by no peer of ours
	if failed != nil {
		f.Fatal(failed)
	}
	f.Add(long)
	f.Add([]byte("\x08\x00"))                 // all is well, they say
	f.Add([]byte("\x08\xff\xff\xff\xff\x0f")) // a code that there is not
	f.Fuzz(func(t *testing.T, b []byte) {
		var s spb.Status
		if proto.Unmarshal(b, &s) != nil {
			return
		}
		err := wire.ToError(status.ErrorProto(&s))
		if err == nil {
			if s.GetCode() != 0 {
				t.Fatalf("code %d is no error", s.GetCode())
			}
			return
		}
		const longest = 3 * (3*1024 + 100) // an operation, a subject and a message, with bytes replaced
		if n := len(err.Error()); n > longest {
			t.Fatalf("an error of %d bytes", n)
		}
		kind := leasehold.KindOf(err)
		again := wire.ToError(wire.FromError(err))
		if leasehold.KindOf(again) != kind {
			t.Fatalf("%v, of kind %v, is passed on as %v, of kind %v", err, kind, again, leasehold.KindOf(again))
		}
	})
}
