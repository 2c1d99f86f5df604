package sim

import "time"

// outage stops the managers or the store, or cuts all connections to the managers: mostly for seconds, rarely
// for a day. It prolongs the world. Usually there are no other faults until owners have had the time to
// return.
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
		n.detailf("all managers are down for %v", d)
		n.killManagers(d)
	case 1:
		n.detailf("all managers are stopped for %v", d)
		for _, m := range n.managers {
			m.stop(d, false)
		}
	case 2:
		n.detailf("all managers are cut off for %v", d)
		for _, m := range n.managers {
			n.cutOff(m, d)
		}
	default:
		n.detailf("the store is down for %v", d)
		n.store.down = true
		n.after(d, n.store.up)
	}
	return true
}

func (n *nemesis) killManagers(d time.Duration) {
	for _, m := range n.managers {
		n.killFor(m, d)
	}
}

// killFor kills a manager, and restarts it shortly after d.
func (n *nemesis) killFor(m *managerHost, d time.Duration) {
	if m.alive {
		m.kill()
		n.hangUp(m)
	}
	n.bootAfter(d+n.Below(500*time.Millisecond), m.host, m.boot)
}

// cutOff cuts all connections of a manager except to other managers and the store.
func (n *nemesis) cutOff(m *managerHost, d time.Duration) {
	for _, h := range n.hosts[len(n.managers):] {
		n.cutFor(d, h, m.host)
		n.cutFor(d, m.host, h)
	}
}

// relapse is a scenario that random faults produce once in many thousand worlds. A leader without a store is
// stopped for longer than its lease. The others change the catalog and then crash. One of them has restarted
// with empty memory when the old leader continues, before that detects that its lease has expired. The
// catalog change must survive as long as the third manager may have it.
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
	n.detailf("%s for %v", leader.label, still)
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
