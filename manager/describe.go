package manager

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Usage is the use of a limited resource.
type Usage struct {
	What       string // in two or three words: "open files"
	Used, Most uint64
}

// describe fills in this manager's own part of a status. It comes last, so that the clocks are
// read as close as possible to when the caller reads its own.
func (m *Manager) describe(answer *leaseholdv1.GetStatusResponse) {
	answer.Usages = nil
	for _, u := range m.usages() {
		answer.Usages = append(answer.Usages, &leaseholdv1.Usage{What: u.What, Used: u.Used, Most: u.Most})
	}
	answer.Http, answer.Ttl, answer.Failover = m.cfg.HTTP, int64(m.cfg.TTL), int64(m.cfg.failover())
	now, wall := m.clock.Both()
	answer.Clocks = &leaseholdv1.Clocks{Wall: timestamppb.New(wall), Monotonic: int64(now), Drift: m.cfg.Drift}
	if m.cfg.Peers != nil {
		answer.Clocks.Epsilon = int64(m.cfg.Peers.Epsilon)
	}
}

// failover is how long the group has no leader after a crash of the leader, apart from delays of the store and the
// network. In a diskless group the leader's lease must have ended on all clocks.
func (c *Config) failover() time.Duration {
	if c.Peers == nil {
		return byrecord.MaxFailover(c.TTL, mono.Drift(c.Drift))
	}
	return max(mono.Drift(c.Drift).Stretch(c.TTL), c.TTL+2*c.Peers.Epsilon)
}

// usages returns the use of all limited resources.
func (m *Manager) usages() []Usage {
	all := []Usage{
		{"owners connected", uint64(m.owners.Count()), uint64(m.cfg.MaxStreams)},
		{"lookups connected", uint64(m.lookups.Count()), uint64(m.cfg.MaxStreams)},
	}
	if m.cfg.Usage != nil {
		all = append(all, m.cfg.Usage()...)
	}
	return all
}
