package fleasecontrol_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/server/fleasecontrol"
)

func TestMain(m *testing.M) { leak.Main(m) }

// serve runs a group of one member, and returns its node and its control.
func serve(t *testing.T) (*flease.Node, fleasecontrol.Client) {
	t.Helper()
	const lease = 100 * time.Millisecond
	node, err := flease.Start(flease.Config{
		Self: 1, Members: []flease.Member{{ID: 1}}, Lease: lease, Epsilon: 10 * time.Millisecond, Transport: new(flease.Memory),
	})
	if err != nil {
		t.Fatal(err)
	}
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := fleasecontrol.Serve(node, lease, at, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := node.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return node, fleasecontrol.Client(at.Addr().String())
}

// The control is for programs of this computer, and not for browsers.
func TestControlIsLocal(t *testing.T) {
	_, control := serve(t)
	for name, test := range map[string]struct {
		method, path, host, origin, body string
		want                             int
	}{
		"status":         {"GET", "/v1/status", "", "", "", 200},
		"another host":   {"GET", "/v1/status", "evil.example:80", "", "", 403},
		"no port":        {"GET", "/v1/status", "evil.example", "", "", 403},
		"another origin": {"POST", "/v1/acquire", "", "https://evil.example", `{"resource":"r"}`, 403},
		"no JSON":        {"POST", "/v1/acquire", "", "", "r", 400},
		"no name":        {"POST", "/v1/acquire", "", "", "{}", 400},
		"too long":       {"POST", "/v1/acquire", "", "", `{"resource":"` + strings.Repeat("r", 5000) + `"}`, 400},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, "http://"+string(control)+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = test.host
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != test.want {
			t.Errorf("%s: %s, want %d", name, answer.Status, test.want)
		}
	}
}

// A lease that is held through a member is over when the client releases it, when its
// member is closed, and not when the context ends that it was acquired with.
func TestLease(t *testing.T) {
	node, control := serve(t)
	acquire := func(r fleasecontrol.Request) (*fleasecontrol.Lease, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return control.Acquire(ctx, r, func(string) {})
	}
	first, err := acquire(fleasecontrol.Request{Resource: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []fleasecontrol.Request{{Resource: "a", Try: true}, {Resource: "a", WaitMillis: 1}, {}} {
		if _, err := acquire(r); err == nil {
			t.Errorf("%+v succeeds beside the holder", r)
		}
	}
	if s, err := control.Status(t.Context(), "a"); err != nil || s.Held != 1 || s.Leases[0].Fence != first.Fence || s.Resource.Holder.ID != 1 {
		t.Errorf("status %+v, %v", s, err)
	}
	first.Release()
	second, err := acquire(fleasecontrol.Request{Resource: "a"})
	if err != nil || second.Fence <= first.Fence {
		t.Fatalf("%+v, %v after fence %d", second, err, first.Fence)
	}
	if err := node.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Hold(t.Context()); err == nil || !strings.Contains(err.Error(), "the node was closed") {
		t.Errorf("the member is closed: %v", err)
	}
	second.Release()
}
