package managerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/daemon"
)

// handOverTimeout bounds the graceful handover of leadership during shutdown. After a leader's
// TTL the other managers take over anyway.
func (m *ManagerSettings) handOverTimeout() time.Duration { return m.TTL + time.Second }

// Run runs a manager until ctx ends.
func (cfg *ManagerSettings) Run(ctx context.Context, out console.Screen, log *slog.Logger) error {
	// Listen first: an address error must not leave data behind.
	listener, err := daemon.ListenOn("listen", cfg.Listen)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the manager closes it, too
	health, err := daemon.ListenOn("http", cfg.HTTP)
	if err != nil {
		return err
	}
	if health != nil {
		defer health.Close() //nolint:errcheck // the manager closes it, too
	}
	protected, err := cfg.protect(log)
	if err != nil {
		return err
	}
	defer protected.close()
	registry := daemon.NewRegistry()
	probes := daemon.ServeHealth(health, protected.pages(), protected.metrics(daemon.Scrapes(daemon.WithStore(registry), log), log), log)
	defer probes.Stop()
	stopShared, err := cfg.Start(ctx, "leasehold-manager", log)
	if err != nil {
		return err
	}
	defer stopShared()
	kept, err := openStore(ctx, cfg, protected, log)
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
		ctx, cancel := context.WithTimeout(context.Background(), cfg.handOverTimeout())
		defer cancel()
		if err := m.Close(ctx); err != nil {
			log.Warn("leadership was not handed over: the other managers wait until its TTL expires", "why", err)
		}
		return kept.close()
	}
	page, err := cfg.newDashboard(m, health, protected, log)
	if err != nil {
		return errors.Join(err, stop())
	}
	stopManager := stop
	stop = func() error {
		page.Close() // before the manager that it calls
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

// greeting is printed once the manager listens: its addresses, its store, and commands to try. The
// addresses are the actual ones; health is empty without HTTP.
func (m *ManagerSettings) greeting(listening, health string) string {
	at, base := cmp.Or(m.Advertise, listening), m.peerScheme()+"://"+health
	facts := console.Facts([]console.Entry{
		{"manager", console.Heading(listening)},
		console.If(at != listening, "reached at", at),
		console.If(health != "", "dashboard", base+"/"),
		console.If(health != "", "health", base+"/readyz"),
		{"tables", m.where()},
	})
	command := func(rest string) string {
		switch {
		case m.Security.Tls():
			rest += " --tls-dir DIR" // the operator's directory, not this manager's
		case at == cli.DefaultManager:
			return "  leasehold " + rest
		case !address.Loopback(at):
			rest += " --" + cli.InsecureFlag
		}
		return "  leasehold " + rest + " --managers " + at
	}
	next := []string{
		"", "To try next, in another terminal:", "",
		command("namespace create presence"),
		command("status"),
		command("events --follow"),
	}
	return facts + strings.Join(next, "\n") + "\n"
}

func (m *ManagerSettings) where() string {
	switch {
	case m.Store == inMemory:
		return "in memory only, shared with " + console.Counted(len(m.Peers.Members)-1, "other manager")
	case m.Store == inEtcd:
		return fmt.Sprintf("in etcd at %s, under %s", strings.Join(m.Etcd.Endpoints, ", "), m.Etcd.Prefix)
	case len(m.Members) > 1:
		return fmt.Sprintf("in %s, replicated to %s", m.DataDir, console.Counted(len(m.Members)-1, "other manager"))
	case m.Join != "":
		return fmt.Sprintf("in %s, replicated in the group of %s", m.DataDir, m.Join)
	}
	return "in " + m.DataDir
}

// Usage reports the use of limited resources: store space and open files.
func (k *KeptStore) Usage() []manager.Usage {
	var all []manager.Usage
	if k.Space != nil {
		used, most := k.Space()
		all = append(all, manager.Usage{What: "bytes of the store", Used: uint64(used), Most: uint64(most)})
	}
	if used, most, known := daemon.OpenFiles(); known {
		all = append(all, manager.Usage{What: "open files", Used: used, Most: most})
	}
	return all
}

// httpAddr returns the address of a listener for other computers: for a wildcard address only
// the port is known. It is "" without a listener.
func httpAddr(l net.Listener) string {
	if l == nil {
		return ""
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if ok && addr.IP.IsUnspecified() {
		return (&net.TCPAddr{Port: addr.Port}).String()
	}
	return l.Addr().String()
}
