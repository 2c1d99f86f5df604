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

// A Mover is how the state of ranges gets from one owner to another. See "Moving
// state" in the package's documentation.
type Mover struct {
	// Export sends the state of a range to its next owner. It is called while the
	// range is served, for several ranges at once, each on a goroutine of its own.
	// It sends what there is, calls [Export.Stop], sends what has changed since,
	// and returns. It must call Stop: a write that comes after the copying and
	// before the end would be lost otherwise.
	//
	// If it fails, or the context ends, the range is served here on, as if nothing
	// had happened. It must not remove anything: OnRevoke is told when the lease
	// has moved.
	Export func(ctx context.Context, out *Export) error

	// Import takes the state of a range in. It is called for several ranges at
	// once, each on a goroutine of its own, and puts what it reads aside: the
	// range is still served by its owner, and may stay there.
	//
	// When this process is granted the lease, install is called, before any Check
	// in its range succeeds. It puts what was set aside in its place, stamped with
	// the lease's generation, and should do no more than that, because nobody
	// serves the range meanwhile. The lease may cover less than the import. If the
	// move does not come about, install is never called, and the context that
	// Import was called with ends.
	//
	// An Import that has no room returns an error, of kind [leasehold.ErrLimit] for
	// instance: the source's log has it, and the range stays where it is. A nil
	// install has nothing to do.
	Import func(ctx context.Context, in *Import) (install func(leasehold.Lease), err error)

	// Listen is where state is taken in, host:port. Default: any port, of Addr's
	// host if that is an IP address or localhost, and of all interfaces otherwise.
	Listen string
	// Listener, if set, is used instead. Close closes it, and so does a Join that
	// fails.
	Listener net.Listener
	// Advertise is where other owners reach that, host:port. Default: the address
	// that is listened on, with Addr's host if that is all interfaces. It is
	// required if only this computer reaches that address, unless Addr is such an
	// address, too.
	Advertise string

	// Credentials and ServerCredentials secure the connections to other owners,
	// and those from them: anybody who can reach an owner may try to speak to it,
	// and state is sent to whoever answers at an owner's address. If managers know
	// who owners are, each side also makes sure that the other is the one whom the
	// leader has let in. Required if Config.Credentials is set, and if others than
	// this computer reach the address that is listened on; otherwise the default is
	// plain text, within this computer.
	Credentials       credentials.TransportCredentials
	ServerCredentials credentials.TransportCredentials
	// DialOptions, for connections to other owners, are added to our own, and
	// prevail.
	DialOptions []grpc.DialOption

	// IdleTimeout is after how long without progress a move fails: no record is
	// sent, none is taken in, Import does not return. Default 30 s.
	IdleTimeout time.Duration
	// StopTimeout is how long a range may be without an owner that serves it, from
	// Stop on until the target has all of its state. After that the move fails, and
	// the range is served here again. Default 5 s.
	StopTimeout time.Duration
	// InstallTimeout is how long install may take. After that the range is given
	// back, and its state is lost. Default 5 s.
	InstallTimeout time.Duration
}

// validateMover fills in defaults. The caller's Mover is not changed.
func (c *Config) validateMover(secured bool) error {
	if c.Mover == nil {
		return nil
	}
	m := *c.Mover
	c.Mover = &m
	if m.Export == nil || m.Import == nil {
		return c.bad("Mover: both Export and Import are needed")
	}
	if secured && (m.Credentials == nil || m.ServerCredentials == nil) {
		return c.bad("Mover: Credentials and ServerCredentials are needed, because Credentials to the managers are set: for plain text between owners set both to insecure.NewCredentials()")
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

// listen opens the mover's listener, and finds out what others are told of it.
// Whatever becomes of that, the listener is closed by whoever owns the Config.
func (c *Config) listen() error {
	m := c.Mover
	host, _, _ := net.SplitHostPort(c.Addr) // it has been validated
	if m.Listener == nil {
		listener, err := net.Listen("tcp", m.listenOn(host))
		if err != nil {
			return c.bad("Mover cannot listen: set Listen to an address of this computer, and Advertise to how others reach it: %w", err)
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
		c.Logger.Warn("state is taken in in plain text: whoever can read along on the network can read it", "address", m.Listener.Addr())
	}
	if m.Advertise != "" {
		return nil
	}
	own, port, err := net.SplitHostPort(m.Listener.Addr().String())
	if err != nil {
		return c.bad("Mover: set Advertise: the listener's address %q is none that others can reach: %w", m.Listener.Addr(), err)
	}
	switch {
	case address.Wildcard(m.Listener.Addr().String()):
		own = host
	case address.Loopback(m.Listener.Addr().String()) && !address.Loopback(c.Addr):
		return c.bad("Mover: it listens on %s, where only this computer reaches it, but Addr is %s: set Listen to %q, or Advertise to how others reach it", m.Listener.Addr(), c.Addr, net.JoinHostPort("", port))
	}
	m.Advertise = net.JoinHostPort(own, port)
	return c.validateAddr("Mover.Advertise", m.Advertise, "10.0.0.1:8081")
}

// listenOn returns what to listen on. The name of a host may well be one of the
// loopback to the host itself, so that it is not asked where it leads to.
func (m *Mover) listenOn(host string) string {
	if m.Listen != "" {
		return m.Listen
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
		host = ""
	}
	return net.JoinHostPort(host, "0")
}

// discard closes a listener that nobody has heard of.
func (c *Config) discard() {
	if c.Mover != nil && c.Mover.Listener != nil {
		_ = c.Mover.Listener.Close()
	}
}
