package memcatalog

import (
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

// Remaining returns the remaining time of the lease of leadership.
func (g *Group) Remaining() time.Duration {
	if l := g.lease.Load(); l != nil {
		return l.Remaining()
	}
	return 0
}

// ID returns the manager's Flease ID.
func (g *Group) ID() flease.ID { return Peer{Manager: g.cfg.Self}.id() }
