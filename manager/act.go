package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/failpoint"
	"github.com/leasehold-dev/leasehold/internal/machine/election"
	machine "github.com/leasehold-dev/leasehold/internal/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/machine/node"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// act carries out what the machine decided. It is a part of the machine's step,
// on whichever goroutine that is, and waits for nothing.
func (m *Manager) act(now mono.Instant, actions []node.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case node.Elect:
			m.elect(now, a.Action)
		case node.Manage:
			m.manage(now, a)
		case node.LoadCatalog:
			m.store.loadCatalog(a)
		case node.Load:
			m.store.load(a)
		case node.Settle:
			m.store.settle(a)
		case node.Follow:
			m.feeds.ask(a)
		case node.Unfollow:
			m.feeds.end(a.Namespace)
		case node.Serves:
			m.owners.Announce(a.Namespace, protocol.NotLeader{Term: a.Term, Leader: storage.ManagerID(m.cfg.Advertise)})
		case node.RedirectOwner:
			m.metrics.refuse(leasehold.ErrNotLeader)
			m.owners.Redirect(a.Speaker, a.NotLeader)
		case node.RefuseOwner:
			m.metrics.refuse(leasehold.KindOf(a.Why))
			m.owners.Refuse(a.Speaker, a.Why)
		case node.RedirectLookup:
			m.metrics.refuse(leasehold.ErrNotLeader)
			m.lookups.Send(a.Lookup, &leaseholdv1.FollowResponse{
				Version: wire.Version, Kind: &leaseholdv1.FollowResponse_NotLeader{NotLeader: wire.FromNotLeader(a.NotLeader)},
				Why: m.unanswered(now, m.lookups.Namespace(a.Lookup)),
			})
		case node.RefuseLookup:
			m.metrics.refuse(leasehold.KindOf(a.Why))
			m.lookups.Send(a.Lookup, &leaseholdv1.FollowResponse{
				Version: wire.Version, Kind: &leaseholdv1.FollowResponse_Refusal{Refusal: wire.FromRefusal(a.Why)},
			})
		case node.Answer:
			m.lookups.Answer(a.Lookup, a.Reply)
		case node.Relay:
			m.lookups.Broadcast(a.Reply)
		case node.Parked:
			m.log.Error("a namespace cannot be led; the others go on", "namespace", a.Namespace, "why", a.Why)
		case node.Note:
			m.logFollowing(a)
		}
	}
	m.leading.check(m, now)
	m.spans.check(m, now)
	if m.watch != nil {
		m.metrics.stepped(m.watch.begun)
	}
}

// elect carries out what the election decided.
func (m *Manager) elect(now mono.Instant, a election.Action) {
	switch a := a.(type) {
	case election.Read:
		m.store.readRecord(a)
	case election.Swap:
		m.store.swap(a)
	case election.Lead:
		failpoint.Here("manager/leads")
		m.led = a.Term
		m.spans.lead(m, a.Term)
		m.leading.begin(now)
		m.feeds.drop()
	case election.StepDown:
		failpoint.Here("manager/steps-down")
		if m.group != nil {
			m.group.StepDown(m.led, a.Above)
		}
	case election.Resigned:
		close(m.resigned)
	case election.Note:
		m.metrics.election(a)
		m.logElection(a)
	}
}

// manage carries out what a namespace's machine decided.
func (m *Manager) manage(now mono.Instant, a node.Manage) {
	m.metrics.manage(a.Namespace, a.Action)
	switch act := a.Action.(type) {
	case machine.Send:
		m.owners.Reply(protocol.Speaker{Namespace: a.Namespace, Owner: act.Owner, Session: act.Reply.Session}, act.Reply)
	case machine.Answer:
		m.lookups.Answer(act.Lookup, act.Reply)
	case machine.Broadcast:
		m.lookups.Broadcast(act.Reply)
		m.events.changed(act.Reply)
	case machine.Commit:
		m.store.commit(a.Namespace, a.Term, act.Batch)
	case machine.ReadEnd:
		m.store.readEnd(a.Namespace, a.Term)
	case machine.SaveSnapshot:
		m.store.saveSnapshot(act.Snapshot)
	case machine.Ordered:
		m.orders.answered(act)
	case machine.Note:
		m.spans.moved(m, a.Namespace, act)
		m.logNamespace(now, a, act)
	}
}
