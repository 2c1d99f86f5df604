package manager

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/manager/internal/memcatalog"
	"github.com/leasehold-dev/leasehold/secret"
)

// MinPeers and MaxPeers bound the size of a diskless group. Two managers are no better than one: the
// death of either stops both.
const (
	MinPeers = memcatalog.MinPeers
	MaxPeers = memcatalog.MaxPeers
)

// Peers are the managers of a group that keeps nothing on disk. They agree among
// themselves who leads, by a lease of package flease. The configuration of the
// namespaces is in the memory of all of them, and a new leader finds out who has
// what by asking the owners.
//
// All but Listen must be the same for all managers of a group, and so must be
// Config.TTL and Config.Drift: a manager that was told otherwise does not take part,
// and the others' logs say so. To change any of it, stop all managers, and start
// them again after Longest.
//
// A group needs a majority of its managers. It outlives the restart of all of them,
// but one after the other. If more than a minority is restarted at a time, the
// namespaces may be forgotten, and nothing is granted for as long as Longest. So it
// is when a group is new, and then all of its managers must be up once.
type Peers struct {
	// Members are all managers of the group, this one included. Three to nine.
	Members []Peer

	// Key is a secret that all managers of the group share, of 16 random bytes or
	// more. It is required unless all addresses are on the loopback, or Transport
	// is a [flease.TCP] with certificates on both sides.
	Key secret.Text
	// OtherKeys are accepted beside Key, while all managers are given another one: see
	// [flease.Config].
	OtherKeys []secret.Text
	// Transport carries what the managers say to each other about leadership.
	// Default [flease.UDP].
	Transport flease.Transport
	// Listen is where that is listened for, if it is not this manager's address in
	// Members.
	Listen string

	// Epsilon is by how much the wall clocks of two managers may differ. It delays
	// failover, and is less than TTL. Default: a quarter of TTL, 500 ms at most.
	Epsilon time.Duration
	// Longest is the longest time for which an owner may believe in a lease: that of
	// a namespace times its drift bound. A namespace with a longer one is refused.
	// Default 12 s, which is that of a namespace that is configured to nothing else.
	Longest time.Duration
}

// A Peer is a manager of a group that keeps nothing on disk.
type Peer struct {
	// Manager is its address, as its own Config.Advertise has it.
	Manager string
	// Addr is where it takes part in the agreement about who leads. Default: the
	// same host and port, which for datagrams is not taken by the manager itself.
	Addr string
}

func (p *Peers) validate(c *Config) error {
	if p.Epsilon == 0 {
		p.Epsilon = min(flease.DefaultEpsilon, c.TTL/4)
	}
	if p.Longest == 0 {
		p.Longest = protocol.DefaultTiming().Hold()
	}
	if p.Longest < 100*time.Millisecond || p.Longest > 24*time.Hour {
		return leasehold.Errorf(opStart, leasehold.ErrInvalid, c.Advertise, "the longest lease is %v, want 100ms to 24h", p.Longest)
	}
	p.Members = slices.Clone(p.Members)
	for i := range p.Members {
		if err := ValidateAdvertise(p.Members[i].Manager); err != nil {
			return err
		}
		if p.Members[i].Addr == "" {
			p.Members[i].Addr = p.Members[i].Manager
		}
	}
	return nil
}

// group says how this manager takes part in its group.
func (c *Config) group() memcatalog.Config {
	p := c.Peers
	tcp, _ := p.Transport.(flease.TCP)
	_, inMemory := p.Transport.(*flease.Memory)
	out := memcatalog.Config{
		Self: storage.ManagerID(c.Advertise), Key: p.Key, OtherKeys: p.OtherKeys, Listen: p.Listen, Transport: p.Transport,
		Secure: tcp.TLS != nil || inMemory,
		Lease:  c.TTL, Epsilon: p.Epsilon, Drift: c.Drift, Longest: p.Longest,
	}
	for _, peer := range p.Members {
		out.Peers = append(out.Peers, memcatalog.Peer{Manager: storage.ManagerID(peer.Manager), Addr: peer.Addr})
	}
	return out
}

// checkHold says that owners would believe in leases of a namespace for longer than
// the group allows.
func (c *Config) checkHold(n storage.Namespace) error {
	hold := protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift}.Hold()
	if c.Peers == nil || hold <= c.Peers.Longest {
		return nil
	}
	return leasehold.Errorf("configure namespace", leasehold.ErrInvalid, string(n.Name),
		"owners may believe in a lease of %v with a drift of %v for %v, and these managers, which keep nothing on disk, allow %v: use a shorter lease, or start all of them with a longer --longest-lease",
		n.Lease, float64(n.Drift), hold, c.Peers.Longest)
}

// joinGroup takes part in a group without a store.
func (m *Manager) joinGroup() error {
	cfg := m.cfg.group()
	cfg.Clock, cfg.Logger = m.clock, m.log
	cfg.Dial = func(id storage.ManagerID) (*grpc.ClientConn, error) { return m.dial(string(id)) }
	cfg.Notify = func(e bylease.Event) { m.driver.PostUrgent(m.ctx, managerproc.Appointment{Event: e}) }
	cfg.Outranked = func(by leasehold.Term) {
		m.driver.PostUrgent(m.ctx, managerproc.Election{Event: byrecord.Outranked{By: by, Manager: true}})
	}
	group, err := memcatalog.Start(cfg)
	if err != nil {
		return err
	}
	m.group, m.tables = group, group
	return nil
}

// leaveGroup gives up the lease of leadership, if we have it. We lead no more.
func (m *Manager) leaveGroup() {
	if m.group == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.TTL)
	defer cancel()
	if err := m.group.Close(ctx); err != nil {
		m.log.Debug("the others may have to wait until the lease of leadership has run out", "why", err)
	}
}
