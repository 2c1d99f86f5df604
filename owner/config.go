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
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
)

// Config says what to join, and as whom.
type Config struct {
	// Namespace and Managers are required. Managers are the addresses of the
	// manager group, host:port. One is enough to find the leader; with all of
	// them it is found while some are down.
	Namespace leasehold.Namespace
	Managers  []string

	// Addr is where callers reach this server, host:port. Lookups hand it out
	// as it is. Required.
	Addr string

	// Name is the owner's name: the same across restarts, so that a server that
	// comes back gets its keys back, and different from that of every other
	// live process of the namespace. A second process with the name waits until
	// the first has gone. Default: Addr, which has both properties as long as
	// the address stays.
	Name leasehold.OwnerID

	// Weight is this server's share of the keys relative to the others, more
	// than 0 and at most 1000. Default 1.
	Weight float64

	// OnGrant, if set, is called with leases that this process now has. Check
	// knows of them already.
	OnGrant func([]leasehold.Lease)
	// OnRevoke, if set, is called with leases, or parts of leases, that have
	// ended, and why. They have ended for Check already, and others may act on
	// their keys: it is for clearing away, not for last words.
	//
	// It is told of every lease that Check may have found, also of one that came
	// and went while a callback ran, so that OnGrant was never told; and of every
	// one that the install of a [Mover] was called for, when that has returned. If
	// those are many, they are told as fewer that cover more: take a lease that has
	// ended to mean that its generation, and every older one, has ended on all of
	// its keys. What is held, or is being installed, is never covered.
	//
	// No callback may call Close, which waits for them. One that panics takes the process
	// with it.
	OnRevoke func([]leasehold.Lease, leasehold.Cause)

	// OnSuspend, if set, is called with leases that have reached their deadline because no
	// leader has answered. Check and Held fail on their keys already, and callers are to wait
	// ([leasehold.ErrSuspended]). Keep the state: OnResume follows if a leader renews the leases,
	// and OnRevoke if it does not.
	OnSuspend func([]leasehold.Lease)
	// OnResume, if set, is called with suspended leases that a leader has renewed. They have
	// the same generations, since no other owner has held them meanwhile, and Check succeeds
	// already.
	OnResume func([]leasehold.Lease)

	// KeepSuspended bounds for how long leases stay suspended, and with them the state.
	// When it has passed they end, as [leasehold.CauseExpired]. Longer than any outage of the
	// managers: then an outage costs no state. Shorter: memory is freed earlier by a server
	// that is cut off alone, whose keys have long had another owner; it cannot tell one from
	// the other. It makes no difference to safety. Default 0: until a leader answers or the
	// process ends.
	KeepSuspended time.Duration

	// Load says what counts as this server's work, which the manager hears of per
	// range and for the hottest keys. Default: LoadChecks, its successful checks.
	Load LoadSource

	// Mover, if set, moves the state of ranges between this owner and others that
	// have one. Without it the state of a range is lost when the range goes to
	// another owner.
	Mover *Mover

	// MaxPromise is how long others may rely on what [Owner.Promise] returns. When
	// a lease is called back or given back, its keys wait for as long before they
	// have a new owner, if somebody may rely on it, and so does Close. Nothing
	// else is renewed meanwhile, so that it should be short against the lease.
	// Default 0: nothing is promised. It cannot be combined with a Mover: a state
	// that others rely upon and change is not complete when it is sent.
	//
	// A process that makes promises to others may die, and they live on and rely
	// on it. So its leases must be waited out: WaitForPredecessor is required.
	MaxPromise time.Duration

	// WaitForPredecessor makes a restarted server wait until the leases of the
	// process that had its name before have run out, on any system. Without it,
	// on Linux, a server whose Addr has the same host as its predecessor's takes
	// them over at once if it can see that the predecessor's process is gone.
	//
	// It sees that by the number and the start of the process, the id of the
	// boot and the namespaces. Virtual machines that were resumed from one
	// snapshot of their memory have all of that in common, so that one would
	// take a live process of the other for gone, and there would be two owners.
	// Set it where machines are cloned in that way and may run servers that have
	// both name and host in common.
	WaitForPredecessor bool

	// Credentials secure the connections to the managers: those of package secure,
	// or insecure.NewCredentials() for plain text in a network that can be trusted.
	// Default: plain text, within this computer; Managers must be on its loopback
	// then.
	Credentials credentials.TransportCredentials
	// DialOptions are added to our own, and prevail.
	DialOptions []grpc.DialOption
	// Logger hears what happens, and why. Default: nobody does.
	Logger *slog.Logger

	// Metrics, if set, is where Prometheus finds out how this owner is: metrics that
	// begin with "leasehold_owner_", labelled with the namespace. Owners of one
	// namespace that have the same Metrics are added up. What they have counted stays
	// registered when they are closed, and goes on if another joins. Checks cost the
	// same with it and without.
	Metrics prometheus.Registerer
}

const opJoin = "join"

// maxManagers bounds the list: a group has three or five.
const maxManagers = 64

// validate fills in defaults.
func (c *Config) validate() error {
	if err := c.Namespace.Validate(); err != nil {
		return &leasehold.Error{Op: opJoin, Kind: leasehold.ErrInvalid, Err: err}
	}
	if n := len(c.Managers); n == 0 || n > maxManagers {
		return c.bad("Managers has %d addresses, want 1 to %d, each host:port", n, maxManagers)
	}
	c.Managers = slices.Clone(c.Managers)
	for _, addr := range c.Managers {
		if err := c.validateAddr("Managers", addr, exampleManager); err != nil {
			return err
		}
	}
	if err := c.validateAddr("Addr", c.Addr, exampleAddr); err != nil {
		return err
	}
	if address.Wildcard(c.Addr) {
		return c.bad("Addr %q is no address that callers can reach: name this server's host or IP address", c.Addr)
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
		return c.bad("MaxPromise and Mover are set: choose one, because state that others may still change cannot be moved")
	case c.MaxPromise > 0 && !c.WaitForPredecessor:
		return c.bad("MaxPromise needs WaitForPredecessor: others may rely on this process when it is gone")
	}
	return nil
}

func (c *Config) bad(format string, args ...any) error {
	return leasehold.Errorf(opJoin, leasehold.ErrInvalid, string(c.Namespace), format, args...)
}

// validateAddr takes what could be dialled.
func (c *Config) validateAddr(field, addr, example string) error {
	if err := address.Check(addr, example); err != nil {
		return c.bad("%s: %w", field, err)
	}
	return nil
}

// What addresses look like, for those who have left something out.
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

// holder draws a session: who this process is from now on.
func (c *Config) holder() (*table.Holder, error) {
	session, err := leasehold.NewSession(rand.Reader)
	if err != nil {
		return nil, err
	}
	h := &table.Holder{Owner: c.Name, Session: session, Addr: c.Addr, Weight: c.Weight}
	if !c.WaitForPredecessor { // whoever does not say who it is is waited for, too
		h.Process = thisProcess()
	}
	if err := protocol.ValidateHolder(h); err != nil {
		return nil, &leasehold.Error{Op: opJoin, Kind: leasehold.ErrInvalid, Subject: string(c.Namespace), Err: err}
	}
	return h, nil
}
