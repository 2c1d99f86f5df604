package owner

import (
	"context"
	"net"
	"net/netip"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
)

// A Mover moves the state of ranges from one owner to another. See "Moving
// state" in the package's documentation.
type Mover struct {
	// Export sends the state of a range to its target. It is called while the
	// source serves the range, concurrently for several ranges, each on a separate goroutine.
	// It sends the state, calls [Export.Stop], sends the changes since,
	// and returns. It must call Stop; otherwise a write after the copy
	// would be lost.
	//
	// If it fails, or the context ends, the move is cancelled and the source serves the
	// range as before. Export must not remove state: OnRevoke is called when the lease
	// has moved.
	Export func(ctx context.Context, out *Export) error

	// Import receives the state of a range. It is called concurrently for several ranges,
	// each on a separate goroutine, and keeps the records aside: the
	// source still serves the range, and may keep it.
	//
	// When this process is granted the lease, install is called, before any Check
	// in its range succeeds. It installs the records, stamped with
	// the lease's generation, and should do nothing else, because no server
	// serves the range meanwhile. The lease may cover less than the import. If the
	// move fails, install is never called, and the context of Import ends.
	//
	// If Import cannot store the state it returns an error, of kind [leasehold.ErrLimit] for
	// instance: the source logs it and keeps the range. A nil
	// install does nothing.
	Import func(ctx context.Context, in *Import) (install func(leasehold.Lease), err error)

	// Listen is the address of the server that receives state, host:port. Default: any port, of Addr's
	// host if that is an IP address or localhost, and of all interfaces otherwise.
	Listen string
	// Listener, if set, replaces Listen. Close and a failed Join close it.
	Listener net.Listener
	// Advertise is the address of the listener for other owners, host:port. Default: the
	// listener's address, with Addr's host if the listener accepts on all interfaces. It is
	// required if the listener's address is a loopback address and Addr is
	// not.
	Advertise string

	// Credentials and ServerCredentials secure the connections to and from other owners.
	// Without them, any host in the network may send state or receive it by spoofing an
	// owner's address. If the managers authenticate
	// owners, each side also checks that the other has the identity that the
	// leader has accepted. Required if Config.Credentials is set, and if the
	// listener is reachable from other computers; otherwise the default is
	// plaintext within this computer.
	Credentials       credentials.TransportCredentials
	ServerCredentials credentials.TransportCredentials
	// DialOptions, for connections to other owners, are appended to the options of the owner
	// and override them.
	DialOptions []grpc.DialOption

	// IdleTimeout is the time without progress after which a move fails: no record is
	// sent or read, or Import does not return. Default 30 s.
	IdleTimeout time.Duration
	// StopTimeout limits the time in which no server serves the range, from
	// Stop until the target has all of its state. Then the move fails, and
	// the source serves the range again. Work of [Each] has as long to
	// return before. Default 5 s.
	StopTimeout time.Duration
	// InstallTimeout limits the time of install. Then the range is
	// released, and its state is lost. Default 5 s.
	InstallTimeout time.Duration
}

// validateMover sets defaults in a copy of the Mover, and returns an error if a value is
// invalid.
func (c *Config) validateMover(secured bool) error {
	if c.Mover == nil {
		return nil
	}
	m := *c.Mover
	c.Mover = &m
	if m.Export == nil || m.Import == nil {
		return c.bad("Mover: Export and Import are required")
	}
	if secured && (m.Credentials == nil || m.ServerCredentials == nil) {
		return c.bad("Mover: Credentials and ServerCredentials are required because Config.Credentials is set: for plaintext between owners set both to insecure.NewCredentials()")
	}
	if m.Credentials == nil {
		m.Credentials = managerconn.Plaintext()
	}
	for _, timeout := range []struct {
		name  string
		field *time.Duration
		usual time.Duration
	}{
		{"IdleTimeout", &m.IdleTimeout, 30 * time.Second},
		{"StopTimeout", &m.StopTimeout, 5 * time.Second},
		{"InstallTimeout", &m.InstallTimeout, 5 * time.Second},
	} {
		if *timeout.field < 0 {
			return c.bad("Mover: %s is %v, want more than 0", timeout.name, *timeout.field)
		}
		if *timeout.field == 0 {
			*timeout.field = timeout.usual
		}
	}
	if m.Advertise != "" {
		return c.validateAddr("Mover.Advertise", m.Advertise, "10.0.0.1:8081")
	}
	return nil
}

// listen opens the Mover's listener, and sets Advertise. After an error the caller closes the
// listener with discard.
func (c *Config) listen() error {
	m := c.Mover
	host, _, _ := net.SplitHostPort(c.Addr) // validated before
	if m.Listener == nil {
		listener, err := net.Listen("tcp", m.listenOn(host))
		if err != nil {
			return c.bad("Mover cannot listen: set Listen to an address of this computer, and Advertise to its address for other owners: %w", err)
		}
		m.Listener = listener
	}
	if m.ServerCredentials == nil {
		if err := address.CheckPlaintextListener(m.Listener, "Credentials and ServerCredentials"); err != nil {
			return c.bad("Mover: %w", err)
		}
		m.ServerCredentials = managerconn.Plaintext()
	}
	if managerconn.Exposed(m.Listener, m.ServerCredentials) {
		c.Logger.Warn("state is received in plaintext: an eavesdropper in the network can read it", "address", m.Listener.Addr())
	}
	if m.Advertise != "" {
		return nil
	}
	own, port, err := net.SplitHostPort(m.Listener.Addr().String())
	if err != nil {
		return c.bad("Mover: set Advertise: the listener's address %q is not host:port: %w", m.Listener.Addr(), err)
	}
	switch {
	case address.Wildcard(m.Listener.Addr().String()):
		own = host
	case address.Loopback(m.Listener.Addr().String()) && !address.Loopback(c.Addr):
		return c.bad("Mover: the listener's address %s is only reachable from this computer, but Addr is %s: set Listen to %q, or Advertise to an address that other owners can reach", m.Listener.Addr(), c.Addr, net.JoinHostPort("", port))
	}
	m.Advertise = net.JoinHostPort(own, port)
	return c.validateAddr("Mover.Advertise", m.Advertise, "10.0.0.1:8081")
}

// listenOn returns the address of the listener. A host name is not resolved: on the host
// itself it may resolve to a loopback address.
func (m *Mover) listenOn(host string) string {
	if m.Listen != "" {
		return m.Listen
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
		host = ""
	}
	return net.JoinHostPort(host, "0")
}

// discard closes the listener after a failed Join.
func (c *Config) discard() {
	if c.Mover != nil && c.Mover.Listener != nil {
		_ = c.Mover.Listener.Close()
	}
}
