package sim

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// Managers that follow each other: a standby asks the leader on behalf of its
// own lookups. To the leader it is a lookup like any other, with a number
// behind those of the real ones.

type (
	// followRequest is a standby's question, with the standby's number and
	// which of its processes asks.
	followRequest struct {
		from    int
		epoch   uint32
		request *protocol.LookupRequest
	}
	// followReply is what a manager says to a standby that follows it. As on a
	// stream, it reaches the process that asked or nobody.
	followReply struct {
		to    *managerHost
		epoch uint32
		ns    leasehold.Namespace
		event lookup.Event
	}
)

// followed is who follows us, and what it last asked for.
type followed struct {
	epoch uint32
	ns    leasehold.Namespace
}

// handleFollow is a question of another manager.
func (m *managerHost) handleFollow(now mono.Instant, f followRequest) {
	asked := *f.request
	asked.Lookup = uint64(len(m.world.lookups) + f.from)
	m.followers[f.from] = followed{f.epoch, f.request.Namespace}
	m.heard[asked.Lookup] = m.world.Now
	m.do(m.node.Step(now, managerproc.Lookup{LookupRequest: &asked}))
}

// answer sends something to a lookup, or to a standby that follows us.
func (m *managerHost) answer(to uint64, what any) {
	w := m.world
	lookups := uint64(len(w.lookups))
	switch {
	case to < lookups:
		w.send(m.endpoint, w.lookups[to].endpoint, what)
	case to < lookups+uint64(len(w.managers)):
		i := to - lookups
		reply := followReply{to: w.managers[i], epoch: m.followers[i].epoch, ns: m.followers[i].ns}
		switch what := what.(type) {
		case *protocol.LookupReply:
			reply.ns, reply.event = what.Namespace, lookup.Reply{LookupReply: what}
		case protocol.NotLeader:
			reply.event = lookup.Redirect{NotLeader: what}
		case refused:
			reply.event = lookup.Refused{Kind: what.kind}
		}
		w.send(m.endpoint, w.managers[i].endpoint, reply)
	}
}

// broadcast sends news to everyone who has asked about a namespace.
func (m *managerHost) broadcast(ns leasehold.Namespace, reply *protocol.LookupReply) {
	for i, heard := range m.heard {
		if heard == 0 {
			continue
		}
		if i >= len(m.world.lookups) || m.world.lookups[i].space.name == ns {
			m.answer(uint64(i), reply)
		}
	}
}
