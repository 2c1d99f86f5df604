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

// UDP carries packets in datagrams, of 1400 bytes at most, and larger ones on the
// loopback. It is the fastest, and what to use unless there is a reason not to.
type UDP struct{}

func (UDP) open(c fleasenet.Config) (fleasenet.Net, error) { return fleasenet.UDP(c) }

// TCP carries packets over connections, for networks that let nothing else
// through.
type TCP struct {
	// TLS, if set, is used for both ends of connections. With a certificate, and
	// ClientAuth set to RequireAndVerifyClientCert, no Key is needed.
	TLS *tls.Config
}

func (t TCP) open(c fleasenet.Config) (fleasenet.Net, error) {
	c.TLS = t.TLS
	return fleasenet.TCP(c)
}

// A Memory is a network within one process, for tests of applications. All
// members that are to hear each other share one. It also works on the virtual
// time of testing/synctest. The zero Memory is ready to be used, and must not be
// copied.
type Memory struct {
	net fleasenet.Memory
}

func (m *Memory) open(c fleasenet.Config) (fleasenet.Net, error) { return m.net.Join(c) }

// Cut loses everything that one member sends to another from now on, until
// [Memory.Mend]. The other direction is not concerned.
func (m *Memory) Cut(from, to ID) { m.net.Cut(machine.Process(from), machine.Process(to)) }

// Mend undoes Cut.
func (m *Memory) Mend(from, to ID) { m.net.Mend(machine.Process(from), machine.Process(to)) }
