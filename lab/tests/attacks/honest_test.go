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

// honest are three owners, which repeat what they are told by HTTP, and a lookup. Nothing
// of what is done to the manager may reach them.
type honest struct {
	castle  *castle
	addr    string // of all owners
	owners  []*owner.Owner
	table   *lookup.Lookup
	metrics *prometheus.Registry

	mu      sync.Mutex
	settled bool     // from then on nothing may change
	trouble []string // what has changed all the same
}

func newHonest(t *testing.T, c *castle) *honest {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(server.Close)
	h := &honest{castle: c, addr: server.Listener.Addr().String(), metrics: prometheus.NewRegistry()}
	for i := range 3 {
		o := h.join(t, fmt.Sprintf("owner-%d", i))
		h.owners = append(h.owners, o)
	}
	h.table = h.open(t)
	eventually(t, "the honest have all keys", func(context.Context) error { return h.whole() })
	eventually(t, "nothing moves any more", func(context.Context) error { return h.still() })
	h.mu.Lock()
	h.settled = true
	h.mu.Unlock()
	return h
}

// echo answers with what it was sent, as it was.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Encoding", r.Header.Get("Content-Encoding"))
	w.Header().Set("Asked-For", r.Header.Get("Accept-Encoding"))
	_, _ = io.Copy(w, r.Body) // whoever has gone does not need it
}

// join joins as an owner. Whatever it loses is noted.
func (h *honest) join(t *testing.T, name string) *owner.Owner {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o, err := owner.Join(ctx, owner.Config{
		Namespace: namespace, Managers: []string{h.castle.addr}, Addr: h.addr, Name: leasehold.OwnerID(name),
		Credentials: h.castle.papers["owner/honest/"+name], Metrics: h.metrics, Logger: h.logger(name),
		OnRevoke: func(lost []leasehold.Lease, why leasehold.Cause) { h.note("%s has lost %v: %v", name, lost, why) },
	})
	if err != nil {
		t.Fatalf("join: %v", err)
	}
	t.Cleanup(func() {
		h.end()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = o.Close(ctx) // the manager may be gone
	})
	return o
}

// open follows the table. Whatever it hears to be lost is noted.
func (h *honest) open(t *testing.T) *lookup.Lookup {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := lookup.Open(ctx, lookup.Config{
		Namespace: namespace, Managers: []string{h.castle.addr}, Credentials: h.castle.papers["lookup/honest"], Logger: h.logger("a lookup"),
		Poll: time.Second, OnLoss: func(lost []leasehold.Loss) { h.note("a lookup has heard of losses: %v", lost) },
	})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) }) // it never fails
	return l
}

// logger is the log of somebody honest. There is nothing to warn of.
func (h *honest) logger(name string) *slog.Logger {
	return slog.New(warnings{slog.DiscardHandler, h, name})
}

// warnings notes what is logged as such.
type warnings struct {
	slog.Handler
	honest *honest
	name   string
}

func (w warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	w.honest.note("%s warns: %s", w.name, text)
	return nil
}

func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

func (w warnings) WithGroup(string) slog.Handler { return w }

// note keeps what must not happen once all are settled.
func (h *honest) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settled {
		h.trouble = append(h.trouble, fmt.Sprintf(format, args...))
	}
}

func (h *honest) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled = false
}

// whole reports nil if every owner has something, and they have all keys together.
func (h *honest) whole() error {
	var covered uint64
	for _, o := range h.owners {
		leases := o.Leases()
		if len(leases) == 0 {
			return fmt.Errorf("%s has nothing", o.Name())
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

// still reports nil if the table has stood still for a second: owners that join together
// may get their share one after the other.
func (h *honest) still() error {
	select {
	case <-h.table.Changed():
		return fmt.Errorf("the table has changed, to LSN %d", h.table.LSN())
	case <-time.After(time.Second):
		return h.whole()
	}
}

// renewals is how often the owners have renewed, all together.
func (h *honest) renewals(t *testing.T) float64 {
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
	t.Fatal("there is no metric of renewals")
	return 0
}

// check says what has become of the honest.
func (h *honest) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	trouble := h.trouble
	h.trouble = nil
	h.mu.Unlock()
	for _, what := range trouble {
		t.Error(what)
	}
	if err := h.whole(); err != nil {
		t.Error(err)
	}
	if age := h.table.Age(); age > lease {
		t.Errorf("the lookup has heard nothing for %v", age)
	}
}
