package gateway

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/daemon"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/secure"
)

// runGateway runs a gateway until ctx ends.
func Run(ctx context.Context, cfg *Settings, out io.Writer, log *slog.Logger) error {
	cli.WarnOfPlainText(cfg.security.Exposed, log)
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
	toCallers, closeFront, err := cfg.ends.front(keeper, &cfg.security, log)
	if err != nil {
		return err
	}
	defer closeFront()
	health := &Health{}
	registry := daemon.NewRegistry()
	checks := daemon.ServeHealth(probes, cfg.ends.probes(toCallers), daemon.Scrapes(registry, log), log)
	checks.Ask(health)
	defer checks.Stop()
	stopDebug, err := cfg.debug.Serve(log)
	if err != nil {
		return err
	}
	defer stopDebug()
	stopTraces, err := daemon.ServeTraces(ctx, "leasehold-gateway", log)
	if err != nil {
		return err
	}
	defer stopTraces()
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
			Credentials: g.security.Dialling(keeper), DialOptions: g.security.Showing(),
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

// forward has the front forward by a table.
func (g *Settings) forward(f *front, table *lookup.Lookup, keeper *secure.Keeper, metrics prometheus.Registerer, log *slog.Logger) error {
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
		Lookup: table, Key: g.key, MaxOutstanding: g.maxOutstanding, Attempts: g.attempts, Replay: int(g.replayBytes),
		Dial: g.dialPlainly(), DialTLS: tellDistrust(g.ends.dial(keeper), log),
	})
	if err != nil {
		return err
	}
	proxy, err := leasehttp.NewProxy(leasehttp.ProxyConfig{
		Transport: transport, Scheme: g.ends.scheme(), MaxBody: g.maxBytes, Stall: g.stall, TrustForwarded: g.trustForwarded, Logger: log, Metrics: metrics,
	})
	if err != nil {
		return err
	}
	f.serve(proxy, transport.CloseIdleConnections)
	return nil
}
