package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/manager/internal/autosharding"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// act executes the machine's actions. It is a part of the machine's step, and does not block.
func (m *Manager) act(now mono.Instant, actions []managerproc.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case managerproc.Elect:
			m.elect(now, a.Action)
		case managerproc.Manage:
			m.manage(now, a)
		case managerproc.LoadCatalog:
			m.store.loadCatalog(a)
		case managerproc.Load:
			m.store.load(a)
		case managerproc.Settle:
			m.store.settle(a)
		case managerproc.Follow:
			m.feeds.send(a)
		case managerproc.Unfollow:
			m.feeds.stop(a.Namespace)
		case managerproc.Serves:
			m.owners.Announce(a.Namespace, protocol.NotLeader{Term: a.Term, Leader: storage.ManagerID(m.cfg.Advertise)})
		case managerproc.RedirectOwner:
			m.metrics.countRefusal(leasehold.ErrNotLeader)
			m.owners.Redirect(a.Speaker, a.NotLeader)
		case managerproc.DeathReply:
			m.deaths.resolve(a.ID, deathReply{outcome: a.Outcome})
		case managerproc.RedirectDeath:
			m.deaths.resolve(a.ID, deathReply{notLeader: &a.NotLeader})
		case managerproc.RefuseOwner:
			m.metrics.countRefusal(leasehold.KindOf(a.Why))
			m.owners.Refuse(a.Speaker, a.Why)
		case managerproc.RedirectLookup:
			if autosharding.IsFeed(a.Lookup) {
				continue // it retries
			}
			m.metrics.countRefusal(leasehold.ErrNotLeader)
			m.lookups.Send(a.Lookup, &leaseholdv1.FollowResponse{
				Version: wire.Version, Kind: &leaseholdv1.FollowResponse_NotLeader{NotLeader: wire.FromNotLeader(a.NotLeader)},
				Why: m.notServingReason(now, m.lookups.Namespace(a.Lookup)),
			})
		case managerproc.RefuseLookup:
			if autosharding.IsFeed(a.Lookup) {
				m.sharding.Refuse(a.Lookup, a.Why)
				continue
			}
			m.metrics.countRefusal(leasehold.KindOf(a.Why))
			m.lookups.Send(a.Lookup, &leaseholdv1.FollowResponse{
				Version: wire.Version, Kind: &leaseholdv1.FollowResponse_Refusal{Refusal: wire.FromRefusal(a.Why)},
			})
		case managerproc.Answer:
			m.answer(a.Lookup, a.Reply)
		case managerproc.Relay:
			m.broadcast(a.Reply)
		case managerproc.Parked:
			m.log.Error("a namespace cannot be served; the others are not affected", "namespace", a.Namespace, "why", a.Why)
		case managerproc.Note:
			m.logFollowing(a)
		}
	}
	m.leadership.check(m, now)
	m.spans.check(m, now)
	m.creations.check(m, now)
	if m.watch != nil {
		m.metrics.observeStep(m.watch.begun)
	}
}

// elect executes an action of the election.
func (m *Manager) elect(now mono.Instant, a byrecord.Action) {
	switch a := a.(type) {
	case byrecord.Read:
		m.store.readRecord(a)
	case byrecord.Swap:
		m.store.swap(a)
	case byrecord.Lead:
		failpoint.Here("manager/leads")
		m.led = a.Term
		m.spans.startFailover(m, a.Term)
		m.leadership.start(now)
		m.feeds.stopAll()
	case byrecord.StepDown:
		failpoint.Here("manager/steps-down")
		if m.group != nil {
			m.group.StepDown(m.led, a.Above)
		}
	case byrecord.Resigned:
		close(m.resigned)
	case byrecord.Note:
		m.metrics.countElection(a)
		m.logElection(a)
	}
}

// manage executes an action of a namespace's machine.
func (m *Manager) manage(now mono.Instant, a managerproc.Manage) {
	m.metrics.countAction(a.Namespace, a.Action)
	switch act := a.Action.(type) {
	case machine.Send:
		m.owners.Reply(protocol.Speaker{Namespace: a.Namespace, Owner: act.Owner, Session: act.Reply.Session}, act.Reply)
	case machine.Answer:
		m.answer(act.Lookup, act.Reply)
	case machine.Broadcast:
		m.broadcast(act.Reply)
		m.events.publishChanges(act.Reply)
	case machine.Commit:
		m.store.commit(a.Namespace, a.Term, act.Batch)
	case machine.ReadEnd:
		m.store.readEnd(a.Namespace, a.Term)
	case machine.SaveSnapshot:
		m.store.saveSnapshot(act.Snapshot)
	case machine.Ordered:
		m.orders.resolve(act)
	case machine.Note:
		m.spans.recordMove(m, a.Namespace, act)
		m.logNamespace(now, a, act)
	}
}
