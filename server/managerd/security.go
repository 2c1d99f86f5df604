package managerd

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/manager"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/dashboard"
	"github.com/leasehold-dev/leasehold/server/httpauth"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// validateSecurity wants certificates and a policy together: certificates say who
// somebody is, and the policy what they may do.
func (m *ManagerSettings) validateSecurity() error {
	if err := m.Security.Validate(); err != nil {
		return err
	}
	switch {
	case m.Security.Tls() && m.Access == "":
		return errors.New("with TLS, --access must name the file that says who may do what: 'leasehold pki init' makes one, access.yaml")
	case !m.Security.Tls() && m.Access != "":
		return fmt.Errorf("%s says who may do what, and in plain text nobody can show who they are: say with --tls-dir where the certificates are", m.Origin("access"))
	}
	return nil
}

// protection is what a manager knows of itself and others: a keeper and a policy, or
// neither.
type protection struct {
	server, client credentials.TransportCredentials // of its connections

	keeper  *secure.Keeper
	policy  *access.Policy
	done    chan struct{} // closed when it is closed
	running sync.WaitGroup
}

func (m *ManagerSettings) protect(log *slog.Logger) (*protection, error) {
	k, err := m.Security.OpenServer(log)
	if err != nil {
		return nil, err
	}
	p := &protection{keeper: k, server: m.Security.Serving(k), client: m.Security.Dialling(k), done: make(chan struct{})}
	if k == nil {
		return p, nil
	}
	p.policy, err = access.Open(access.Config{File: m.Access, Revoked: p.keeper.Revoked, Logger: log, Audit: log.With("audit", true)})
	if err != nil {
		p.keeper.Close()
		return nil, err
	}
	return p, nil
}

// close ends the reading of the files. It comes after all that goes by them.
func (p *protection) close() {
	close(p.done)
	p.running.Wait()
	if p.policy != nil {
		p.policy.Close()
	}
	if p.keeper != nil {
		p.keeper.Close()
	}
}

func (p *protection) dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(), grpc.WithTransportCredentials(p.client))...)
}

// stores is how the embedded stores of a group speak to each other.
func (p *protection) stores(files secure.Config) etcd.PeerTLS {
	if p.keeper == nil {
		return etcd.PeerTLS{}
	}
	server := p.keeper.ServerTLS(secure.Required)
	server.NextProtos = []string{"http/1.1"}
	return etcd.PeerTLS{CertFile: files.Cert, KeyFile: files.Key, CAFile: files.Roots, Server: server, Allow: p.isManager}
}

// isManager reports why whoever has connected to the store is no manager.
func (p *protection) isManager(state *tls.ConnectionState) error {
	who, err := p.policy.AuthenticateTLS(state)
	if err != nil {
		return err
	}
	return p.policy.Allow(who, storagev1.CouncilService_Share_FullMethodName, "", "")
}

// watchRoots says what etcd does not do by itself, until p is closed: the connections that
// a store makes to others go by the authorities of when it was started.
func (p *protection) watchRoots(file string, log *slog.Logger) {
	if p.keeper == nil {
		return
	}
	began, err := os.ReadFile(file)
	if err != nil {
		return // the keeper has read it a moment ago, and says what became of it
	}
	p.running.Go(func() {
		for {
			select {
			case <-p.done:
				return
			case <-p.keeper.Changed():
			}
			if now, err := os.ReadFile(file); err == nil && !bytes.Equal(now, began) {
				log.Warn("whom we trust has changed: connections of the store to other managers go by the old file until this manager is restarted. Restart the managers one after another", "file", file)
				began = now
			}
		}
	})
}

// pages is how health, metrics and the dashboard are served: over TLS if there is a
// keeper, in plain text if the config is nil. Who has no certificate may log in.
func (p *protection) pages() *tls.Config {
	if p.keeper == nil {
		return nil
	}
	return p.keeper.ServerTLS(secure.IfGiven)
}

// metrics lets those see the metrics who may see the status of some namespace, if there
// is a policy: Prometheus has a certificate, or a token.
func (p *protection) metrics(all http.Handler, log *slog.Logger) http.Handler {
	if p.policy == nil {
		return all
	}
	return httpauth.New(p.policy, log.With("audit", true)).Guard(leaseholdv1.AdminService_GetStatus_FullMethodName, all)
}

// dashboardSettings is how the dashboard is served, on the address for HTTP.
type dashboardSettings struct {
	Token secret.Text // of administrators; empty: there are none
	Hosts []string    // under which names it may be asked for

	tokenFile string
}

func (m *ManagerSettings) validateDashboard() error {
	d := &m.Dashboard
	for _, host := range d.Hosts {
		if host == "" || strings.ContainsAny(host, ":/ ") {
			return fmt.Errorf("%s: %q: want the name of a host, without port", m.Origin("dashboard-hosts"), host)
		}
	}
	if d.tokenFile == "" {
		return nil
	}
	if m.Security.Tls() {
		return fmt.Errorf("%s is for a dashboard in plain text: over TLS, people log in with a token of the --access file; 'leasehold token' makes one", m.Origin("admin-token-file"))
	}
	if m.HTTP == "" {
		return fmt.Errorf("%s is for the dashboard, and --http is \"\": there is none", m.Origin("admin-token-file"))
	}
	var err error
	if d.Token, err = cli.ReadSecret(d.tokenFile); err == nil && d.Token.Len() < dashboard.MinToken {
		err = errors.New("the token is too short to be safe: make one with openssl rand -hex 32")
	}
	if err != nil {
		return cli.Fail(fmt.Errorf("%s: %w", m.Origin("admin-token-file"), err))
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
