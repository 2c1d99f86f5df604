package managerd

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	"github.com/leasehold-dev/leasehold/secure"
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
		return fmt.Errorf("%s says who may do what, and in plain text nobody can show who they are: say with --tls-dir where the certificates are", m.origin("access"))
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

// protect reads the certificates and the policy.
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

// dial connects to another manager.
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
