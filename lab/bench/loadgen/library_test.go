package loadgen

import (
	"context"
	"net"
	"net/rpc"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// TestRecorder: a reply counts once, and only for the newest request; latency starts at the first request without
// a reply.
func TestRecorder(t *testing.T) {
	var r recorder
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	r.request(at(0), 1, false)
	r.request(at(1), 1, false) // the same to another manager
	r.reply(at(5), 7, 1)
	r.reply(at(6), 7, 1)
	r.mark()
	r.request(at(10), 2, false)
	r.request(at(20), 3, true)
	r.reply(at(21), 7, 2) // too late
	r.reply(at(24), 7, 3)
	if !r.renewedAt.IsZero() {
		t.Error("a reply of the term at the mark counts as one of a later term")
	}
	r.request(at(30), 4, false)
	r.reply(at(33), 8, 4)
	r.request(at(40), 5, false)
	r.reply(at(41), 8, 5)
	want := []Renewal{{Sent: 10e6}, {Sent: 20e6, Latency: 14e6, Suspended: true}, {Sent: 30e6, Latency: 3e6}, {Sent: 40e6, Latency: 1e6}}
	if !slices.Equal(r.renewals, want) {
		t.Errorf("renewals are %v, want %v", r.renewals, want)
	}
	if !r.renewedAt.Equal(at(33)) {
		t.Errorf("renewed at %v, want %v", r.renewedAt, at(33))
	}
}

// TestOutage: the report distinguishes an outage without losses from a quiet period.
func TestOutage(t *testing.T) {
	shared := mem.New()
	addr, first := startManager(t, shared)
	const owners = 3
	l, err := newLibrary(t.Context(), LibraryConfig{ClientsConfig: ClientsConfig{"clients", []string{addr}}, Name: "o", Count: owners})
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
		return len(r.Renewals) > 8*owners && r.Renewed == 0 && r.LastRenewed.IsZero()
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
	awaitReport(t, l, func(r Report) bool { return r.Same == owners && r.Renewed == owners && r.Resumed >= held })
	awaitReport(t, l, func(r Report) bool { return r.Granted+r.Revoked == 0 && !r.LastResumed.IsZero() })
}

// TestServe: a server reports whether it owns a key.
func TestServe(t *testing.T) {
	addr, _ := startManager(t, mem.New())
	config := LibraryConfig{ClientsConfig: ClientsConfig{"clients", []string{addr}}, Name: "o", Count: 1, Serve: true}
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
	if owned, err := Owned(c, leasehold.Key(5)); err != nil || !owned {
		t.Errorf("%v, %v", owned, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if owned, err := Owned(c, leasehold.Key(5)); err != nil || owned {
		t.Errorf("after a drain: %v, %v", owned, err)
	}
}

// awaitReport waits for a report that meets a condition.
func awaitReport(t *testing.T, l *LibraryOwners, wanted func(Report) bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		var r Report
		if err := l.Report(true, &r); err != nil {
			t.Fatal(err)
		}
		if wanted(r) {
			return
		}
		if r.Renewals = nil; time.Now().After(deadline) {
			t.Fatalf("the report stays at %+v", r)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
