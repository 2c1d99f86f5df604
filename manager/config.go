package manager

import (
	"cmp"
	cryptorand "crypto/rand"
	"log/slog"
	"math"
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
	"github.com/leasehold-dev/leasehold/internal/core/mono"
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

// Config is what a manager is told when it starts.
type Config struct {
	// Store keeps what the group must not forget: one of package server/store/etcd, or in tests of
	// package store/mem. All managers of a group use the same store. The caller closes
	// it after the manager. Either Store or Peers must be set.
	Store store.Store
	// Peers, if set, are the managers of a group that keeps nothing on disk.
	Peers *Peers

	// Listener is where owners, lookups, tools and other managers connect. The
	// manager closes it.
	Listener net.Listener
	// Advertise is the address at which all of them reach this manager; it is
	// also its name in the group. Default: the listener's address, which must
	// then be one that others can connect to.
	Advertise string

	// TTL is for how long a leader acts without renewing its leadership, and so
	// how long it takes to replace one that dies: TTL x Drift. Shorter means
	// faster failover; longer means that a slow store does not end a
	// leadership. Default 2 s.
	TTL time.Duration
	// Drift bounds how much faster one manager's clock may run than another's.
	// Default 1.20.
	Drift float64

	// Boot names the current boot of the machine, and returns for how long it has run. With
	// that a manager that was started again knows how long all managers were down, without
	// wall clocks, and need not exclude a restored store by waiting. Default: what the system
	// says, on Linux; elsewhere it is not known.
	Boot func() (name string, uptime time.Duration)

	wall      func() time.Time // the wall clock; tests have others
	maxDirect int              // broadcast.Config has it; tests have less

	// Policy, if set, replaces the policy that a namespace is configured with.
	// It is asked once for each configuration; nil means the usual one. All
	// managers of a group must have the same. A policy that errs, panics or makes
	// no sense changes nothing: the assignment stays, the log and the status say
	// what is wrong, and it is asked again.
	Policy func(namespace leasehold.Namespace, configured string) partition.Policy

	// Members is set if the managers keep the store among themselves: the
	// [github.com/leasehold-dev/leasehold/server/store/etcd.Embedded].
	Members store.Members
	// StoreName says in a few words where the table is kept, for people.
	StoreName string
	// Build says what this process runs, for people.
	Build string

	// HTTP is where the process answers by HTTP, for people and their tools; without a
	// host, on all addresses of the computer. The manager only passes it on.
	HTTP string
	// Usage says how much there is of what the process and its store have only so much
	// of, for people. It is called from many goroutines at once, whenever somebody asks
	// for the status, and must not wait. Default: nothing is said.
	Usage func() []Usage

	// ServerCredentials and ClientCredentials are how connections to this
	// manager, and from it to the others, are secured: by package secure, or by
	// insecure.NewCredentials() not at all, in a network that can be trusted.
	// Default: not at all, within this computer; the listener must be on its
	// loopback then.
	ServerCredentials credentials.TransportCredentials
	ClientCredentials credentials.TransportCredentials
	// Access decides who may do what, and belongs to the caller, who closes it after
	// the manager. Default: everybody may do everything.
	Access *access.Policy
	// DialOptions are for connections to other managers, and come last.
	DialOptions []grpc.DialOption
	// MaxStreams bounds the owners and lookups connected. Default 65,536.
	MaxStreams int
	// MaxConnections bounds the connections, which each take a file descriptor.
	// Those beyond are closed, unless one that has not introduced itself can be
	// closed instead. A quarter of them may be from one address, but for the
	// loopback, and a quarter of one identity. Default 16,384.
	MaxConnections int
	// MaxHandshakes is how many connections of one address are taken in a second if they are
	// secured: to shake hands costs a manager far more than to renew a lease. Those beyond
	// wait for their turn, or are closed if that is too far away, and try again. Default 50.
	MaxHandshakes int

	// Logger gets what happens and why. Default slog.Default().
	Logger *slog.Logger

	// Metrics, if set, is where Prometheus finds out how this manager is: metrics that
	// begin with "leasehold_manager_". They are registered until it ends. Managers of
	// one process need one each, or one that prometheus.WrapRegistererWith has given
	// labels.
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
	if c.wall == nil {
		c.wall = time.Now
	}
	if c.TTL < 100*time.Millisecond || c.TTL > time.Hour {
		return bad("the leader's time is %v, want 100ms to 1h", c.TTL)
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

// ValidateAdvertise reports what is wrong with an address at which others are
// to reach a manager.
func ValidateAdvertise(addr string) error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("advertise", leasehold.ErrInvalid, addr, format, args...)
	}
	host, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return bad("want host:port: %w", err)
	case port == "" || port == "0":
		return bad("names no port that others can connect to")
	case host == "" || net.ParseIP(host).IsUnspecified():
		return bad("means every address of this computer, and others cannot connect to that; name one, such as 10.0.0.1:%s", port)
	case len(addr) > leasehold.MaxOwnerIDLen || strings.ContainsAny(addr, " \t\r\n"):
		return bad("is longer than %d bytes or has spaces in it", leasehold.MaxOwnerIDLen)
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

// gate says whom the gate of this manager lets through.
func (c *Config) gate(dropped func(connlimit.Reason), log *slog.Logger) connlimit.Config {
	g := connlimit.Config{Conns: c.MaxConnections, Dropped: dropped, Logger: log}
	if c.ServerCredentials.Info().SecurityProtocol != insecure.NewCredentials().Info().SecurityProtocol {
		g.Pace = c.MaxHandshakes
	}
	return g
}

// seams is how many ranges more than it needs a table may always have. To make
// it smaller costs state, and a small table need not be smaller: when one of two
// owners leaves, the other is to keep what it has.
const seams = 2048

// gather is how long an owner that joins waits for others: long enough for a
// deployment that starts many at once to be one change, and not a hundred.
const gather = 250 * time.Millisecond

// configure makes of a stored configuration what a namespace's machine is told.
func (c *Config) configure(n storage.Namespace) (machine.Config, error) {
	cfg := machine.Config{
		Timing:    protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift},
		MaxOwners: n.MaxOwners,
		Gather:    min(gather, n.Renew/4),
		Seams:     seams,
		After:     n.After,

		Moves: min(n.Moves, protocol.MaxAtATime), MoveTimeout: n.MoveTimeout, Rebalance: n.Rebalance, Churn: n.Churn,
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
			"this manager knows no policy %q; it may have been configured by a newer one: upgrade this one", name)
	}
	slots := make([]partition.Slot, len(n.Static))
	for i, s := range n.Static {
		slots[i] = partition.Slot{Start: s.Start, Owner: s.Owner}
	}
	return partition.ByName(name, partition.Options{VirtualNodes: n.VirtualNodes, Slots: slots})
}

// cryptoRand returns a generator whose past and future nobody can guess from what it
// has drawn: the tickets of moves come from it, and who knows one is trusted.
func cryptoRand() *rand.Rand {
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:])        // it never fails
	return rand.New(rand.NewChaCha8(seed)) //nolint:gosec // ChaCha8, with a seed from crypto/rand
}

// drift is the configured bound as the machines want it.
func (c *Config) drift() mono.Drift { return mono.Drift(math.Max(1, c.Drift)) }
