package agent

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
)

// Config configures an agent. Managers are required.
type Config struct {
	// Managers are the addresses of the manager group, host:port.
	Managers []string

	// MaxPromise is for how long the end of a lease is held back because of an answer. An answer is valid
	// for that, less the drift bound. Short: a range has a new owner sooner. Long: programs ask less
	// often, and tolerate longer pauses. 50 ms to 10 s. Default 1 s.
	MaxPromise time.Duration
	// MaxOwners is how many programs may be joined at a time. Default 64.
	MaxOwners int
	// MaxNamespaces is how many lease tables are followed at a time. Default 64.
	MaxNamespaces int
	// MaxStreams is how many streams of events and losses may be open at a time. Default 256.
	MaxStreams int
	// MaxConns is how many connections may be open at a time. Default 1024.
	MaxConns int

	// Hosts are the names of the agent, besides localhost and any IP address. See guard.go.
	Hosts []string

	// Access, if set, is the policy for programs: with a certificate they may join under the names that
	// the policy gives to the owner, and look up keys with the role lookup; tokens are for lookups. The
	// agent calls managers as itself, and must be permitted the same there. Default: all programs may.
	Access *access.Policy
	// TLS, if set, is what the agent serves with; it needs Access. Default: plain text.
	TLS *tls.Config

	// Credentials secure the connections to the managers. Default: plain text, to
	// managers on the loopback.
	Credentials credentials.TransportCredentials
	// DialOptions are added to those of the libraries, and prevail.
	DialOptions []grpc.DialOption
	// Build is the version in the status.
	Build string
	// Logger is optional.
	Logger *slog.Logger

	// Metrics, if set, gets the metrics of the owners and lookups, and Scrape answers GET /metrics.
	Metrics prometheus.Registerer
	Scrape  http.Handler
}

// Shorter promises are over before they are read; longer ones keep ranges from their next owners.
const (
	minPromise = 50 * time.Millisecond
	maxPromise = 10 * time.Second
)

func (c *Config) validate() error {
	if len(c.Managers) == 0 {
		return bad("Managers", "at least one address is needed, host:port")
	}
	if c.Credentials == nil {
		if err := address.CheckPlaintext(c.Managers...); err != nil {
			return bad("Managers", "%w", err)
		}
	}
	if c.TLS != nil && c.Access == nil {
		return bad("TLS", "identifies callers, and needs Access, which says what they may do")
	}
	for _, n := range []struct {
		name  string
		field *int
		usual int
	}{
		{"MaxOwners", &c.MaxOwners, 64},
		{"MaxNamespaces", &c.MaxNamespaces, 64},
		{"MaxStreams", &c.MaxStreams, 256},
		{"MaxConns", &c.MaxConns, 1024},
	} {
		if *n.field < 0 {
			return bad(n.name, "is %d, want more than 0", *n.field)
		}
		if *n.field == 0 {
			*n.field = n.usual
		}
	}
	if c.MaxPromise == 0 {
		c.MaxPromise = time.Second
	}
	if c.MaxPromise < minPromise || c.MaxPromise > maxPromise {
		return bad("MaxPromise", "is %v, want %v to %v", c.MaxPromise, minPromise, maxPromise)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c.validateHosts()
}

func (c *Config) validateHosts() error {
	for _, host := range c.Hosts {
		if _, err := netip.ParseAddr(host); err == nil || host == "" || strings.ContainsAny(host, ":/ ") {
			return bad("Hosts", "%q: want the name of a host, without a port; addresses are allowed anyway", host)
		}
	}
	return nil
}

func bad(subject, format string, args ...any) error {
	return leasehold.Errorf("agent", leasehold.ErrInvalid, subject, format, args...)
}
