package sim

import "time"

// relapse plays what managers without a store must survive, and what chance brings
// about in one world of many thousands. The leader stands still for longer than its
// lease lasts. The others change the catalog, and then die. One of them is back, and
// knows nothing, when the old leader goes on, which does not know that its time is
// over. What was changed must not be forgotten as long as the third may remember it.
func (n *nemesis) relapse() bool {
	w := n.world
	var leader *managerHost
	var others []*managerHost
	for _, m := range w.managers {
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
	still := 3*simTTL + w.Below(3*simTTL)
	n.tell("%s for %v", leader.label, still)
	w.stop(leader.host, still, false)
	space := n.anySpace()
	n.after(still-w.Below(simTTL), func() {
		for _, m := range others {
			if m.alive && n.configure(m, space) {
				break
			}
		}
	})
	n.after(still-time.Millisecond-w.Below(20*time.Millisecond), func() {
		for i, m := range others {
			if !m.alive {
				continue
			}
			w.kill(m.host)
			if i == 0 {
				m.boot()
			} else {
				n.after(simTTL+w.Below(5*simTTL), func() {
					if !m.alive {
						m.boot()
					}
				})
			}
		}
	})
	return true
}
