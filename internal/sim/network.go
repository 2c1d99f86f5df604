package sim

import (
	"time"
)

// A network carries messages between endpoints. It has no connections and no
// order: whatever a real transport guarantees beyond that, the machines do
// without.
type network struct {
	world *world
	n     int
	cut   []bool // from*n + to

	loss      int // percent
	duplicate int // percent
	misroute  int // percent
	delay     time.Duration
}

func (n *network) init(endpoints int) {
	n.n = endpoints
	n.cut = make([]bool, endpoints*endpoints)
}

func (n *network) setCut(from, to int32, cut bool) { n.cut[int(from)*n.n+int(to)] = cut }

// send puts a message under way.
func (n *network) send(from, to int32, what any) {
	w := n.world
	w.stats.messages++
	if n.cut[int(from)*n.n+int(to)] {
		w.stats.dropped++
		return
	}
	if n.loss > 0 && w.random.IntN(100) < n.loss {
		w.stats.dropped++
		return
	}
	if n.misroute > 0 && w.random.IntN(100) < n.misroute {
		to = n.astray(to)
	}
	w.post(n.latency(), from, to, what)
	if n.duplicate > 0 && w.random.IntN(100) < n.duplicate {
		w.post(n.latency()+w.nemesis.span(0, 12*time.Second), from, to, what)
	}
}

// astray returns an endpoint of the same kind: a wrong one, perhaps.
func (n *network) astray(to int32) int32 {
	w := n.world
	managers, owners := int32(len(w.managers)), int32(len(w.owners))
	switch {
	case to < managers:
		return w.random.Int32N(managers)
	case to < managers+owners:
		return managers + w.random.Int32N(owners)
	}
	return managers + owners + w.random.Int32N(int32(len(w.lookups)))
}

func (n *network) latency() time.Duration {
	d := 100*time.Microsecond + n.world.below(calmDelay-100*time.Microsecond)
	if n.delay > 0 {
		d += n.world.below(n.delay)
	}
	return d
}
