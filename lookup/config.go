package lookup

import (
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerdns"
)

// Config configures a Lookup.
type Config struct {
	// Namespace and Managers are required. Managers are the addresses of the
	// manager group, host:port. One reachable address is sufficient; an unreachable one
	// delays Open.
	//
	// dns:///host:port is a manager at each address of the host, and
	// srv:///_service._proto.name one at each SRV record. Names are resolved about every 30 s,
	// and after a connection has failed. With TLS prefer SRV: certificates contain host names.
	Namespace leasehold.Namespace
	Managers  []string
	// Resolver resolves names in Managers, and the hosts of SRV records. Default: that of the
	// system.
	Resolver Resolver

	// OnLoss, if set, is called with the losses that happen after Open, in
	// order. It runs on a separate goroutine, one call at a time. If it is slower than
	// the losses, it receives them as a slow reader does: see [Lookup.Losses].
	// It must not call Close, which waits for it.
	OnLoss func([]leasehold.Loss)
	// OnContact, if set, is called when contact is lost, and when it is restored. It
	// runs on the goroutine of OnLoss: when it is called for a restored contact,
	// OnLoss has returned for every loss that happened before. A loss of contact that
	// ends while a call is running may be skipped. It must not call Close.
	OnContact func(Contact)

	// Poll is the interval of requests. Managers broadcast changes; the reply to a
	// request proves that none was missed. Default 5 s.
	Poll time.Duration
	// Stale is the maximum age of that proof before contact is lost. A short value
	// reports early that losses may be missing; a long one tolerates
	// longer network faults. At least three polls. Default 30 s.
	Stale time.Duration
	// ConservativeRecovery reports the whole key space as lost when contact is lost,
	// with [leasehold.CauseContact], and again every Stale until it is restored.
	// These are the conservative recovery notifications of PRS.
	//
	// Without it, a loss that happens while contact is lost is reported when contact
	// is restored, and not before; an outage without a loss causes no caller
	// to recreate state. With it, every loss is reported within Stale and a retry interval,
	// independent of managers and network; but callers recreate all state in
	// every outage of that length, in most cases without need. Set it if a caller must
	// not wait for managers, for instance because it can redirect its clients.
	ConservativeRecovery bool
	// KeepLosses is the number of losses that are kept in full for slow or resuming
	// readers. Each takes about 60 bytes. Default 8192.
	KeepLosses int

	// Credentials secure the connections to the managers: those of package secure,
	// or insecure.NewCredentials() for plaintext in a trusted network.
	// Default: plaintext within this computer; Managers must then be loopback addresses.
	Credentials credentials.TransportCredentials
	// DialOptions are appended to the options of the Lookup and override them.
	DialOptions []grpc.DialOption
	// Logger receives events and their reasons. Default: no log.
	Logger *slog.Logger

	// Metrics, if set, registers the metrics of this lookup with Prometheus. Their names
	// begin with "leasehold_lookup_", and their label is the namespace. Lookups of one
	// namespace with the same Metrics are added up. Counters stay
	// registered after Close, and continue when another lookup is opened. Find costs
	// the same with metrics as without.
	Metrics prometheus.Registerer

	// Clock is for simulations of this module. Default: the clocks of the system.
	Clock *clock.Clock
}

// A Resolver resolves names of managers: a [net.Resolver], for example.
type Resolver = managerdns.Resolver

// maxManagers bounds the list: a group has three or five.
const maxManagers = 64

// Bounds on Poll. More often would be a flood, and the upper one keeps sums far
// from overflow.
const (
	minPoll = 10 * time.Millisecond
	maxPoll = 24 * time.Hour
)

// requestTimeout is the timeout of the first request; the machine doubles it on each retry.
const requestTimeout = 500 * time.Millisecond

// validate sets defaults and returns an error if a value is invalid.
func (c *Config) validate() error {
	if err := c.Namespace.Validate(); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opOpen, leasehold.ErrInvalid, string(c.Namespace), format, args...)
	}
	if n := len(c.Managers); n == 0 || n > maxManagers {
		return bad("%d managers: want the addresses, host:port, of 1 to %d", n, maxManagers)
	}
	for i, addr := range c.Managers {
		if err := managerdns.Check(addr, "manager-1:7400"); err != nil {
			return bad("manager %d of %d: %w", i+1, len(c.Managers), err)
		}
	}
	c.Managers = slices.Clone(c.Managers)
	if c.Poll == 0 {
		c.Poll = 5 * time.Second
	}
	if c.Poll < minPoll || c.Poll > maxPoll {
		return bad("poll %v: want %v to %v", c.Poll, minPoll, maxPoll)
	}
	if c.Stale == 0 {
		c.Stale = max(30*time.Second, 3*c.Poll)
	}
	if c.Stale < 3*c.Poll {
		return bad("poll %v and stale %v: want at least three polls in stale", c.Poll, c.Stale)
	}
	if c.KeepLosses == 0 {
		c.KeepLosses = 8192
	}
	if c.KeepLosses < 0 {
		return bad("keep %d losses: want at least one", c.KeepLosses)
	}
	if c.Credentials == nil {
		if err := address.CheckPlaintext(c.Managers...); err != nil {
			return bad("%w", err)
		}
		c.Credentials = managerconn.Plaintext()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
