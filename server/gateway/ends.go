package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/cli"
)

// gatewayEnds configures TLS with callers and with servers.
type gatewayEnds struct {
	frontTLS            bool
	frontCert, frontKey string   // for callers, instead of the certificate for managers
	healthTLS           bool     // health and metrics use the certificate for callers
	backTLS             bool     // to servers
	backIdentities      []string // accepted for servers
}

func (e *gatewayEnds) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&e.frontTLS, "front-tls", false, "use TLS with callers, with the certificate in --tls-dir or --front-cert")
	f.StringVar(&e.frontCert, "front-cert", "", "certificate chain `file` for callers; reloaded when it changes")
	f.StringVar(&e.frontKey, "front-key", "", "private key `file` of --front-cert")
	f.BoolVar(&e.healthTLS, "health-tls", false, "use TLS on --health-listen, with the certificate for callers; requires --front-tls")
	f.BoolVar(&e.backTLS, "back-tls", false, "use mutual TLS with servers, with the certificate in --tls-dir; the server's certificate\nmust match the address with which it joined")
	f.StringSliceVar(&e.backIdentities, "back-identities", nil, "`identities` accepted for servers, instead of their address, such as\nspiffe://example.org/owner/presence/{name}")
}

func (g *Settings) validateEnds() error {
	e := &g.ends
	for _, id := range e.backIdentities {
		if err := secure.Identity(id).Validate(); err != nil {
			return fmt.Errorf("%s: %w", g.Origin("back-identities"), err)
		}
	}
	switch {
	case (e.frontCert == "") != (e.frontKey == ""):
		return errors.New("--front-cert and --front-key must be set together: one is missing")
	case e.frontCert != "" && !e.frontTLS:
		return fmt.Errorf("%s requires --front-tls", g.Origin("front-cert"))
	case e.healthTLS && !e.frontTLS:
		return fmt.Errorf("%s requires --front-tls", g.Origin("health-tls"))
	case len(e.backIdentities) > 0 && !e.backTLS:
		return fmt.Errorf("%s requires --back-tls", g.Origin("back-identities"))
	case (e.frontTLS || e.backTLS) && !g.Security.Tls():
		return errors.New("--front-tls and --back-tls require --tls-dir, with the gateway's certificate and the trusted CAs")
	case e.backTLS && len(g.Security.Servers) > 0 && len(e.backIdentities) == 0:
		return fmt.Errorf("%s is for managers: set the identities of servers with --back-identities", g.Origin("tls-servers"))
	}
	return nil
}

// keeper reads the certificates, if there are any. With --front-tls one is required.
func (g *Settings) keeper(log *slog.Logger) (*secure.Keeper, error) {
	if g.ends.frontTLS && g.ends.frontCert == "" {
		return g.Security.OpenServer(log)
	}
	return g.Security.Open(log)
}

// front returns the TLS configuration for callers; nil for plaintext. It requests no client
// certificate: servers authenticate callers. The caller of front calls done at the end.
func (e *gatewayEnds) front(own *secure.Keeper, s *cli.Security, log *slog.Logger) (over *tls.Config, done func(), err error) {
	switch {
	case !e.frontTLS:
		return nil, func() {}, nil
	case e.frontCert == "":
		return own.ServerTLS(secure.Unasked), func() {}, nil
	}
	k, err := secure.Open(secure.Config{Cert: e.frontCert, Key: e.frontKey, Roots: s.Config(log).Roots, Logger: log})
	if err != nil {
		return nil, nil, cli.Fail(err)
	}
	if err := cli.CanServe(k); err != nil {
		k.Close()
		return nil, nil, cli.Fail(fmt.Errorf("--front-cert: %w", err))
	}
	return k.ServerTLS(secure.Unasked), k.Close, nil
}

// dial returns the function that connects to servers over TLS; nil for plaintext.
func (e *gatewayEnds) dial(own *secure.Keeper) dialFunc {
	switch {
	case !e.backTLS:
		return nil
	case len(e.backIdentities) == 0:
		return own.DialTLS
	}
	servers := make([]secure.Identity, len(e.backIdentities))
	for i, id := range e.backIdentities {
		servers[i] = secure.Identity(id)
	}
	over := own.ClientTLS(servers...)
	over.NextProtos = []string{"http/1.1"}
	return (&tls.Dialer{NetDialer: &net.Dialer{KeepAlive: 15 * time.Second}, Config: over}).DialContext
}

// dialPlainly returns the function that connects to servers in plaintext: only on this computer,
// unless the network is trusted. It checks the resolved address before it sends data.
func (g *Settings) dialPlainly() dialFunc {
	d := &net.Dialer{KeepAlive: 15 * time.Second}
	if !g.Security.Insecure {
		d.Control = func(_, addr string, _ syscall.RawConn) error {
			if address.Loopback(addr) {
				return nil
			}
			return fmt.Errorf("the server is on another computer, and plaintext is not allowed: start the gateway with --back-tls, or with --%s if the network is trusted", cli.InsecureFlag)
		}
	}
	return d.DialContext
}

// probes returns the TLS configuration for health and metrics, derived from that for callers; nil
// for plaintext.
func (e *gatewayEnds) probes(front *tls.Config) *tls.Config {
	if !e.healthTLS {
		return nil
	}
	return front.Clone()
}

func urlOf(addr string, secured bool) string { return scheme(secured) + "://" + addr }

func scheme(secured bool) string {
	if secured {
		return "https"
	}
	return "http"
}

// A dialFunc connects to a server.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// tlsFailureLogInterval limits the log of TLS failures: a failed request is retried many times.
const tlsFailureLogInterval = 10 * time.Second

// logTLSFailures logs when a server accepts a connection but fails the TLS handshake: it uses
// plaintext, or has the wrong certificate. Such failures are permanent, and callers see only
// a delay. Servers that are down are not logged.
func logTLSFailures(dial dialFunc, log *slog.Logger) dialFunc {
	if dial == nil {
		return nil
	}
	throttle := logthrottle.New[struct{}](tlsFailureLogInterval)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil || ctx.Err() != nil || isDial(err) {
			return conn, err
		}
		if _, ok := throttle.Allow(struct{}{}, 1); ok {
			log.Warn("TLS handshake with a server failed: its requests wait, and fail", "server", addr, "why", err)
		}
		return conn, err
	}
}

func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
