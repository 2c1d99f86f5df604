package fleasenet

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
)

const op = "start flease"

func invalid(subject, format string, args ...any) error {
	return leasehold.Errorf(op, leasehold.ErrInvalid, subject, format, args...)
}

// checkMembers fills in defaults, and says what is wrong with who speaks to whom.
func (c *Config) checkMembers() error {
	switch {
	case c.Self == 0 || c.Incarnation == 0:
		return invalid("", "Self and Incarnation must be set, and not be 0")
	case c.Receive == nil:
		return invalid("", "Receive must be set")
	case len(c.Peers) > MaxPeers:
		return invalid("", "%d members, %d are possible", len(c.Peers), MaxPeers)
	case c.MaxPacket != 0 && (c.MaxPacket < MinPacket || c.MaxPacket > MaxPacket):
		return invalid("", "packets of %d bytes: want %d to %d", c.MaxPacket, MinPacket, MaxPacket)
	case c.Key.Len() != 0 && c.Key.Len() < MinKey:
		return invalid("", "a key of %d bytes: use %d random ones at least", c.Key.Len(), MinKey)
	}
	for _, other := range c.OtherKeys {
		if other.Len() < MinKey || c.Key.Len() == 0 {
			return invalid("", "another key of %d bytes: use %d random ones at least, beside a key of the same kind", other.Len(), MinKey)
		}
	}
	seen := make(map[flease.Process]bool)
	for _, p := range c.Peers {
		switch {
		case p.Process == 0:
			return invalid(p.Addr, "a member has the ID 0: IDs begin with 1")
		case seen[p.Process]:
			return invalid(p.Addr, "member %d is there twice: every member needs an ID of its own", p.Process)
		}
		seen[p.Process] = true
	}
	if c.Strange == nil {
		c.Strange = func(*flease.Envelope, uint64, *Source) {}
	}
	if c.Drained == nil {
		c.Drained = func() {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// checkAddresses says what is wrong with the addresses, and whether packets that
// are not sealed may travel between them.
func (c *Config) checkAddresses() error {
	exposed := ""
	taken := make(map[string]flease.Process)
	for _, p := range c.Peers {
		if err := checkAddr("the address of member "+p.name(), p.Addr, false); err != nil {
			return err
		}
		if other := taken[plain(p.Addr)]; other != 0 {
			return invalid(p.Addr, "the address of both member %d and member %d: each needs its own", other, p.Process)
		}
		taken[plain(p.Addr)] = p.Process
		if !address.Loopback(p.Addr) {
			exposed = p.Addr
		}
	}
	if err := checkAddr("where this member listens", c.Listen, true); err != nil {
		return err
	}
	if !address.Loopback(c.Listen) {
		exposed = c.Listen
	}
	if exposed != "" && c.Key.Len() == 0 && !mutual(c.TLS) {
		return invalid(exposed, "not a loopback address, and there is no key: give all members the same secret key")
	}
	return nil
}

// plain returns the one way to write an address, as far as that can be told
// without asking for names.
func plain(addr string) string {
	if at, err := netip.ParseAddrPort(addr); err == nil {
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
	}
	return strings.ToLower(addr)
}

// checkAddr says what is wrong with an address; what is whose it is.
func checkAddr(what, addr string, anyPort bool) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return invalid(addr, "%s: want host:port: %w", what, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 && !anyPort {
		return invalid(addr, "%s: port %q: want 1 to 65535", what, port)
	}
	if host == "" && !anyPort {
		return invalid(addr, "%s has no host", what)
	}
	return nil
}

func mutual(c *tls.Config) bool {
	return c != nil && c.ClientAuth == tls.RequireAndVerifyClientCert && !c.InsecureSkipVerify
}

func cannotListen(addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return leasehold.Errorf(op, leasehold.ErrUnavailable, addr, "%w: does this member run already? It must not run twice", err)
	}
	return leasehold.Errorf(op, leasehold.ErrUnavailable, addr, "%w", err)
}
