package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// TestHashtable: entries move to the other server when a server leaves. The last server
// fails to close, because no other owner can take its entries.
func TestHashtable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.Start(manager.Config{Store: mem.New(), Listener: listener, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context()) //nolint:errcheck // best effort
	t.Setenv("MANAGERS", m.Addr())
	create(t, m.Addr())

	stops := map[string]func() error{}
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		addr, ended := freeAddr(t), make(chan error, 1)
		stops[addr] = func() error {
			cancel()
			return <-ended
		}
		go func() { ended <- serve(ctx, addr) }()
	}
	defer func() {
		for _, stop := range stops {
			if err := stop(); err == nil || !strings.Contains(err.Error(), "no other owner can take it") {
				t.Errorf("the last server ended with %v", err)
			}
		}
	}()
	if err := call(t.Context(), http.MethodPut, "colour", "green"); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, "colour"); got != "green" {
		t.Errorf("the colour is %q", got)
	}
	long := strings.Repeat("x", 1<<20+1) // one byte too long
	if err := call(t.Context(), http.MethodPut, "colour", long); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("an oversized value: %v", err)
	}
	addr := find(t, "colour", len(stops))
	if err := stops[addr](); err != nil {
		t.Error(err)
	}
	delete(stops, addr)
	if got := ask(t, "colour"); got != "green" {
		t.Errorf("after its server left, the colour is %q", got)
	}
	if err := call(t.Context(), http.MethodPut, "colour", "blue"); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, "colour"); got != "blue" {
		t.Errorf("the colour is %q", got)
	}
}

// TestForget: dropEntries removes entries of the ended lease and of older ones, but none of
// newer leases.
func TestForget(t *testing.T) {
	key := leasehold.KeyOf("/colour")
	for name, test := range map[string]struct {
		ended leasehold.Lease
		kept  bool
	}{
		"its lease":             {leasehold.Lease{Range: leasehold.All, Generation: 7}, false},
		"a newer lease":         {leasehold.Lease{Range: leasehold.All, Generation: 8}, false},
		"an older lease":        {leasehold.Lease{Range: leasehold.All, Generation: 6}, true},
		"a lease on other keys": {leasehold.Lease{Range: leasehold.Range{Start: key + 1}, Generation: 7}, true},
	} {
		t.Run(name, func(t *testing.T) {
			part := table{entries: map[string]entry{"/colour": {"green", 7}}}
			part.dropEntries([]leasehold.Lease{test.ended}, leasehold.CauseReleased)
			if _, kept := part.entries["/colour"]; kept != test.kept {
				t.Errorf("kept: %t", kept)
			}
		})
	}
}

// find waits until all servers own keys, and returns the owner of a key.
func find(t *testing.T, key string, servers int) string {
	t.Helper()
	l, err := lookup.Open(t.Context(), lookup.Config{Namespace: "hashtable", Managers: managers()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background()) //nolint:errcheck // never fails
	for {
		changed, found := l.Changed(), map[string]bool{}
		for i := range leasehold.Key(256) {
			if addr, owned := l.Find(i << 56); owned {
				found[addr] = true
			}
		}
		if addr, owned := l.Find(leasehold.KeyOf("/" + key)); owned && len(found) == servers {
			return addr
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("not all servers own keys")
		}
	}
}

// ask reads a key's value from the server that owns it.
func ask(t *testing.T, key string) string {
	t.Helper()
	l, err := lookup.Open(t.Context(), lookup.Config{Namespace: "hashtable", Managers: managers()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background()) //nolint:errcheck // never fails
	var body []byte
	err = l.Do(t.Context(), leasehold.KeyOf("/"+key), func(_ context.Context, addr string) error {
		answer, err := http.Get("http://" + addr + "/" + key)
		if err != nil {
			return leasehold.Errorf("ask", leasehold.ErrIndeterminate, addr, "%w", err)
		}
		defer answer.Body.Close() //nolint:errcheck // the body was read
		if answer.StatusCode != http.StatusOK {
			return leasehold.ErrNotOwner
		}
		body, err = io.ReadAll(answer.Body)
		return err
	}, lookup.WithIdempotent())
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func create(t *testing.T, addr string) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // no call is in progress
	request := &leaseholdv1.CreateNamespaceRequest{Version: 1, Namespace: &leaseholdv1.NamespaceConfig{Name: "hashtable"}}
	for { // until the manager leads
		_, err := leaseholdv1.NewAdminServiceClient(conn).CreateNamespace(t.Context(), request)
		if err == nil {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// freeAddr returns a free loopback address.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was never used
	return l.Addr().String()
}
