package cluster

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/secure"
)

// Config configures a member of a cluster. Peers, Size, Key, TTL and Longest must be the same in all
// members: a member with other values does not take part, and the logs report it.
type Config struct {
	// Namespace has the keys of the cluster. Required.
	Namespace leasehold.Namespace
	// Settings of the namespace, with which the members create it. Zero fields mean the default, and
	// Name is ignored. If the namespace exists with other settings, it keeps them, and the log says so:
	// change them with "leasehold namespace update", or stop all members.
	Settings admin.Namespace

	// Self is the name of this member, and the address, host:port, at which the others and callers
	// reach it. It must be stable across restarts, and one of Peers. Required.
	Self string
	// Peers are the names of all members. Required.
	Peers Peers
	// Size is the number of members, at least three. Default: that of a List.
	Size int
	// Listen is the address of the TCP listener and of the UDP socket. Default: Self.
	Listen string

	// State, usually a [github.com/leasehold-dev/leasehold/leasemap.Group], has the state of the keys,
	// and moves it between the members. Without it Join creates a plain owner.
	State State
	// Owner has the callbacks, Weight, Mover and other options of the owner. Join sets Namespace,
	// Managers, Addr, Name, Credentials and the addresses of the Mover, and Logger and Metrics if they
	// are not set. MaxPromise is not supported.
	Owner owner.Config
	// Addr is the address of this server for callers. Default: Self.
	Addr string

	// Handler, if set, serves HTTP/1.1 on the port, in plaintext. Until Join returns, the response is
	// 503. With credentials the port is for gRPC only: serve HTTP on another port, and set Addr.
	Handler http.Handler
	// Route, if set, makes every member accept the requests of all keys: it forwards a request to
	// the owner of the request's key. Callers with a [leasehttp.Transport] of the same Source skip
	// that hop. It must not be set if callers need their own leasehttp headers.
	Route leasehttp.Source

	// Key is a secret that all members share, of at least 16 random bytes: it authenticates the
	// messages of the election. Required unless all names are on the loopback.
	Key secret.Text
	// ServerCredentials and ClientCredentials secure all connections between members, and from
	// lookups and tools: those of package secure, or insecure.NewCredentials() in a trusted network.
	// Required unless all names are on the loopback.
	ServerCredentials credentials.TransportCredentials
	ClientCredentials credentials.TransportCredentials
	// Access authorizes calls. Members need the permissions of managers, and of owners under their
	// names. The caller closes it after the cluster. Default: all calls are allowed.
	Access *access.Policy
	// Identity, with Access, is the identity under which this member creates the namespace. Without
	// it an operator creates the namespace.
	Identity secure.Identity

	// TTL is how long a leading manager acts without renewing its leadership: see
	// [manager.Config]. A crash of the leading process delays changes of leases for up to
	// 1.2 TTL, but no request for a held key. Default 1 s.
	TTL time.Duration
	// Longest bounds the time for which an owner holds a lease: see [manager.Peers]. Default 12 s.
	Longest time.Duration

	// Logger receives events and their reasons. Default slog.Default().
	Logger *slog.Logger
	// Metrics, if set, registers the metrics of manager, owner and lookup.
	Metrics prometheus.Registerer
}

// State is the state of an owner's keys: a leasemap.Group implements it.
type State interface {
	Join(ctx context.Context, as owner.Config) error
	Owner() *owner.Owner
	Close(ctx context.Context) error
}

const (
	opJoin     = "join cluster"
	defaultTTL = time.Second
)

func (c *Config) bad(format string, args ...any) error {
	return leasehold.Errorf(opJoin, leasehold.ErrInvalid, string(c.Namespace), format, args...)
}

func (c *Config) validate() error {
	c.setDefaults()
	if err := c.Namespace.Validate(); err != nil {
		return &leasehold.Error{Op: opJoin, Kind: leasehold.ErrInvalid, Err: err}
	}
	if err := address.Check(c.Self, "10.0.0.1:7400"); err != nil {
		return c.bad("Self: %w", err)
	}
	switch {
	case !c.Peers.valid:
		return c.bad("Peers is required: cluster.List(\"10.0.0.1:7400\", ...), for example")
	case c.Peers.problem != nil:
		return c.bad("Peers: %w", c.Peers.problem)
	case c.Peers.size > 0 && c.Size != c.Peers.size:
		return c.bad("Size is %d, and Peers lists %d names", c.Size, c.Peers.size)
	case c.Size < manager.MinPeers:
		return c.bad("Size is %d, want at least %d: fewer members cannot lose one", c.Size, manager.MinPeers)
	case c.State != nil && c.Owner.Mover != nil && c.Owner.Mover.Export != nil:
		return c.bad("State and Owner.Mover.Export are both set: choose one")
	case c.Owner.MaxPromise != 0:
		return c.bad("Owner.MaxPromise is not supported: a promise outlives the process of its manager. Run managers apart")
	case c.Route.String() != "" && c.Handler == nil:
		return c.bad("Route is set without a Handler")
	}
	return cmp.Or(c.checkCredentials(), c.checkHold())
}

// checkCredentials rejects credentials whose connections the port could not tell from the Handler's.
func (c *Config) checkCredentials() error {
	if c.ServerCredentials == nil {
		return nil
	}
	switch protocol := c.ServerCredentials.Info().SecurityProtocol; {
	case protocol == "insecure":
	case protocol != "tls":
		return c.bad("ServerCredentials are of protocol %q, want those of package secure or insecure.NewCredentials()", protocol)
	case c.Handler != nil:
		return c.bad("Handler is for plaintext, and ServerCredentials are TLS: serve HTTP on another port, and set Addr")
	}
	return nil
}

// checkHold rejects leases of Settings that are longer than Longest.
func (c *Config) checkHold() error {
	hold, longest := c.Settings.Hold(), cmp.Or(c.Longest, new(admin.Namespace).Hold())
	if hold > longest {
		return c.bad("owners may hold a lease of Settings for %v, and Longest is %v: choose a shorter Lease or a longer Longest", hold, longest)
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.Size == 0 {
		c.Size = c.Peers.size
	}
	if c.Listen == "" {
		c.Listen = c.Self
	}
	if c.Addr == "" {
		c.Addr = c.Self
	}
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}

// manager returns the configuration of this member's manager.
func (c *Config) manager(members []string, listener net.Listener) manager.Config {
	peers := &manager.Peers{Key: c.Key, Listen: c.Listen, Longest: c.Longest, Rebuild: true}
	for _, name := range members {
		peers.Owners = append(peers.Owners, leasehold.OwnerID(name))
	}
	for _, name := range voters(members) {
		peers.Members = append(peers.Members, manager.Peer{Manager: name})
	}
	return manager.Config{
		Peers: peers, Listener: listener, Advertise: c.Self, TTL: c.TTL, StoreName: "memory of the servers",
		ServerCredentials: c.ServerCredentials, ClientCredentials: c.ClientCredentials, Access: c.Access,
		Logger: c.Logger, Metrics: c.Metrics,
	}
}

// owner returns the configuration of this member's owner.
func (c *Config) owner(members []string, moves *inlet) owner.Config {
	as := c.Owner
	as.Namespace, as.Managers, as.Addr, as.Name, as.Credentials = c.Namespace, voters(members), c.Addr, leasehold.OwnerID(c.Self), c.ClientCredentials
	if as.Logger == nil {
		as.Logger = c.Logger
	}
	if as.Metrics == nil {
		as.Metrics = c.Metrics
	}
	if c.State == nil && as.Mover == nil {
		return as
	}
	mover := owner.Mover{}
	if as.Mover != nil {
		mover = *as.Mover
	}
	mover.Listener, mover.Advertise, mover.Credentials, mover.ServerCredentials = moves, c.Self, c.ClientCredentials, c.ServerCredentials
	mover.DialOptions = append(slices.Clone(mover.DialOptions), dialMoves())
	as.Mover = &mover
	return as
}
