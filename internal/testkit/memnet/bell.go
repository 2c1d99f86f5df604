package memnet

import "time"

// A bell wakes those who wait for something. It is under the network's lock.
type bell struct {
	rung chan struct{} // nil if nobody waits
}

func (b *bell) ring() {
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// wait gives the lock away until the bell is rung, a time has come, or done is closed.
// A zero time never comes. It may return for no reason.
func (b *bell) wait(n *Net, done <-chan struct{}, until time.Time) {
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	rung := b.rung
	n.mu.Unlock()
	defer n.mu.Lock()
	var alarm <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-rung:
	case <-alarm:
	case <-done:
	}
}

// all rings every bell of the network: what goes through has changed.
func (n *Net) all() {
	n.dialing.ring()
	for _, h := range n.hosts {
		for _, l := range h.listeners {
			l.bell.ring()
		}
		for c := range h.conns {
			c.bell.ring()
		}
	}
}
