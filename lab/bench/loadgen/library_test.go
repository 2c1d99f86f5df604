package loadgen

import (
	"context"
	"net"
	"net/rpc"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// TestOutage: the report distinguishes an outage without losses from a quiet period.
func TestOutage(t *testing.T) {
	shared := mem.New()
	addr, first := startManager(t, shared)
	const owners = 3
	l, err := newLibrary(t.Context(), LibraryConfig{ClientsConfig: ClientsConfig{Namespace: "clients", Managers: []string{addr}}, Name: "o", Count: owners})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var held int
	awaitReport(t, l, func(r Report) bool {
		if r.Granted+r.Revoked+r.Suspended > 0 || r.Same < owners { // it is not quiet yet
			_ = l.Mark(struct{}{}, nil) // it never fails
			return false
		}
		held = r.Held
		return held > 0 && r.LastResumed.IsZero()
	})
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitReport(t, l, func(r Report) bool { return r.Suspended == held && r.Held == 0 && r.Same == 0 })
	again, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	serveManager(t, shared, again)
	awaitReport(t, l, func(r Report) bool { return r.Same == owners && r.Held == held })
	awaitReport(t, l, func(r Report) bool { return r.Granted+r.Revoked == 0 && !r.LastResumed.IsZero() })
}

// TestServe: a server reports whether it owns a key.
func TestServe(t *testing.T) {
	addr, _ := startManager(t, mem.New())
	config := LibraryConfig{ClientsConfig: ClientsConfig{Namespace: "clients", Managers: []string{addr}}, Name: "o", Count: 1, Serve: true}
	l, err := newLibrary(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	awaitReport(t, l, func(r Report) bool { return r.Held > 0 })
	find, err := lookup.Open(t.Context(), lookup.Config{Namespace: "clients", Managers: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	server, _ := find.Find(leasehold.Key(5))
	_ = find.Close(context.Background()) // it is no longer needed
	c, err := rpc.Dial("tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // the test is over
	if owned, err := Owned(c, leasehold.Key(5), time.Minute); err != nil || !owned {
		t.Errorf("%v, %v", owned, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if owned, err := Owned(c, leasehold.Key(5), time.Minute); err != nil || owned {
		t.Errorf("after a drain: %v, %v", owned, err)
	}
}

// awaitReport waits for a report that meets a condition.
func awaitReport(t *testing.T, l *LibraryOwners, wanted func(Report) bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		var r Report
		if err := l.Report(struct{}{}, &r); err != nil {
			t.Fatal(err)
		}
		if wanted(r) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the report stays at %+v", r)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
