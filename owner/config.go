package owner

import (
	"crypto/rand"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerdns"
)

// Config configures an owner.
type Config struct {
	// Namespace and Managers are required. Managers are the addresses of the
	// manager group, host:port. One reachable manager is sufficient to find the leader.
	//
	// dns:///host:port is a manager at each address of the host, and
	// srv:///_service._proto.name one at each SRV record. Names are resolved about every 30 s,
	// and after a connection has failed. With TLS prefer SRV: certificates contain host names.
	Namespace leasehold.Namespace
	Managers  []string
	// Resolver resolves names in Managers, and the hosts of SRV records. Default: that of the
	// system.
	Resolver Resolver

	// Addr is the address of this server for callers, host:port. Lookups return it
	// unchanged. Required.
	Addr string

	// Name is the owner's name. It is stable across restarts, so that a restarted
	// server gets its keys back, and different from that of every other
	// live process of the namespace. A second process with the same name waits until
	// the first has ended. Default: Addr, which has both properties if it is
	// stable.
	Name leasehold.OwnerID

	// Weight is this server's share of the keys relative to other servers, more
	// than 0 and at most 1000. Default 1.
	Weight float64

	// OnGrant, if set, is called with new leases of this process. Check
	// already succeeds on them.
	OnGrant func([]leasehold.Lease)
	// OnRevoke, if set, is called with leases, or parts of leases, that have
	// ended, and the cause. Check already fails on them, and other owners may act on
	// their keys: use it to free memory, not to write state.
	//
	// It receives every lease that Check may have returned, including a lease that was
	// granted and ended while a callback ran, without a call of OnGrant; and every
	// lease for which the install of a [Mover] was called, after that has returned. If
	// there are many, they are merged into fewer and wider ones: an ended lease means that
	// its generation and every older one have ended on all of
	// its keys. A lease that is held or is being installed is never included.
	//
	// Callbacks must not call Close, which waits for them. A panic in a callback ends the
	// process.
	OnRevoke func([]leasehold.Lease, leasehold.Cause)

	// OnSuspend, if set, is called with leases that are not served for some time, but have not
	// ended: Check and Held already fail on their keys. Either they have reached their deadline
	// without a reply of a leader ([Owner.Suspended] reports true, and callers should retry), or
	// their range is being moved and [Export.Stop] was called. Keep the state: OnResume follows
	// if a leader renews the leases or the move fails, and OnRevoke otherwise. Work that is not
	// a request, such as a worker for each key, pauses in between.
	OnSuspend func([]leasehold.Lease)
	// OnResume, if set, is called with leases of OnSuspend that are served again. They have
	// the same generations, because no other owner has held them meanwhile, and Check
	// already succeeds.
	OnResume func([]leasehold.Lease)

	// KeepSuspended limits how long leases stay suspended and their state is kept.
	// Then they end, with [leasehold.CauseExpired]. If it is longer than every outage of the
	// managers, an outage costs no state. If it is shorter, a partitioned server whose keys
	// have another owner frees memory earlier; the server cannot distinguish the two.
	// It does not affect safety. Default 0: until a leader replies or the
	// process ends.
	KeepSuspended time.Duration

	// Load selects the measure of this server's load, which it reports to the manager per
	// range and for the hottest keys. Default: LoadChecks, its successful checks.
	Load LoadSource

	// Mover, if set, moves the state of ranges between this owner and other owners
	// with a Mover. Without it the state of a range is lost when the range is granted to
	// another owner.
	Mover *Mover

	// MaxPromise limits how long other processes may rely on the result of [Owner.Promise].
	// If a lease with a promise is recalled or released, its keys get a new owner only after
	// this time, and Close waits as long. No other lease
	// is renewed meanwhile, so it should be short compared to the lease.
	// Default 0: no promises. It excludes a Mover: the state of
	// a range is not complete while other processes may still change it.
	//
	// Other processes may rely on a promise after the process that made it has crashed. So
	// its successor must wait until the leases expire: WaitForPredecessor is required.
	MaxPromise time.Duration

	// WaitForPredecessor makes a restarted server wait until the leases of the
	// previous process with its name have expired, on any system. Without it,
	// on Linux, a server whose Addr has the same host as its predecessor's takes
	// them over at once if it can prove that the predecessor's process has ended.
	//
	// The proof uses the process ID and start time, the boot
	// ID and the namespaces. Virtual machines that were resumed from one
	// memory snapshot have the same values, so one would
	// treat a live process of the other as ended, and there would be two owners.
	// Set it if machines are cloned in that way and may run servers with
	// the same name and host. It also disables proofs by a supervisor, because
	// both copies have its tokens.
	WaitForPredecessor bool

	// Credentials secure the connections to the managers: those of package secure,
	// or insecure.NewCredentials() for plaintext in a trusted network.
	// Default: plaintext within this computer; Managers must then be loopback addresses.
	Credentials credentials.TransportCredentials
	// DialOptions are appended to the options of the owner and override them.
	DialOptions []grpc.DialOption
	// Logger receives events and their reasons. Default: no log.
	Logger *slog.Logger

	// Metrics, if set, registers the metrics of this owner with Prometheus. Their names
	// begin with "leasehold_owner_", and their label is the namespace. Owners of one
	// namespace with the same Metrics are added up. Counters stay
	// registered after Close, and continue when another owner joins. Checks cost the
	// same with metrics as without.
	Metrics prometheus.Registerer

	// Clock is for simulations of this module. Default: the clocks of the system.
	Clock *clock.Clock
}

const opJoin = "join"

// A Resolver resolves names of managers: a [net.Resolver], for example.
type Resolver = managerdns.Resolver

// maxManagers limits Config.Managers; groups have three or five.
const maxManagers = 64

// validate sets defaults and returns an error if a value is invalid.
func (c *Config) validate() error {
	if err := c.Namespace.Validate(); err != nil {
		return &leasehold.Error{Op: opJoin, Kind: leasehold.ErrInvalid, Err: err}
	}
	if n := len(c.Managers); n == 0 || n > maxManagers {
		return c.bad("Managers has %d addresses, want 1 to %d, each host:port", n, maxManagers)
	}
	c.Managers = slices.Clone(c.Managers)
	for _, addr := range c.Managers {
		if err := managerdns.Check(addr, exampleManager); err != nil {
			return c.bad("Managers: %w", err)
		}
	}
	if err := c.validateAddr("Addr", c.Addr, exampleAddr); err != nil {
		return err
	}
	if address.Wildcard(c.Addr) {
		return c.bad("Addr %q is not reachable for callers: set it to this server's host or IP address", c.Addr)
	}
	if c.Name == "" {
		c.Name = leasehold.OwnerID(c.Addr)
	}
	if c.Weight == 0 {
		c.Weight = 1
	}
	if c.Load != LoadChecks && c.Load != LoadReported {
		return c.bad("Load is %d, want LoadChecks or LoadReported", c.Load)
	}
	if c.KeepSuspended < 0 {
		return c.bad("KeepSuspended is %v, want 0 or more", c.KeepSuspended)
	}
	if err := c.validatePromise(); err != nil {
		return err
	}
	if err := c.validateMover(c.Credentials != nil); err != nil {
		return err
	}
	if c.Credentials == nil {
		if err := address.CheckPlaintext(c.Managers...); err != nil {
			return c.bad("Managers: %w", err)
		}
		c.Credentials = managerconn.Plaintext()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

func (c *Config) validatePromise() error {
	switch {
	case c.MaxPromise < 0:
		return c.bad("MaxPromise is %v, want 0 or more", c.MaxPromise)
	case c.MaxPromise > 0 && c.Mover != nil:
		return c.bad("MaxPromise and Mover are both set: choose one, because state that other processes may still change cannot be moved")
	case c.MaxPromise > 0 && !c.WaitForPredecessor:
		return c.bad("MaxPromise requires WaitForPredecessor: other processes may rely on a promise after this process has ended")
	}
	return nil
}

func (c *Config) bad(format string, args ...any) error {
	return leasehold.Errorf(opJoin, leasehold.ErrInvalid, string(c.Namespace), format, args...)
}

// validateAddr returns an error unless the address can be dialed.
func (c *Config) validateAddr(field, addr, example string) error {
	if err := address.Check(addr, example); err != nil {
		return c.bad("%s: %w", field, err)
	}
	return nil
}

// Examples in the errors of invalid addresses.
const (
	exampleManager = "manager-1:7400"
	exampleAddr    = "10.0.0.1:8080"
)

// sameHost reports whether two addresses differ by their ports at most.
func sameHost(a, b string) bool {
	hostA, _, errA := net.SplitHostPort(a)
	hostB, _, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && hostA == hostB
}

// holder returns this process's identity, with a new session.
func (c *Config) holder() (*table.Holder, error) {
	session, err := leasehold.NewSession(rand.Reader)
	if err != nil {
		return nil, err
	}
	h := &table.Holder{Owner: c.Name, Session: session, Addr: c.Addr, Weight: c.Weight}
	if !c.WaitForPredecessor { // without a process ID, a successor waits as well
		h.Process = thisProcess()
	}
	if err := protocol.ValidateHolder(h); err != nil {
		return nil, &leasehold.Error{Op: opJoin, Kind: leasehold.ErrInvalid, Subject: string(c.Namespace), Err: err}
	}
	return h, nil
}
