package manager

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/manager/internal/autosharding"
)

// newSharding returns the service for auto-sharding clients. Its feeds are lookups in this process.
func (m *Manager) newSharding() *autosharding.Service {
	return autosharding.New(m.ctx, autosharding.Config{
		Self: m.cfg.Advertise, MaxStreams: m.cfg.MaxStreams, Clock: m.clock, Logger: m.log, Rand: cryptoRand,
		Request: func(ctx context.Context, r *protocol.LookupRequest) {
			m.driver.PostLowPriority(ctx, func() managerproc.Event { return managerproc.Lookup{LookupRequest: r} })
		},
		Refused: m.metrics.countRefusal,
	})
}

// answer sends a reply to a lookup, or to a feed of auto-sharding clients.
func (m *Manager) answer(lookup uint64, reply *protocol.LookupReply) {
	if autosharding.IsFeed(lookup) {
		m.sharding.Answer(lookup, reply)
		return
	}
	m.lookups.Answer(lookup, reply)
}

// broadcast sends changes to all lookups and feeds of a namespace.
func (m *Manager) broadcast(reply *protocol.LookupReply) {
	m.lookups.Broadcast(reply)
	m.sharding.Broadcast(reply)
}
