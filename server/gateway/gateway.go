// Package gateway is an HTTP proxy that sends each request to the owner of its key.
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
	// What is wrong with an address is found out before anybody is asked.
	listener, err := daemon.ListenOn("listen", cfg.listen)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server has closed it
	probes, err := daemon.ListenOn("health-listen", cfg.health)
	if err != nil {
		return err
	}
	if probes != nil {
		defer probes.Close() //nolint:errcheck // the server has closed it
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
		log.Info("stopping: requests that are under way may go on", "for", cfg.drain)
		health.stop()
		front.stop(cfg.drain)
		return nil
	case err := <-front.broken:
		return leasehold.Errorf("serve", leasehold.ErrUnavailable, cfg.listen, "%w", err)
	}
}

// askAgain is how long managers have to send the table before the log says that
// they have not.
const askAgain = 10 * time.Second

// open waits for the table. Managers that cannot be reached will be one day; a
// namespace that does not exist is a mistake. It returns no table and no error if
// ctx ends first.
func (g *Settings) open(ctx context.Context, keeper *secure.Keeper, metrics prometheus.Registerer, log *slog.Logger) (*lookup.Lookup, error) {
	log.Info("asking for the table", "namespace", g.namespace, "managers", g.managers)
	for {
		within, cancel := context.WithTimeout(ctx, askAgain)
		table, err := lookup.Open(within, lookup.Config{
			Namespace: leasehold.Namespace(g.namespace), Managers: g.managers, Logger: log, Metrics: metrics,
			Credentials: g.Security.Dialling(keeper), DialOptions: g.Security.Showing(),
		})
		cancel()
		switch {
		case err == nil:
			return table, nil
		case ctx.Err() != nil:
			return nil, nil //nolint:nilerr // whatever went wrong, it is to stop
		case leasehold.KindOf(err) != leasehold.ErrUnavailable:
			return nil, err // which says how to create a namespace that does not exist
		}
		log.Warn("waiting for a manager", "why", err)
	}
}

func (g *Settings) forward(f *front, table *lookup.Lookup, keeper *secure.Keeper, metrics prometheus.Registerer, log *slog.Logger) error {
	to := g.transport
	to.Lookup, to.Dial, to.DialTLS = table, g.dialPlainly(), tellDistrust(g.ends.dial(keeper), log)
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
	return console.Facts([]console.Entry{
		{"gateway", console.Heading(urlOf(listening, g.ends.frontTLS))},
		{"namespace", fmt.Sprintf("%s, from %s", g.namespace, strings.Join(g.managers, ", "))},
		{"key", strings.ReplaceAll(g.transport.Key.String(), ",", ", else ")},
		console.If(health != "", "health", urlOf(health, g.ends.healthTLS)+"/readyz"),
	})
}
