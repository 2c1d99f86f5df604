package leasehttp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/secure"
)

// With Scheme https, a proxy verifies the server, and sends nothing to one without the expected
// certificate.
func TestProxyOverTLS(t *testing.T) {
	for name, test := range map[string]struct {
		server string
		want   int
	}{
		"the server":     {"owner/test/a", http.StatusOK},
		"another server": {"owner/test/b", http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				keeper := certificates(t)
				reached := false
				server := c.Node("a")
				serveTLS(server, keeper(test.server), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					reached = true
					_, _ = w.Write([]byte(secure.Identities(r.TLS.PeerCertificates[0])[0])) // fails only if the caller disconnected
				}))
				server.Join(owner.Config{})
				c.Settle()
				gateway, own := c.Node("gateway"), keeper("owner/test/gateway")
				transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
					Lookup: gateway.Lookup(), Key: user, Attempts: 2,
					DialTLS: func(ctx context.Context, network, addr string) (net.Conn, error) {
						conn, err := gateway.DialContext(ctx, network, addr)
						if err != nil {
							return nil, err
						}
						cfg := own.ClientTLS()
						cfg.ServerName, _, _ = net.SplitHostPort(addr)
						over := tls.Client(conn, cfg)
						if err := over.HandshakeContext(ctx); err != nil {
							return nil, errors.Join(err, conn.Close())
						}
						return over, nil
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				gateway.Cleanup(func(context.Context) { transport.CloseIdleConnections() })
				proxy, err := leasehttp.NewProxy(leasehttp.ProxyConfig{Transport: transport, Scheme: "https"})
				if err != nil {
					t.Fatal(err)
				}
				gateway.Serve(proxy)
				got := do(t, base(c.Node("caller")), request(t, http.MethodPost, "http://gateway:8080/", "order"))
				if got.status != test.want && (test.want == http.StatusOK || got.status < 500) || reached != (test.want == http.StatusOK) {
					t.Errorf("%d, %s; reached: %v", got.status, got.body, reached)
				}
				if test.want == http.StatusOK && got.body != "spiffe://d/owner/test/gateway" {
					t.Errorf("the server sees the gateway as %q", got.body)
				}
				if strings.Contains(got.body, "may have been executed") {
					t.Errorf("nothing was sent, but the response is %s", got.body)
				}
			})
		})
	}
}

func TestDialTLSIsForTheDefaultBase(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		_, err := leasehttp.NewTransport(leasehttp.TransportConfig{
			Lookup: c.Node("x").Lookup(), Key: user, Base: http.DefaultTransport,
			DialTLS: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("never") },
		})
		if leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Error(err)
		}
	})
}

// certificates creates certificates and returns a function that opens them.
func certificates(t *testing.T) func(dir string) *secure.Keeper {
	t.Helper()
	var parties []pki.Party
	for _, name := range []string{"a", "b", "gateway"} {
		parties = append(parties, pki.Party{Role: pki.Owner, Namespace: "test", Name: name, Hosts: []string{name}})
	}
	ca, _, err := pki.Create(filepath.Join(t.TempDir(), "pki"), "d", parties, time.Now(), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return func(dir string) *secure.Keeper {
		k, err := secure.Open(secure.Config{Cert: ca.Path(dir + "/tls.crt"), Key: ca.Path(dir + "/tls.key"), Roots: ca.Path("ca.crt")})
		if err != nil {
			t.Fatal(err)
		}
		k.Close() // the files do not change
		return k
	}
}

// serveTLS serves until the node ends.
func serveTLS(n *leaseholdtest.Node, own *secure.Keeper, handler http.Handler) {
	server := &http.Server{Handler: handler, TLSConfig: own.ServerTLS(secure.Required), ReadHeaderTimeout: time.Minute}
	listener, ended := n.Listen(8080), make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.ServeTLS(listener, "", "") // until Close
	}()
	n.Cleanup(func(context.Context) {
		_ = server.Close()
		<-ended
	})
}
