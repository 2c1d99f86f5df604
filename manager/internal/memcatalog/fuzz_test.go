package memcatalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/memcatalog"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
)

// The fuzz targets decode arbitrary messages. Either the message is rejected with kind ErrInvalid or
// ErrLimit, or its catalog is sorted and within the limits, and encoding it again loses nothing.

var sameNumbers = cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}

func seed(f *testing.F, messages ...proto.Message) {
	for _, m := range messages {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

func checkRefusal(t *testing.T, err error) {
	if k := leasehold.KindOf(err); k != leasehold.ErrInvalid && k != leasehold.ErrLimit {
		t.Fatalf("an invalid message is rejected with kind %v: %v", k, err)
	}
}

func checkCatalog(t *testing.T, c *storage.Catalog) {
	if c == nil {
		return
	}
	if n := len(c.Namespaces); n > storage.MaxNamespaces {
		t.Fatalf("%d namespaces", n)
	}
	for i := range c.Namespaces {
		if name := c.Namespaces[i].Name; c.Entry(name) != &c.Namespaces[i] {
			t.Fatalf("namespace %q is not found in its catalog", name)
		}
	}
}

func FuzzShareRequest(f *testing.F) {
	seed(f, fromRequest(5, "m1", &machine.Request{Term: 7, Seq: 1, Full: true}),
		fromRequest(5, "m1", &machine.Request{Term: 7, Seq: 2, Catalog: full(), To: 99}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m storagev1.ShareRequest
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		from, r, err := toRequest(&m)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		checkCatalog(t, r.Catalog)
		againFrom, again, err := toRequest(through(t, fromRequest(m.GetGroup(), from, r)))
		if diff := cmp.Diff(r, again, sameNumbers); diff != "" || err != nil || from != againFrom {
			t.Fatalf("encoded again: from %q, error %v (-first +second):\n%s", againFrom, err, diff)
		}
	})
}

func FuzzShareResponse(f *testing.F) {
	seed(f, fromResponse(&machine.Response{Process: 3, Term: 7, Seq: 1}),
		fromResponse(&machine.Response{Term: 9, Seq: 1, Known: true, Wrote: 7, At: 3, Catalog: full()}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m storagev1.ShareResponse
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		r, err := toResponse(&m)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		checkCatalog(t, r.Catalog)
		again, err := toResponse(through(t, fromResponse(r)))
		if diff := cmp.Diff(r, again, sameNumbers); diff != "" || err != nil {
			t.Fatalf("encoded again: error %v (-first +second):\n%s", err, diff)
		}
	})
}
