package flease

import (
	"crypto/tls"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
)

// A Transport carries packets between members: [UDP], [TCP] or a [Memory].
type Transport interface {
	open(fleasenet.Config) (fleasenet.Net, error)
}

// UDP carries packets in datagrams of at most 1400 bytes, larger ones on the loopback.
// It is the fastest transport, and the default.
type UDP struct{}

func (UDP) open(c fleasenet.Config) (fleasenet.Net, error) { return fleasenet.UDP(c) }

// TCP carries packets over TCP connections, for networks that block UDP.
type TCP struct {
	// TLS, if set, configures both ends of connections. With a certificate, and
	// ClientAuth set to RequireAndVerifyClientCert, no Key is required.
	TLS *tls.Config
}

func (t TCP) open(c fleasenet.Config) (fleasenet.Net, error) {
	c.TLS = t.TLS
	return fleasenet.TCP(c)
}

// A Memory is a network within one process, for tests of applications. All members of
// a network share one. It also works on the virtual time of testing/synctest. The zero
// Memory is ready to use, and must not be copied.
type Memory struct {
	net fleasenet.Memory
}

func (m *Memory) open(c fleasenet.Config) (fleasenet.Net, error) { return m.net.Join(c) }

// Cut drops all packets from one member to another, until [Memory.Mend]. The other
// direction is not affected.
func (m *Memory) Cut(from, to ID) { m.net.Cut(machine.Process(from), machine.Process(to)) }

// Mend undoes Cut.
func (m *Memory) Mend(from, to ID) { m.net.Mend(machine.Process(from), machine.Process(to)) }
