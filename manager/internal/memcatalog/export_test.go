package memcatalog

import (
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

// Remaining is what is left of the lease of leadership.
func (g *Group) Remaining() time.Duration {
	if l := g.lease.Load(); l != nil {
		return l.Remaining()
	}
	return 0
}

// ID is the manager's number among those who agree on leases.
func (g *Group) ID() flease.ID { return Peer{Manager: g.cfg.Self}.id() }
