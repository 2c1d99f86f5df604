package sim

import "time"

// outage takes the managers, the store, or all ways to the managers away: mostly for
// seconds, rarely for a day. The world lasts as much longer. Most of the time nothing else
// happens until owners have had the time to return.
func (n *nemesis) outage() bool {
	d := time.Second + n.Below(4*time.Second)
	for d < 8*time.Hour && n.Chance(2) {
		d *= 3
	}
	n.world.heal += int64(d)
	n.end += int64(d)
	if d > time.Minute || !n.Chance(3) {
		n.quietUntil = n.Now + int64(d) + int64(simTTL) + 3*int64(simTiming().Hold())
	}
	kinds := 4
	if n.cfg.Diskless {
		kinds = 3 // there is no store
	}
	switch n.Random.IntN(kinds) {
	case 0:
		n.tell("all managers are dead for %v", d)
		for _, m := range n.managers {
			n.killFor(m, d)
		}
	case 1:
		n.tell("all managers are stopped for %v", d)
		for _, m := range n.managers {
			m.stop(d, false)
		}
	case 2:
		n.tell("all managers are cut off for %v", d)
		for _, m := range n.managers {
			n.cutOff(m, d)
		}
	default:
		n.tell("the store is down for %v", d)
		n.store.down = true
		n.after(d, n.store.up)
	}
	return true
}

// killFor ends a manager, which is started again a little after d.
func (n *nemesis) killFor(m *managerHost, d time.Duration) {
	if m.alive {
		m.kill()
		n.hangUp(m)
	}
	n.bootAfter(d+n.Below(500*time.Millisecond), m.host, m.boot)
}

// cutOff cuts a manager off from everything but the other managers and the store.
func (n *nemesis) cutOff(m *managerHost, d time.Duration) {
	for _, h := range n.hosts[len(n.managers):] {
		n.cutFor(d, h, m.host)
		n.cutFor(d, m.host, h)
	}
}

// relapse plays what managers without a store must survive, and what chance brings
// about in one world of many thousands. The leader stands still for longer than its
// lease lasts. The others change the catalog, and then die. One of them is back, and
// knows nothing, when the old leader goes on, which does not know that its time is
// over. What was changed must not be forgotten as long as the third may remember it.
func (n *nemesis) relapse() bool {
	var leader *managerHost
	var others []*managerHost
	for _, m := range n.managers {
		switch {
		case !m.alive || m.stopped != 0 || m.memory == nil:
			return false
		case m.node.Term() != 0:
			leader = m
		default:
			others = append(others, m)
		}
	}
	if leader == nil || len(others) < 2 {
		return false
	}
	still := 3*simTTL + n.Below(3*simTTL)
	n.tell("%s for %v", leader.label, still)
	leader.stop(still, false)
	space := n.anySpace()
	n.after(still-n.Below(simTTL), func() {
		for _, m := range others {
			if m.alive && n.configure(m, space) {
				break
			}
		}
	})
	n.after(still-time.Millisecond-n.Below(20*time.Millisecond), func() {
		for i, m := range others {
			if !m.alive {
				continue
			}
			m.kill()
			if i == 0 {
				m.boot()
			} else {
				n.bootAfter(simTTL+n.Below(5*simTTL), m.host, m.boot)
			}
		}
	})
	return true
}
