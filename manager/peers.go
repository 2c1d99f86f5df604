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
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/manager/internal/memcatalog"
	"github.com/leasehold-dev/leasehold/secret"
)

// MinPeers and MaxPeers bound the size of a diskless group. Two managers are no better than one: a
// majority of two is both.
const (
	MinPeers = memcatalog.MinPeers
	MaxPeers = memcatalog.MaxPeers
)

// Peers are the managers of a diskless group. A lease of package flease elects the leader. The
// configuration of the namespaces is in the memory of all managers, and a new leader rebuilds the
// lease tables from the owners' claims.
//
// All fields but Listen, and Config.TTL and Config.Drift, must be the same for all managers of a
// group. A manager with other values does not take part, and the logs report it. To change a value,
// stop all managers, and start them again after Longest.
//
// A group needs a majority of its managers. It survives a rolling restart. If a majority restarts
// at the same time, the namespaces may be lost, and no leases are granted for Longest. A new group
// waits as long, and starts when all of its managers are up.
type Peers struct {
	// Members are all managers of the group, this one included. Three to nine.
	Members []Peer

	// Key is a secret that all managers of the group share, of at least 16 random bytes. It is
	// required unless all addresses are on the loopback, or Transport is a [flease.TCP] with
	// certificates on both sides.
	Key secret.Text
	// OtherKeys are accepted besides Key, for a key rotation: see [flease.Config].
	OtherKeys []secret.Text
	// Transport carries the messages of the election. Default [flease.UDP].
	Transport flease.Transport
	// Listen is the local address of Transport. Default: this manager's address in Members.
	Listen string

	// Epsilon bounds the difference of two managers' wall clocks. It delays failover, and must be
	// less than TTL. Default: a quarter of TTL, at most 500 ms.
	Epsilon time.Duration
	// Longest bounds the time for which an owner holds a lease: a namespace's lease times its drift
	// bound. A namespace with longer leases is rejected. Default 12 s, which fits the default
	// configuration of a namespace.
	Longest time.Duration

	// Rebuild is for applications that create their namespaces again. If a majority of the managers
	// has restarted, and some are down, the namespaces that only those have are lost, and the leader
	// continues after Longest, unless a manager with another configuration of the group runs. Default:
	// it waits for all managers.
	Rebuild bool
	// Owners are the names of the processes that may be owners; others are refused. Default: all.
	Owners []leasehold.OwnerID
}

// A Peer is a manager of a diskless group.
type Peer struct {
	// Manager is its address: its own Config.Advertise.
	Manager string
	// Addr is its address for Transport. Default: the same host and port, where the manager itself
	// uses TCP and Transport UDP.
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

// group returns the configuration of package memcatalog.
func (c *Config) group() memcatalog.Config {
	p := c.Peers
	tcp, _ := p.Transport.(flease.TCP)
	_, inMemory := p.Transport.(*flease.Memory)
	out := memcatalog.Config{
		Self: storage.ManagerID(c.Advertise), Key: p.Key, OtherKeys: p.OtherKeys, Listen: p.Listen, Transport: p.Transport,
		Secure: tcp.TLS != nil || inMemory,
		Lease:  c.TTL, Epsilon: p.Epsilon, Drift: c.Drift, Longest: p.Longest, Rebuild: p.Rebuild,
	}
	for _, peer := range p.Members {
		out.Peers = append(out.Peers, memcatalog.Peer{Manager: storage.ManagerID(peer.Manager), Addr: peer.Addr})
	}
	return out
}

// checkOwner rejects an owner that is not listed.
func (c *Config) checkOwner(h *table.Holder) error {
	p := c.Peers
	if p == nil || len(p.Owners) == 0 || slices.Contains(p.Owners, h.Owner) {
		return nil
	}
	return leasehold.Errorf("hold leases", leasehold.ErrDenied, string(h.Owner),
		"only the members of this cluster may be owners: list this server in the Peers of all of them")
}

// checkHold rejects a namespace whose leases are longer than a diskless group allows.
func (c *Config) checkHold(n storage.Namespace) error {
	hold := protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift}.Hold()
	if c.Peers == nil || hold <= c.Peers.Longest {
		return nil
	}
	return leasehold.Errorf("configure namespace", leasehold.ErrInvalid, string(n.Name),
		"owners may hold a lease of %v with drift %v for %v, and this diskless group allows %v: use a shorter lease, or start all managers with a longer --longest-lease",
		n.Lease, float64(n.Drift), hold, c.Peers.Longest)
}

// joinGroup joins the diskless group.
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

// leaveGroup releases the lease of leadership, if this manager holds it. The machine must have
// ended.
func (m *Manager) leaveGroup() {
	if m.group == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.TTL)
	defer cancel()
	if err := m.group.Close(ctx); err != nil {
		m.log.Debug("releasing the lease of leadership failed; it expires instead", "why", err)
	}
}
