package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/dashboard"
	"github.com/leasehold-dev/leasehold/manager"
)

// dashboardSettings is how the dashboard is served, on the address for HTTP.
type dashboardSettings struct {
	Token string   // of administrators; empty: there are none
	Hosts []string // under which names it may be asked for

	tokenFile string
}

// validateDashboard reads the token, and checks the names.
func (m *managerSettings) validateDashboard() error {
	d := &m.Dashboard
	for _, host := range d.Hosts {
		if host == "" || strings.ContainsAny(host, ":/ ") {
			return fmt.Errorf("%s: %q: want the name of a host, without port", m.origin("dashboard-hosts"), host)
		}
	}
	if d.tokenFile == "" {
		return nil
	}
	if m.HTTP == "" {
		return fmt.Errorf("%s is for the dashboard, and --http is \"\": there is none", m.origin("admin-token-file"))
	}
	info, err := os.Stat(d.tokenFile)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("others can read it: its mode is %04o, want 0600; chmod 600 %s", info.Mode().Perm(), d.tokenFile)
	}
	if err == nil {
		d.Token, err = readSecret(d.tokenFile)
	}
	if err == nil && len(d.Token) < dashboard.MinToken {
		err = errors.New("the token is too short to be safe: make one with openssl rand -hex 32")
	}
	if err != nil {
		return failed{fmt.Errorf("%s: %w", m.origin("admin-token-file"), err)}
	}
	return nil
}

// newDashboard returns the dashboard of a manager, for a listener that may be
// nil: then nobody sees it. It must be closed unless there is an error.
func (m *managerSettings) newDashboard(of *manager.Manager, at net.Listener, log *slog.Logger) (*dashboard.Dashboard, error) {
	hosts := append([]string{}, m.Dashboard.Hosts...)
	for _, addr := range []string{m.HTTP, of.Addr()} {
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
			hosts = append(hosts, host)
		}
	}
	if m.Dashboard.Token != "" && at != nil && !onLoopback(at.Addr()) {
		log.Warn("administrators log in to the dashboard over HTTP, which others on the network can read: put a proxy with TLS in front of it, and listen on the loopback", "http", at.Addr())
	}
	return dashboard.New(dashboard.Config{Admin: of.Admin(), Token: m.Dashboard.Token, Hosts: hosts, Logger: log})
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
