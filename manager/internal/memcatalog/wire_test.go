package memcatalog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/memcatalog"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	"google.golang.org/protobuf/proto"
)

// full is a catalog in which every field of a namespace is set.
func full() *storage.Catalog {
	return &storage.Catalog{Term: 7, Version: 3, Namespaces: []storage.Namespace{
		{Name: "a"},
		{
			Name: "b", Lease: time.Second, Renew: time.Millisecond, Drift: 1.5, Policy: "static", VirtualNodes: 5,
			Static: []storage.StaticSlot{{Start: 0, Owner: "o"}, {Start: 9}}, MaxOwners: 6, Churn: 0.5, Rebalance: time.Minute,
			Moves: 4, MoveTimeout: time.Hour, Promised: 2 * time.Second, Deleted: true, After: 1 << 60,
		},
	}}
}

// through encodes and decodes a message.
func through[M proto.Message](t *testing.T, m M) M {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface().(M)
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRequestRoundTrip(t *testing.T) {
	for _, want := range []*machine.Request{{Term: 7, Seq: 1, Full: true}, {Term: 7, Seq: 2, Catalog: full(), To: 99}} {
		from, got, err := toRequest(through(t, fromRequest(5, "m1", want)))
		if err != nil || from != "m1" {
			t.Fatalf("from %q: %v", from, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestResponseRoundTrip(t *testing.T) {
	for _, want := range []*machine.Response{
		{Process: 3, Term: 7, Seq: 1}, {Term: 9, Seq: 1, Known: true, Wrote: 7, At: 3}, {Term: 9, Seq: 1, Known: true, Wrote: 7, At: 3, Catalog: full()},
	} {
		got, err := toResponse(through(t, fromResponse(want)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestInvalidMessages(t *testing.T) {
	request := func(change func(*storagev1.ShareRequest)) error {
		m := fromRequest(5, "m1", &machine.Request{Term: 7, Seq: 1, Catalog: full()})
		change(m)
		_, _, err := toRequest(m)
		return err
	}
	for name, err := range map[string]error{
		"no sender":                request(func(m *storagev1.ShareRequest) { m.From = "" }),
		"no sequence number":       request(func(m *storagev1.ShareRequest) { m.Seq = 0 }),
		"no term":                  request(func(m *storagev1.ShareRequest) { m.Term = 0 }),
		"term too high":            request(func(m *storagev1.ShareRequest) { m.Term = protocol.MaxTerm + 1 }),
		"no version":               request(func(m *storagev1.ShareRequest) { m.CatalogVersion = 0 }),
		"invalid name":             request(func(m *storagev1.ShareRequest) { m.Catalog.Namespaces[0].Name = "?" }),
		"not sorted":               request(func(m *storagev1.ShareRequest) { m.Catalog.Namespaces[0].Name = "c" }),
		"duplicate name":           request(func(m *storagev1.ShareRequest) { m.Catalog.Namespaces[0].Name = "b" }),
		"catalog of a later term":  response(&storagev1.ShareResponse{Term: 1, CatalogTerm: 2, Known: true}),
		"unknown, with a catalog":  response(&storagev1.ShareResponse{Term: 1, Catalog: &storagev1.Catalog{}}),
		"reply of a term too high": response(&storagev1.ShareResponse{Term: protocol.MaxTerm + 1}),
	} {
		if leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := request(func(m *storagev1.ShareRequest) {
		m.Catalog.Namespaces = make([]*storagev1.Namespace, storage.MaxNamespaces+1)
	}); leasehold.KindOf(err) != leasehold.ErrLimit {
		t.Errorf("too many namespaces: %v", err)
	}
}

func response(m *storagev1.ShareResponse) error {
	_, err := toResponse(m)
	return err
}
