// Package gateway is an HTTP proxy that forwards each request to the owner of its key.
package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/daemon"
)

// Run runs a gateway until ctx ends.
func (cfg *Settings) Run(ctx context.Context, out console.Screen, log *slog.Logger) error {
	// Listen first: an address error is reported before any request to managers.
	listener, err := daemon.ListenOn("listen", cfg.listen)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server closes it, too
	probes, err := daemon.ListenOn("health-listen", cfg.health)
	if err != nil {
		return err
	}
	if probes != nil {
		defer probes.Close() //nolint:errcheck // the server closes it, too
	}
	keeper, err := cfg.keeper(log)
	if err != nil {
		return err
	}
	if keeper != nil {
		defer keeper.Close()
	}
	toCallers, closeFront, err := cfg.ends.front(keeper, &cfg.Security, log)
	if err != nil {
		return err
	}
	defer closeFront()
	health := &Health{}
	registry := daemon.NewRegistry()
	checks := daemon.ServeHealth(probes, cfg.ends.probes(toCallers), daemon.Scrapes(registry, log), log)
	checks.Ask(health)
	defer checks.Stop()
	stop, err := cfg.Start(ctx, "leasehold-gateway", log)
	if err != nil {
		return err
	}
	defer stop()
	front := startFront(listener, toCallers, log)
	defer front.stop(0)

	table, err := cfg.open(ctx, keeper, registry, log)
	if err != nil || table == nil {
		return err
	}
	defer table.Close(context.Background()) //nolint:errcheck // it never fails
	if err := cfg.forward(front, table, keeper, registry, log); err != nil {
		return err
	}
	health.follow(table)
	if err := cli.Write(out, cfg.greeting(listener.Addr().String(), daemon.AddrOf(probes))); err != nil {
		return err
	}
	stopping := daemon.Ready(log, "a gateway on "+listener.Addr().String())
	select {
	case <-ctx.Done():
		stopping()
		log.Info("stopping: waiting for requests in flight", "for", cfg.drain)
		health.stop()
		front.stop(cfg.drain)
		return nil
	case err := <-front.broken:
		return leasehold.Errorf("serve", leasehold.ErrUnavailable, cfg.listen, "%w", err)
	}
}

// openTimeout is the time to wait for the lease table before the log reports the delay.
const openTimeout = 10 * time.Second

// open waits for the lease table. It retries unreachable managers; a namespace that does not
// exist is an error. It returns no table and no error if ctx ends first.
func (g *Settings) open(ctx context.Context, keeper *secure.Keeper, metrics prometheus.Registerer, log *slog.Logger) (*lookup.Lookup, error) {
	log.Info("requesting the lease table", "namespace", g.namespace, "managers", g.managers)
	for {
		within, cancel := context.WithTimeout(ctx, openTimeout)
		table, err := lookup.Open(within, lookup.Config{
			Namespace: leasehold.Namespace(g.namespace), Managers: g.managers, Logger: log, Metrics: metrics,
			Credentials: g.Security.Dialling(keeper), DialOptions: g.Security.Showing(),
		})
		cancel()
		switch {
		case err == nil:
			return table, nil
		case ctx.Err() != nil:
			return nil, nil //nolint:nilerr // the gateway is stopping
		case leasehold.KindOf(err) != leasehold.ErrUnavailable:
			return nil, err // which includes the advice
		}
		log.Warn("waiting for a manager", "why", err)
	}
}

func (g *Settings) forward(f *front, table *lookup.Lookup, keeper *secure.Keeper, metrics prometheus.Registerer, log *slog.Logger) error {
	to := g.transport
	to.Lookup, to.Dial, to.DialTLS = table, g.dialPlainly(), logTLSFailures(g.ends.dial(keeper), log)
	transport, err := leasehttp.NewTransport(to)
	if err != nil {
		return err
	}
	cfg := g.proxy
	cfg.Transport, cfg.Scheme, cfg.Logger, cfg.Metrics = transport, scheme(g.ends.backTLS), log, metrics
	proxy, err := leasehttp.NewProxy(cfg)
	if err != nil {
		return err
	}
	f.serve(proxy, transport.CloseIdleConnections)
	return nil
}

// Health serves /healthz and /readyz of a gateway.
//
// Without managers the gateway stays ready, since its table is still correct for most keys. To
// report it as not ready would turn an outage of the managers, which servers and callers
// tolerate, into an outage of the service. The response mentions it.
type Health struct {
	table    atomic.Pointer[lookup.Lookup] // nil until there is one
	stopping atomic.Bool
}

func (h *Health) follow(table *lookup.Lookup) { h.table.Store(table) }

func (h *Health) stop() { h.stopping.Store(true) }

func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		_, _ = w.Write([]byte("ok\n")) // the client may have disconnected
	case "/readyz":
		status, text := h.ready()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text + "\n")) //nolint:gosec // it is plain text, with nosniff
	default:
		http.Error(w, "want /healthz, /readyz or /metrics", http.StatusNotFound)
	}
}

func (h *Health) ready() (status int, text string) {
	table := h.table.Load()
	switch {
	case h.stopping.Load():
		return http.StatusServiceUnavailable, "stopping"
	case table == nil:
		return http.StatusServiceUnavailable, "waiting for the lease table from a manager"
	case !table.Ready():
		return http.StatusOK, fmt.Sprintf("ok, but no manager has confirmed the lease table for %s: using the table of LSN %s",
			console.Brief(table.Age()), console.Grouped(uint64(table.LSN())))
	}
	return http.StatusOK, "ok"
}

// greeting is printed once the gateway forwards requests. The addresses are the actual ones; health
// is empty if disabled.
func (g *Settings) greeting(listening, health string) string {
	return console.Facts([]console.Entry{
		{"gateway", console.Heading(urlOf(listening, g.ends.frontTLS))},
		{"namespace", fmt.Sprintf("%s, from %s", g.namespace, strings.Join(g.managers, ", "))},
		{"key", strings.ReplaceAll(g.transport.Key.String(), ",", ", else ")},
		console.If(health != "", "health", urlOf(health, g.ends.healthTLS)+"/readyz"),
	})
}
