package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/server/console"
)

// gatewayHealth answers /healthz and /readyz of a gateway.
//
// One that has lost all managers stays ready: it goes on with the table that it
// has, which is right for most keys, and taking it away would turn a failure of
// managers, which servers and callers survive, into one of the whole service. Its
// answer says so.
type Health struct {
	table    atomic.Pointer[lookup.Lookup] // nil until there is one
	stopping atomic.Bool
}

func (h *Health) follow(table *lookup.Lookup) { h.table.Store(table) }

func (h *Health) stop() { h.stopping.Store(true) }

func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		_, _ = w.Write([]byte("ok\n")) // a client that is gone needs no answer
	case "/readyz":
		status, text := h.ready()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text + "\n")) //nolint:gosec // it is plain text, and taken for nothing else
	default:
		http.Error(w, "there are /healthz, /readyz and /metrics", http.StatusNotFound)
	}
}

func (h *Health) ready() (status int, text string) {
	table := h.table.Load()
	switch {
	case h.stopping.Load():
		return http.StatusServiceUnavailable, "stopping"
	case table == nil:
		return http.StatusServiceUnavailable, "waiting for a manager to tell where keys are"
	case !table.Ready():
		return http.StatusOK, fmt.Sprintf("ok, but no manager has confirmed for %s that the table is complete: going on with that of LSN %s",
			console.Brief(table.Age()), console.Grouped(uint64(table.LSN())))
	}
	return http.StatusOK, "ok"
}

// greeting is what a gateway tells people once it forwards. The addresses are the
// real ones, whatever the settings asked for; health is empty if it is not served.
func (g *Settings) greeting(listening, health string) string {
	lines := []console.Entry{
		{"gateway", console.Heading(g.ends.greeting(listening))},
		{"namespace", fmt.Sprintf("%s, from %s", g.namespace, strings.Join(g.managers, ", "))},
		{"key", strings.ReplaceAll(g.key.String(), ",", ", else ")},
	}
	if health != "" {
		lines = append(lines, console.Entry{"health", urlOf(health, g.ends.healthTLS) + "/readyz"})
	}
	return console.Facts(lines)
}
