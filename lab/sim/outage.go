package sim

import "time"

// outage takes the managers, the store, or all ways to the managers away: mostly for
// seconds, rarely for a day. The world lasts as much longer. Most of the time nothing else
// happens until owners have had the time to return.
func (n *nemesis) outage() bool {
	w := n.world
	d := time.Second + w.Below(4*time.Second)
	for d < 8*time.Hour && w.Chance(2) {
		d *= 3
	}
	w.heal += int64(d)
	w.end += int64(d)
	if d > time.Minute || !w.Chance(3) {
		n.quietUntil = w.Now + int64(d) + int64(simTTL) + 3*int64(simTiming().Hold())
	}
	kinds := 4
	if w.cfg.Diskless {
		kinds = 3 // there is no store
	}
	switch w.Random.IntN(kinds) {
	case 0:
		n.tell("all managers are dead for %v", d)
		for _, m := range w.managers {
			n.killFor(m, d)
		}
	case 1:
		n.tell("all managers are stopped for %v", d)
		for _, m := range w.managers {
			w.stop(m.host, d, false)
		}
	case 2:
		n.tell("all managers are cut off for %v", d)
		for _, m := range w.managers {
			n.cutOff(m, d)
		}
	default:
		n.tell("the store is down for %v", d)
		w.store.down = true
		n.after(d, w.store.up)
	}
	return true
}

// killFor ends a manager, which is started again a little after d.
func (n *nemesis) killFor(m *managerHost, d time.Duration) {
	w := n.world
	if m.alive {
		w.kill(m.host)
		n.hangUp(m)
	}
	n.after(d+w.Below(500*time.Millisecond), func() {
		if !m.alive {
			m.boot()
		}
	})
}

// cutOff cuts a manager off from everything but the other managers and the store.
func (n *nemesis) cutOff(m *managerHost, d time.Duration) {
	for _, h := range n.world.hosts[len(n.world.managers):] {
		n.cutFor(d, h, m.host)
		n.cutFor(d, m.host, h)
	}
}
