//go:build linux

package attacks

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// clients are three honest owners, which echo HTTP requests, and a lookup. No attack on the
// manager may affect them.
type clients struct {
	testbed *testbed
	addr    string // of all owners
	owners  []*owner.Owner
	table   *lookup.Lookup
	metrics *prometheus.Registry

	mu         sync.Mutex
	checking   bool // changes are violations from now on
	violations []string
}

func newClients(t *testing.T, c *testbed) *clients {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(server.Close)
	h := &clients{testbed: c, addr: server.Listener.Addr().String(), metrics: prometheus.NewRegistry()}
	for i := range 3 {
		o := h.join(t, fmt.Sprintf("owner-%d", i))
		h.owners = append(h.owners, o)
	}
	h.table = h.open(t)
	eventually(t, "the honest owners hold all keys", func(context.Context) error { return h.allKeysOwned() })
	eventually(t, "the table is stable", func(context.Context) error { return h.stable() })
	h.mu.Lock()
	h.checking = true
	h.mu.Unlock()
	return h
}

// echo responds with the request's body and encoding.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Encoding", r.Header.Get("Content-Encoding"))
	w.Header().Set("Asked-For", r.Header.Get("Accept-Encoding"))
	_, _ = io.Copy(w, r.Body) // fails if the caller has closed the connection
}

// join joins as an owner, and records lost leases.
func (h *clients) join(t *testing.T, name string) *owner.Owner {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	o, err := owner.Join(ctx, owner.Config{
		Namespace: namespace, Managers: []string{h.testbed.addr}, Addr: h.addr, Name: leasehold.OwnerID(name),
		Credentials: h.testbed.credentials["owner/honest/"+name], Metrics: h.metrics, Logger: h.logger(name),
		OnRevoke: func(lost []leasehold.Lease, why leasehold.Cause) {
			h.recordViolation("%s lost %v: %v", name, lost, why)
		},
	})
	if err != nil {
		t.Fatalf("join: %v", err)
	}
	t.Cleanup(func() {
		h.end()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = o.Close(ctx) // the manager may have ended
	})
	return o
}

// open opens a lookup, and records losses.
func (h *clients) open(t *testing.T) *lookup.Lookup {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	l, err := lookup.Open(ctx, lookup.Config{
		Namespace: namespace, Managers: []string{h.testbed.addr}, Credentials: h.testbed.credentials["lookup/honest"], Logger: h.logger("a lookup"),
		Poll: time.Second, OnLoss: func(lost []leasehold.Loss) { h.recordViolation("a lookup received losses: %v", lost) },
	})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) }) // never fails
	return l
}

// logger returns the logger of a client. Warnings are violations.
func (h *clients) logger(name string) *slog.Logger {
	return slog.New(warnings{slog.DiscardHandler, h, name})
}

// warnings is a log handler that records warnings.
type warnings struct {
	slog.Handler
	clients *clients
	name    string
}

func (w warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	w.clients.recordViolation("%s logged a warning: %s", w.name, text)
	return nil
}

func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

func (w warnings) WithGroup(string) slog.Handler { return w }

// recordViolation records an event that must not occur once the table is stable.
func (h *clients) recordViolation(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.checking {
		h.violations = append(h.violations, fmt.Sprintf(format, args...))
	}
}

func (h *clients) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checking = false
}

// allKeysOwned returns nil if every owner has a lease, and together they hold all keys.
func (h *clients) allKeysOwned() error {
	var covered uint64
	for _, o := range h.owners {
		leases := o.Leases()
		if len(leases) == 0 {
			return fmt.Errorf("%s has no lease", o.Name())
		}
		for _, l := range leases {
			covered += l.Range.Size() // all keys together wrap around to 0
		}
	}
	if covered != 0 {
		return fmt.Errorf("all but %d keys are owned", -covered)
	}
	return nil
}

// stable returns nil if the table did not change for a second: owners that join together may
// receive their shares in several changes.
func (h *clients) stable() error {
	select {
	case <-h.table.Changed():
		return fmt.Errorf("the table has changed, to LSN %d", h.table.LSN())
	case <-time.After(time.Second):
		return h.allKeysOwned()
	}
}

// renewals returns the number of renewals of all owners.
func (h *clients) renewals(t *testing.T) float64 {
	t.Helper()
	families, err := h.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "leasehold_owner_renewals_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("leasehold_owner_renewals_total is missing")
	return 0
}

// check reports violations, and checks that the honest owners still hold all keys.
func (h *clients) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	violations := h.violations
	h.violations = nil
	h.mu.Unlock()
	for _, what := range violations {
		t.Error(what)
	}
	if err := h.allKeysOwned(); err != nil {
		t.Error(err)
	}
	if age := h.table.Age(); age > lease {
		t.Errorf("the lookup's table is %v old", age)
	}
}
