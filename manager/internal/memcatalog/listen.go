package memcatalog

import (
	"time"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// listen finds out whether we hear what the leader says about leadership and, if we
// lead, whether we hear all who should have a say.
func (g *Group) listen() {
	g.votes.Store(g.node.Ready(g.ctx) == nil)
	tick := time.NewTicker(g.cfg.Lease / 2)
	defer tick.Stop()
	said := make(map[storage.ManagerID]bool)
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
		}
		g.listenToLeader()
		g.listenToAll(said)
	}
}

func (g *Group) listenToLeader() {
	leader := flease.ID(g.leader.Load())
	var heard time.Time
	for _, m := range g.node.Status().Members {
		if m.ID == leader {
			heard = m.Heard
		}
	}
	lives := leader != 0 && g.cfg.Clock.Now().Sub(mono.Instant(g.told.Load())) < 3*g.cfg.refresh()
	silent := g.lease.Load() == nil && lives && time.Since(heard) > 3*g.cfg.Lease
	if silent && !g.silent.Load() {
		g.log.Error("the leader's datagrams do not arrive here: this manager does not vote. Look at the firewall between them",
			"leader", g.cfg.manager(leader))
	}
	g.silent.Store(silent)
}

// listenToAll says, while we lead, who lives and has no vote, and who has one again:
// once each. Those who do not answer calls either are down, and the replica logs that;
// those who have just started soon will.
func (g *Group) listenToAll(said map[storage.ManagerID]bool) {
	since := mono.Instant(g.ledSince.Load())
	if g.lease.Load() == nil || g.cfg.Clock.Now().Sub(since) < g.hearing() {
		return // who leads not for long may not have heard all
	}
	for _, v := range g.Voters() {
		switch lives := g.replica.calls(v.Manager).alive(); {
		case v.Mute != "" && v.Mute != justStarted && lives && !said[v.Manager]:
			g.log.Error("a manager of the group lives, and does not vote on who leads: do not stop another", "peer", v.Manager, "why", v.Mute)
			said[v.Manager] = true
		case v.Mute == "" && said[v.Manager]:
			g.log.Info("a manager of the group votes again", "peer", v.Manager)
			delete(said, v.Manager)
		}
	}
}
