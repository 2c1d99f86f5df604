package manager

import (
	"cmp"
	cryptorand "crypto/rand"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/partition"
)

// Config configures a manager.
type Config struct {
	// Store has the state of the group: package server/store/etcd, or in tests package store/mem.
	// All managers of a group use the same store. The caller closes it after the manager. Either
	// Store or Peers must be set.
	Store store.Store
	// Peers, if set, are the managers of a diskless group.
	Peers *Peers

	// Listener accepts connections of owners, lookups, tools and other managers. The
	// manager closes it.
	Listener net.Listener
	// Advertise is the address at which all of them reach this manager, and its name in the
	// group. Default: the listener's address, which must then be reachable.
	Advertise string

	// TTL is how long a leader acts without renewing its leadership. Failover takes up to
	// TTL x Drift. A shorter TTL speeds up failover; with a longer one a slow store does not end
	// a leadership. Default 2 s.
	TTL time.Duration
	// Drift bounds the ratio of the rates of two managers' clocks. Default 1.20.
	Drift float64

	// Boot returns the ID of the machine's current boot, and the uptime. With them a restarted
	// manager computes how long all managers were down, without wall clocks, and need not wait
	// until a restored store is excluded. Default: those of the system, on Linux; elsewhere they
	// are unknown.
	Boot func() (name string, uptime time.Duration)

	// Clock is for simulations of this module. Default: the clocks of the system.
	Clock *clock.Clock

	wall      func() time.Time // the wall clock; replaced in tests
	maxDirect int              // of broadcast.Config; lower in tests

	// Policy, if set, returns the policy of a namespace instead of the configured one; nil selects
	// the configured one. It is called once per configuration. All managers of a group must have
	// the same. If a policy returns an error or an invalid assignment, or panics, the assignment
	// stays; the log and the status have the error, and the policy is called again later.
	Policy func(namespace leasehold.Namespace, configured string) partition.Policy

	// Members is set if the store is embedded in the managers: the
	// [github.com/leasehold-dev/leasehold/server/store/etcd.Embedded].
	Members store.Members
	// StoreName describes the store in a few words, for the status.
	StoreName string
	// Build is the version of this process, for the status.
	Build string

	// HTTP is the address of the process's HTTP server, for the status; without a host, all
	// addresses of the computer. The manager only reports it.
	HTTP string
	// Usage returns the use of limited resources of the process and its store, for the status.
	// It is called concurrently, once per request for the status, and must not block. Default:
	// none.
	Usage func() []Usage

	// ServerCredentials and ClientCredentials secure connections to this manager, and from it to
	// the others: of package secure, or insecure.NewCredentials() in a trusted network. Default:
	// plaintext, which requires that the listener is on the loopback.
	ServerCredentials credentials.TransportCredentials
	ClientCredentials credentials.TransportCredentials
	// Access authorizes calls. The caller closes it after the manager. Default: all calls are
	// allowed.
	Access *access.Policy
	// DialOptions are for connections to other managers, after the manager's own.
	DialOptions []grpc.DialOption
	// MaxStreams bounds the connected owners, and the connected lookups. Default 65,536.
	MaxStreams int
	// MaxConnections bounds the connections; each takes a file descriptor. A connection beyond it
	// replaces one that has not authenticated, or is closed. One address, except the loopback,
	// and one identity may each have a quarter. Default 16,384.
	MaxConnections int
	// MaxHandshakes limits the TLS handshakes per second from one address: a handshake costs far
	// more than a renewal. A connection beyond it is delayed, or closed if the delay would be too
	// long. Default 50.
	MaxHandshakes int

	// Logger is the log. Default slog.Default().
	Logger *slog.Logger

	// Metrics, if set, is where the metrics are registered until the manager ends; their names
	// begin with "leasehold_manager_". Each manager of a process needs its own Registerer, for
	// instance one of prometheus.WrapRegistererWith.
	Metrics prometheus.Registerer
}

const opStart = "start manager"

func (c *Config) validate() error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opStart, leasehold.ErrInvalid, c.Advertise, format, args...)
	}
	if (c.Store == nil) == (c.Peers == nil) || c.Listener == nil {
		return bad("Listener and either Store or Peers must be set")
	}
	if c.Advertise == "" {
		c.Advertise = c.Listener.Addr().String()
	}
	if err := ValidateAdvertise(c.Advertise); err != nil {
		return err
	}
	if c.TTL == 0 {
		c.TTL = 2 * time.Second
	}
	if c.Drift == 0 {
		c.Drift = 1.20
	}
	if c.Boot == nil {
		c.Boot = clock.Boot
	}
	c.Clock = cmp.Or(c.Clock, clock.New())
	if c.wall == nil {
		c.wall = c.Clock.Wall
	}
	if c.TTL < 100*time.Millisecond || c.TTL > time.Hour {
		return bad("TTL is %v, want 100ms to 1h", c.TTL)
	}
	if !(c.Drift >= 1 && c.Drift <= protocol.MaxDrift) {
		return bad("drift is %v, want 1 to %d", c.Drift, protocol.MaxDrift)
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = 1 << 16
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = 1 << 14
	}
	if c.MaxHandshakes == 0 {
		c.MaxHandshakes = 50
	}
	if c.MaxStreams < 1 || c.MaxConnections < 1 || c.MaxHandshakes < 1 {
		return bad("MaxStreams is %d, MaxConnections %d and MaxHandshakes %d, want more than 0", c.MaxStreams, c.MaxConnections, c.MaxHandshakes)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.ClientCredentials == nil {
		c.ClientCredentials = managerconn.Plaintext()
	}
	if c.ServerCredentials == nil {
		if err := address.CheckPlaintextListener(c.Listener, "ServerCredentials and ClientCredentials"); err != nil {
			return bad("%w", err)
		}
		c.ServerCredentials = managerconn.Plaintext()
	}
	if c.Peers != nil {
		return c.Peers.validate(c)
	}
	return nil
}

// ValidateAdvertise checks an address at which other processes reach a manager.
func ValidateAdvertise(addr string) error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("advertise", leasehold.ErrInvalid, addr, format, args...)
	}
	host, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return bad("want host:port: %w", err)
	case port == "" || port == "0":
		return bad("has no port that others can connect to")
	case host == "" || net.ParseIP(host).IsUnspecified():
		return bad("is the wildcard address, to which others cannot connect; set one of this computer, such as 10.0.0.1:%s", port)
	case len(addr) > leasehold.MaxOwnerIDLen || strings.ContainsAny(addr, " \t\r\n"):
		return bad("is longer than %d bytes or contains spaces", leasehold.MaxOwnerIDLen)
	}
	return nil
}

func (c *Config) serverOptions(own []grpc.ServerOption) []grpc.ServerOption {
	if c.Access == nil {
		return append(own, grpc.Creds(connlimit.Credentials(c.ServerCredentials)), grpc.WaitForHandlers(true))
	}
	own = append(own, c.Access.ServerOptions()...)
	return append(own, grpc.Creds(connlimit.Callers(c.ServerCredentials)), grpc.WaitForHandlers(true),
		grpc.ChainUnaryInterceptor(markCall), grpc.ChainStreamInterceptor(markStream))
}

// gate returns the limits on connections.
func (c *Config) gate(dropped func(connlimit.Reason), log *slog.Logger) connlimit.Config {
	g := connlimit.Config{Conns: c.MaxConnections, Dropped: dropped, Logger: log}
	if c.ServerCredentials.Info().SecurityProtocol != insecure.NewCredentials().Info().SecurityProtocol {
		g.Pace = c.MaxHandshakes
	}
	return g
}

// seams is how many ranges above the minimum a table may always have. Merging ranges loses
// state, and a small table need not be compacted: when one of two owners leaves, the other keeps
// its leases.
const seams = 2048

// gather is how long a joining owner waits for others, so that a deployment that starts a hundred
// owners at once causes one reassignment.
const gather = 250 * time.Millisecond

// configure returns the configuration of a namespace's machine.
func (c *Config) configure(n storage.Namespace) (machine.Config, error) {
	cfg := machine.Config{
		Timing:    protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift},
		MaxOwners: n.MaxOwners,
		Gather:    min(gather, n.Renew/4),
		Seams:     seams,
		After:     n.After,

		Moves: min(n.Moves, protocol.MaxAtATime), MoveTimeout: n.MoveTimeout, Rebalance: n.Rebalance, Churn: n.Churn, MinLoad: n.MinLoad,
	}
	if err := cfg.Timing.Validate(); err != nil {
		return machine.Config{}, err
	}
	if err := c.checkHold(n); err != nil {
		return machine.Config{}, err
	}
	policy, err := c.policy(n)
	cfg.Policy = policy
	return cfg, err
}

func (c *Config) policy(n storage.Namespace) (partition.Policy, error) {
	if c.Policy != nil {
		if p := c.Policy(n.Name, n.Policy); p != nil {
			return p, nil
		}
	}
	name := cmp.Or(n.Policy, wire.UnnamedPolicy())
	if !slices.Contains(partition.Names(), name) {
		return nil, leasehold.Errorf("configure namespace", leasehold.ErrInvalid, string(n.Name),
			"this manager has no policy %q; a newer one may have configured it: upgrade this manager", name)
	}
	slots := make([]partition.Slot, len(n.Static))
	for i, s := range n.Static {
		slots[i] = partition.Slot{Start: s.Start, Owner: s.Owner}
	}
	return partition.ByName(name, partition.Options{VirtualNodes: n.VirtualNodes, Slots: slots})
}

// cryptoRand returns a cryptographically secure generator: a move's ticket, which authorizes a
// transfer of state, must be unpredictable.
func cryptoRand() *rand.Rand {
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:])        // never fails
	return rand.New(rand.NewChaCha8(seed)) //nolint:gosec // ChaCha8, with a seed from crypto/rand
}
