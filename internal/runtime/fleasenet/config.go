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

// checkMembers sets defaults and validates everything except the addresses.
func (c *Config) checkMembers() error {
	switch {
	case c.Self == 0 || c.Incarnation == 0:
		return invalid("", "Self and Incarnation must be set, and not be 0")
	case c.Receive == nil:
		return invalid("", "Receive must be set")
	case len(c.Peers) > MaxPeers:
		return invalid("", "%d members; the maximum is %d", len(c.Peers), MaxPeers)
	case c.MaxPacket != 0 && (c.MaxPacket < MinPacket || c.MaxPacket > MaxPacket):
		return invalid("", "packets of %d bytes: want %d to %d", c.MaxPacket, MinPacket, MaxPacket)
	case c.Key.Len() != 0 && c.Key.Len() < MinKey:
		return invalid("", "key of %d bytes: use at least %d random bytes", c.Key.Len(), MinKey)
	}
	for _, other := range c.OtherKeys {
		if other.Len() < MinKey || c.Key.Len() == 0 {
			return invalid("", "other key of %d bytes: use at least %d random bytes, and set a key, too", other.Len(), MinKey)
		}
	}
	seen := make(map[flease.Process]bool)
	for _, p := range c.Peers {
		switch {
		case p.Process == 0:
			return invalid(p.Addr, "a member has the ID 0: IDs begin with 1")
		case seen[p.Process]:
			return invalid(p.Addr, "duplicate member %d: every member needs an ID of its own", p.Process)
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

// checkAddresses validates the addresses, and requires a key or mutual TLS unless all are on the loopback.
func (c *Config) checkAddresses() error {
	exposed := ""
	taken := make(map[string]flease.Process)
	for _, p := range c.Peers {
		if err := checkAddr("the address of member "+p.name(), p.Addr, false); err != nil {
			return err
		}
		if other := taken[canonical(p.Addr)]; other != 0 {
			return invalid(p.Addr, "address of both member %d and member %d: each needs its own", other, p.Process)
		}
		taken[canonical(p.Addr)] = p.Process
		if !address.Loopback(p.Addr) {
			exposed = p.Addr
		}
	}
	if err := checkAddr("the listen address of this member", c.Listen, true); err != nil {
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

// canonical returns the canonical form of an address, without name resolution.
func canonical(addr string) string {
	if at, err := netip.ParseAddrPort(addr); err == nil {
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
	}
	return strings.ToLower(addr)
}

// checkAddr validates an address; what describes it in errors.
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
		return leasehold.Errorf(op, leasehold.ErrUnavailable, addr, "%w: is this member running already? It must not run twice", err)
	}
	return leasehold.Errorf(op, leasehold.ErrUnavailable, addr, "%w", err)
}
