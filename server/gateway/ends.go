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

// gatewayEnds is how a gateway speaks to callers and to servers.
type gatewayEnds struct {
	frontTLS            bool
	frontCert, frontKey string   // another certificate than that for managers
	healthTLS           bool     // health and metrics with the certificate for callers
	backTLS             bool     // to servers
	backIdentities      []string // that servers must have
}

func (e *gatewayEnds) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&e.frontTLS, "front-tls", false, "speak TLS with callers, and show them the certificate of --tls-dir, or that of\n--front-cert")
	f.StringVar(&e.frontCert, "front-cert", "", "a `file` with a certificate for callers, and those that lead to it; read again when it\nchanges")
	f.StringVar(&e.frontKey, "front-key", "", "a `file` with its key")
	f.BoolVar(&e.healthTLS, "health-tls", false, "speak TLS on --health-listen as well, with the certificate for callers; it takes\n--front-tls")
	f.BoolVar(&e.backTLS, "back-tls", false, "speak TLS with servers, and show them the certificate of --tls-dir; theirs must be for\nthe address that they have joined with")
	f.StringSliceVar(&e.backIdentities, "back-identities", nil, "`identities` that servers must have instead, such as\nspiffe://example.org/owner/presence/{name}")
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
		return errors.New("--front-cert and --front-key belong together: a certificate, and its key")
	case e.frontCert != "" && !e.frontTLS:
		return fmt.Errorf("%s is for --front-tls, which is not given", g.Origin("front-cert"))
	case e.healthTLS && !e.frontTLS:
		return fmt.Errorf("%s shows the certificate for callers, and takes --front-tls", g.Origin("health-tls"))
	case len(e.backIdentities) > 0 && !e.backTLS:
		return fmt.Errorf("%s is for --back-tls, which is not given", g.Origin("back-identities"))
	case (e.frontTLS || e.backTLS) && !g.Security.Tls():
		return errors.New("--front-tls and --back-tls need --tls-dir, where our certificate is, and whom we trust")
	case e.backTLS && len(g.Security.Servers) > 0 && len(e.backIdentities) == 0:
		return fmt.Errorf("%s is about managers: say with --back-identities which identities servers must have", g.Origin("tls-servers"))
	}
	return nil
}

// keeper reads the certificates, if there are any. To show callers one takes one.
func (g *Settings) keeper(log *slog.Logger) (*secure.Keeper, error) {
	if g.ends.frontTLS && g.ends.frontCert == "" {
		return g.Security.OpenServer(log)
	}
	return g.Security.Open(log)
}

// front is what callers are served over; nil for plain text. They are asked for no
// certificate: who they are is the servers' business. Call done when it is over.
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

// dial is how servers are connected to over TLS; nil if they are not.
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

// dialPlainly is how servers are connected to in plain text: only on this computer, unless
// somebody has said that the network can be trusted. Where a server is, is known when it is
// called, and not a byte goes to one that is elsewhere.
func (g *Settings) dialPlainly() dialFunc {
	d := &net.Dialer{KeepAlive: 15 * time.Second}
	if !g.Security.Insecure {
		d.Control = func(_, addr string, _ syscall.RawConn) error {
			if address.Loopback(addr) {
				return nil
			}
			return fmt.Errorf("the server is on another computer, and would be spoken to in plain text: start the gateway with --back-tls, or with --%s if the network can be trusted", cli.InsecureFlag)
		}
	}
	return d.DialContext
}

// probes is what health and metrics are served over, of what callers are; nil for plain
// text.
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

// distrustPause is how long the log is silent about servers that could not be spoken to
// over TLS, after a line: requests are tried again many times.
const distrustPause = 10 * time.Second

// tellDistrust has the log say when a server is there and cannot be spoken to over TLS: it
// speaks plain text, or is somebody else. That does not mend itself, and callers only see
// that it takes long. Servers that are not there are nothing new.
func tellDistrust(dial dialFunc, log *slog.Logger) dialFunc {
	if dial == nil {
		return nil
	}
	throttle := logthrottle.New[struct{}](distrustPause)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil || ctx.Err() != nil || isDial(err) {
			return conn, err
		}
		if _, ok := throttle.Allow(struct{}{}, 1); ok {
			log.Warn("a server cannot be spoken to over TLS: its requests wait, and fail", "server", addr, "why", err)
		}
		return conn, err
	}
}

func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
