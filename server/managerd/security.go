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

// validateSecurity requires certificates and an access policy together: certificates
// authenticate, and the policy authorizes.
func (m *ManagerSettings) validateSecurity() error {
	if err := m.Security.Validate(); err != nil {
		return err
	}
	switch {
	case m.Security.Tls() && m.Access == "":
		return errors.New("TLS requires --access, the file with the access policy; 'leasehold pki init' creates one, access.yaml")
	case !m.Security.Tls() && m.Access != "":
		return fmt.Errorf("%s requires TLS, which authenticates clients: name the certificates with --tls-dir", m.Origin("access"))
	}
	return nil
}

// protection holds the certificates and the access policy of a manager, or neither.
type protection struct {
	server, client credentials.TransportCredentials

	keeper  *secure.Keeper
	policy  *access.Policy
	done    chan struct{} // closed by close
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

// close stops the reloading of the files. Close their users first.
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

// stores returns the TLS configuration between the embedded stores of a group.
func (p *protection) stores(files secure.Config) etcd.PeerTLS {
	if p.keeper == nil {
		return etcd.PeerTLS{}
	}
	server := p.keeper.ServerTLS(secure.Required)
	server.NextProtos = []string{"http/1.1"}
	return etcd.PeerTLS{CertFile: files.Cert, KeyFile: files.Key, CAFile: files.Roots, Server: server, Allow: p.isManager}
}

// isManager returns an error unless the peer of the store is a manager.
func (p *protection) isManager(state *tls.ConnectionState) error {
	who, err := p.policy.AuthenticateTLS(state)
	if err != nil {
		return err
	}
	return p.policy.Allow(who, storagev1.CouncilService_Share_FullMethodName, "", "")
}

// watchRoots warns if the CA file changes, until p is closed: etcd loads the CAs of outgoing
// connections only at the start.
func (p *protection) watchRoots(file string, log *slog.Logger) {
	if p.keeper == nil {
		return
	}
	began, err := os.ReadFile(file)
	if err != nil {
		return // the keeper has just read it, and reports errors
	}
	p.running.Go(func() {
		for {
			select {
			case <-p.done:
				return
			case <-p.keeper.Changed():
			}
			if now, err := os.ReadFile(file); err == nil && !bytes.Equal(now, began) {
				log.Warn("trusted CAs have changed: the store uses the old file for connections to other managers until this manager restarts; restart the managers one after another", "file", file)
				began = now
			}
		}
	})
}

// pages returns the TLS configuration for health, metrics and the dashboard; nil for plaintext.
// Clients without a certificate may log in.
func (p *protection) pages() *tls.Config {
	if p.keeper == nil {
		return nil
	}
	return p.keeper.ServerTLS(secure.IfGiven)
}

// metrics restricts the metrics, under a policy, to clients that may see the status of some
// namespace. Prometheus authenticates by a certificate or a token.
func (p *protection) metrics(all http.Handler, log *slog.Logger) http.Handler {
	if p.policy == nil {
		return all
	}
	return httpauth.New(p.policy, log.With("audit", true)).Guard(leaseholdv1.AdminService_GetStatus_FullMethodName, all)
}

// dashboardSettings configures the dashboard, which is served on the address of --http.
type dashboardSettings struct {
	Token secret.Text // of administrators; empty: read-only
	Hosts []string    // accepted host names

	tokenFile string
}

func (m *ManagerSettings) validateDashboard() error {
	d := &m.Dashboard
	for _, host := range d.Hosts {
		if host == "" || strings.ContainsAny(host, ":/ ") {
			return fmt.Errorf("%s: %q: want a host name without a port", m.Origin("dashboard-hosts"), host)
		}
	}
	if d.tokenFile == "" {
		return nil
	}
	if m.Security.Tls() {
		return fmt.Errorf("%s is for a plaintext dashboard: with TLS, log in with a token of the --access file, which 'leasehold token' creates", m.Origin("admin-token-file"))
	}
	if m.HTTP == "" {
		return fmt.Errorf("%s requires the dashboard, which --http \"\" disables", m.Origin("admin-token-file"))
	}
	var err error
	if d.Token, err = cli.ReadSecret(d.tokenFile); err == nil && d.Token.Len() < dashboard.MinToken {
		err = errors.New("the token is too short to be secure: create one with openssl rand -hex 32")
	}
	if err != nil {
		return cli.Fail(fmt.Errorf("%s: %w", m.Origin("admin-token-file"), err))
	}
	return nil
}

// newDashboard returns the dashboard of a manager. The listener is nil without HTTP. The caller
// closes the dashboard.
func (m *ManagerSettings) newDashboard(of *manager.Manager, at net.Listener, by *protection, log *slog.Logger) (*dashboard.Dashboard, error) {
	hosts := append([]string{}, m.Dashboard.Hosts...)
	for _, addr := range []string{m.HTTP, of.Addr()} {
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
			hosts = append(hosts, host)
		}
	}
	if by.keeper != nil {
		hosts = append(hosts, by.keeper.Describe().Hosts...) // the certificate proves these names
	}
	if m.Dashboard.Token.Len() > 0 && at != nil && !onLoopback(at.Addr()) {
		log.Warn("dashboard logins use plaintext HTTP, which others on the network can read: use TLS (--tls-dir)", "http", at.Addr())
	}
	return dashboard.New(dashboard.Config{
		Admin: of.Admin(), Access: by.policy, Token: m.Dashboard.Token, Hosts: hosts, Logger: log.With("audit", true),
	})
}

// pages returns the handler of health and, for all other paths, of the dashboard.
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
