package managerd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/daemon"

	"github.com/leasehold-dev/leasehold/manager"
)

// handOverPatience is how long a manager that stops waits for the store to
// learn that it no longer leads. With longer than a leader's time there is
// nothing to be gained: the others take over without a word from it.
func (m *ManagerSettings) handOverPatience() time.Duration { return m.TTL + time.Second }

// RunManager runs a manager until ctx ends.
func RunManager(ctx context.Context, cfg ManagerSettings, out io.Writer, log *slog.Logger) error {
	cli.WarnOfPlainText(cfg.Security.Exposed, log)
	// What is wrong with an address is found out before any data is touched.
	listener, err := daemon.ListenOn("listen", cfg.Listen)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the manager has closed it
	health, err := daemon.ListenOn("http", cfg.HTTP)
	if err != nil {
		return err
	}
	if health != nil {
		defer health.Close() //nolint:errcheck // the manager has closed it
	}
	protected, err := cfg.protect(log)
	if err != nil {
		return err
	}
	defer protected.close()
	registry := daemon.NewRegistry()
	probes := daemon.ServeHealth(health, protected.pages(), protected.metrics(daemon.Scrapes(daemon.WithStore(registry), log), log), log)
	defer probes.Stop()
	stopDebug, err := cfg.Debug.Serve(log)
	if err != nil {
		return err
	}
	defer stopDebug()
	stopTraces, err := daemon.ServeTraces(ctx, "leasehold-manager", log)
	if err != nil {
		return err
	}
	defer stopTraces()
	kept, err := openStore(ctx, &cfg, protected, log)
	if err != nil {
		return err
	}
	m, err := manager.Start(manager.Config{
		Store: kept.store, Peers: cfg.peers(), StoreName: kept.name, Members: kept.members, Build: daemon.BuildVersion(),
		Listener: listener, Advertise: cfg.Advertise,
		ServerCredentials: protected.server, ClientCredentials: protected.client, Access: protected.policy,
		MaxConnections: cfg.MaxConnections, MaxHandshakes: cfg.MaxHandshakes,
		TTL: cfg.TTL, Drift: cfg.Drift, Logger: log, Metrics: registry,
		HTTP: httpAddr(health), Usage: kept.Usage,
	})
	if err != nil {
		return errors.Join(err, kept.close())
	}
	stop := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), cfg.handOverPatience())
		defer cancel()
		if err := m.Close(ctx); err != nil {
			log.Warn("the others have to wait until the time of this leader is over", "why", err)
		}
		return kept.close()
	}
	page, err := cfg.newDashboard(m, health, protected, log)
	if err != nil {
		return errors.Join(err, stop())
	}
	stopManager := stop
	stop = func() error {
		page.Close() // it asks the manager
		return stopManager()
	}
	probes.Ask(pages(m.HealthHandler(), page))
	if err := cli.Write(out, cfg.greeting(listener.Addr().String(), daemon.AddrOf(health))); err != nil {
		return errors.Join(err, stop())
	}
	stopping := daemon.Ready(log, "a manager on "+listener.Addr().String())
	select {
	case <-ctx.Done():
	case <-m.Done():
		err = m.Err()
	case <-kept.done:
		err = kept.err()
	}
	stopping()
	return errors.Join(err, stop())
}
