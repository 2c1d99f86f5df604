package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/manager"
)

// handOverPatience is how long a manager that stops waits for the store to
// learn that it no longer leads. With longer than a leader's time there is
// nothing to be gained: the others take over without a word from it.
func (m *managerSettings) handOverPatience() time.Duration { return m.TTL + time.Second }

// runManager runs a manager until ctx ends.
func runManager(ctx context.Context, cfg managerSettings, out io.Writer, log *slog.Logger) error {
	warnOfPlainText(cfg.Security.exposed, log)
	// What is wrong with an address is found out before any data is touched.
	listener, err := listenOn("listen", cfg.Listen)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the manager has closed it
	health, err := listenOn("http", cfg.HTTP)
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
	registry := newRegistry()
	probes := serveHealth(health, protected.pages(), protected.metrics(scrapes(withStore(registry), log), log), log)
	defer probes.stop()
	stopDebug, err := cfg.Debug.serve(log)
	if err != nil {
		return err
	}
	defer stopDebug()
	stopTraces, err := serveTraces(ctx, "leasehold-manager", log)
	if err != nil {
		return err
	}
	defer stopTraces()
	kept, err := openStore(ctx, &cfg, protected, log)
	if err != nil {
		return err
	}
	m, err := manager.Start(manager.Config{
		Store: kept.store, Peers: cfg.peers(), StoreName: kept.name, Members: kept.members, Build: buildVersion(),
		Listener: listener, Advertise: cfg.Advertise,
		ServerCredentials: protected.server, ClientCredentials: protected.client, Access: protected.policy,
		MaxConnections: cfg.MaxConnections, MaxHandshakes: cfg.MaxHandshakes,
		TTL: cfg.TTL, Drift: cfg.Drift, Logger: log, Metrics: registry,
		HTTP: httpAddr(health), Usage: kept.usage,
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
	probes.ask(pages(m.HealthHandler(), page))
	if err := write(out, cfg.greeting(listener.Addr().String(), addrOf(health))); err != nil {
		return errors.Join(err, stop())
	}
	stopping := ready(log, "a manager on "+listener.Addr().String())
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

// listenOn listens on the address of a flag; an empty one is nowhere.
func listenOn(flag, addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		hint := "choose another with --" + flag
		if errors.Is(err, os.ErrPermission) {
			hint = "ports below 1024 are for root; " + hint
		}
		return nil, leasehold.Errorf("listen", leasehold.ErrUnavailable, addr, "%w; %s", err, hint)
	}
	return l, nil
}

func addrOf(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}
