package fleet

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// TestRecorder: a reply counts once, and only for the newest request; latency counts from the first one that waits.
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

// TestOutage: the report tells an outage that every lease survived from a quiet time.
func TestOutage(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shared, addr := mem.New(), l.Addr().String()
	first := startManager(t, shared, l)
	createNamespace(t, addr)
	f := &fleet{namespace: "fleet", managers: []string{addr}}
	const owners = 3
	if err := f.join(t.Context(), owners, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range f.members {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = m.owner.Close(ended) // without a goodbye
		}
	})
	var held int
	await(t, f, func(r Report) bool {
		if r.Granted+r.Revoked+r.Suspended > 0 || r.Same < owners { // it is not quiet yet
			f.mark()
			return false
		}
		held = r.Held
		return len(r.Renewals) > 8*owners && r.Renewed == 0 && r.LastRenewed.IsZero()
	})
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, f, func(r Report) bool { return r.Suspended == held && r.Held == 0 && r.Same == 0 })
	if l, err = net.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	startManager(t, shared, l)
	await(t, f, func(r Report) bool { return r.Same == owners && r.Renewed == owners && r.Resumed >= held })
	if r := f.report(false); r.Granted+r.Revoked != 0 || r.LastResumed.IsZero() {
		t.Errorf("after the outage the report is %+v", r)
	}
}

// await waits until the report is as wanted. It asks for it as another process does.
func await(t *testing.T, f *fleet, wanted func(Report) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		var r Report
		a, err := f.Obey(ctx, cast.Order{Do: orderReport, Number: 1})
		if err == nil {
			err = json.Unmarshal(a.Data, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		if wanted(r) {
			return
		}
		select {
		case <-ctx.Done():
			r.Renewals = nil
			t.Fatalf("the report stays at %+v", r)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func startManager(t *testing.T, shared store.Store, l net.Listener) *manager.Manager {
	t.Helper()
	m, err := manager.Start(manager.Config{Store: shared, Listener: l, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func createNamespace(t *testing.T, addr string) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it is no longer needed
	request := &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{
		Name: "fleet", Policy: "consistent",
		Timing: &leaseholdv1.Timing{Lease: int64(2 * time.Second), Renew: int64(500 * time.Millisecond), Drift: 1.1},
	}}
	for { // until it leads
		if _, err := leaseholdv1.NewAdminServiceClient(conn).CreateNamespace(t.Context(), request); err == nil {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("no manager leads")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
