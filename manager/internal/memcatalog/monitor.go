package memcatalog

import (
	"time"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// monitor checks periodically that Flease messages arrive: on a follower those of the leader, on
// the leader those of all managers.
func (g *Group) monitor() {
	g.voting.Store(g.node.Ready(g.ctx) == nil)
	tick := time.NewTicker(g.cfg.Lease / 2)
	defer tick.Stop()
	logged := make(map[storage.ManagerID]bool)
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
		}
		g.checkLeader()
		g.checkVoters(logged)
	}
}

func (g *Group) checkLeader() {
	leader := flease.ID(g.leader.Load())
	var heard time.Time
	for _, m := range g.node.Status().Members {
		if m.ID == leader {
			heard = m.Heard
		}
	}
	lives := leader != 0 && g.cfg.Clock.Now().Sub(mono.Instant(g.leaderCallAt.Load())) < 3*g.cfg.refresh()
	deaf := g.lease.Load() == nil && lives && time.Since(heard) > 3*g.cfg.Lease
	if deaf && !g.deaf.Load() {
		g.log.Error("this manager does not vote: the leader's datagrams do not arrive here. Check the firewall between them",
			"leader", g.cfg.manager(leader))
	}
	g.deaf.Store(deaf)
}

// checkVoters logs, on the leader, each manager that is up and stops voting, and when it votes
// again. Managers that are down are logged by the replica; managers that have just started vote
// soon.
func (g *Group) checkVoters(logged map[storage.ManagerID]bool) {
	since := mono.Instant(g.ledSince.Load())
	if g.lease.Load() == nil || g.cfg.Clock.Now().Sub(since) < g.voteTimeout() {
		return // a new leader may not have received a message of each manager
	}
	for _, v := range g.voters() {
		switch lives := g.replica.calls(v.Manager).alive(); {
		case v.Problem != "" && v.Problem != justStarted && lives && !logged[v.Manager]:
			g.log.Error("a manager of the group is up and does not vote in elections: do not stop another", "peer", v.Manager, "why", v.Problem)
			logged[v.Manager] = true
		case v.Problem == "" && logged[v.Manager]:
			g.log.Info("a manager of the group votes again", "peer", v.Manager)
			delete(logged, v.Manager)
		}
	}
}
