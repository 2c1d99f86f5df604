package managerd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/server/dashboard"
)

// dashboardSettings is how the dashboard is served, on the address for HTTP.
type dashboardSettings struct {
	Token secret.Text // of administrators; empty: there are none
	Hosts []string    // under which names it may be asked for

	tokenFile string
}

// validateDashboard reads the token, and checks the names.
func (m *ManagerSettings) validateDashboard() error {
	d := &m.Dashboard
	for _, host := range d.Hosts {
		if host == "" || strings.ContainsAny(host, ":/ ") {
			return fmt.Errorf("%s: %q: want the name of a host, without port", m.origin("dashboard-hosts"), host)
		}
	}
	if d.tokenFile == "" {
		return nil
	}
	if m.Security.Tls() {
		return fmt.Errorf("%s is for a dashboard in plain text: over TLS, people log in with a token of the --access file; 'leasehold token' makes one", m.origin("admin-token-file"))
	}
	if m.HTTP == "" {
		return fmt.Errorf("%s is for the dashboard, and --http is \"\": there is none", m.origin("admin-token-file"))
	}
	var err error
	if d.Token, err = cli.ReadSecret(d.tokenFile); err == nil && d.Token.Len() < dashboard.MinToken {
		err = errors.New("the token is too short to be safe: make one with openssl rand -hex 32")
	}
	if err != nil {
		return cli.Fail(fmt.Errorf("%s: %w", m.origin("admin-token-file"), err))
	}
	return nil
}

// newDashboard returns the dashboard of a manager, for a listener that may be
// nil: then nobody sees it. It must be closed unless there is an error.
func (m *ManagerSettings) newDashboard(of *manager.Manager, at net.Listener, by *protection, log *slog.Logger) (*dashboard.Dashboard, error) {
	hosts := append([]string{}, m.Dashboard.Hosts...)
	for _, addr := range []string{m.HTTP, of.Addr()} {
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
			hosts = append(hosts, host)
		}
	}
	if by.keeper != nil {
		hosts = append(hosts, by.keeper.Describe().Hosts...) // nobody else can serve under these
	}
	if m.Dashboard.Token.Len() > 0 && at != nil && !onLoopback(at.Addr()) {
		log.Warn("administrators log in to the dashboard over HTTP, which others on the network can read: use TLS (--tls-dir)", "http", at.Addr())
	}
	return dashboard.New(dashboard.Config{
		Admin: of.Admin(), Access: by.policy, Token: m.Dashboard.Token, Hosts: hosts, Logger: log.With("audit", true),
	})
}

// pages is what a manager serves by HTTP: health, and for all else the dashboard.
func pages(health, dashboard http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz", "/restartz"} {
		mux.Handle(path, health)
	}
	mux.Handle("/", dashboard)
	return mux
}

func onLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
