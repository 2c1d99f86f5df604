package engine

import "time"

// A Network delivers messages between the endpoints of a world. It has no connections and no order: the
// machines do not rely on further guarantees of a real transport.
type Network struct {
	world *World
	n     int32
	cuts  []int // of each link: from*n + to

	Least, Most time.Duration // latency of a message that is not delayed
	Loss        int           // percent
	Duplicate   int           // percent
	Delay       time.Duration // maximum additional latency of a delayed message
	Delayed     int           // percent of messages that are delayed; 0 for all

	// Repeat returns the additional latency of a duplicate.
	Repeat func() time.Duration
	// Route, if set, returns the endpoint that receives a message to an endpoint.
	Route func(to int32) int32
	// AlwaysDraw draws a random number for each kind of fault, also while its percentage is 0. It is constant
	// for a simulator, because its traces depend on it.
	AlwaysDraw bool
}

// Connect sets the number of endpoints.
func (n *Network) Connect(endpoints int) {
	n.n = int32(endpoints)
	n.cuts = make([]int, endpoints*endpoints)
}

// Cuts returns the number of active faults that cut a link, which the caller may change.
func (n *Network) Cuts(from, to int32) *int { return &n.cuts[from*n.n+to] }

// Heal ends all faults of the network.
func (n *Network) Heal() {
	clear(n.cuts)
	n.Loss, n.Duplicate, n.Delay, n.Delayed = 0, 0, 0, 0
}

// Send sends a message, which may be lost or duplicated.
func (n *Network) Send(from, to int32, what any) {
	if n.lost(from, to) {
		return
	}
	if n.Route != nil {
		to = n.Route(to)
	}
	n.post(n.Latency(), from, to, what)
	if n.percent(n.Duplicate) {
		n.post(n.Latency()+n.Repeat(), from, to, what)
	}
}

// SendOnce sends a message, which may be lost but is not duplicated.
func (n *Network) SendOnce(from, to int32, what any) {
	if !n.lost(from, to) {
		n.post(n.Latency(), from, to, what)
	}
}

func (n *Network) lost(from, to int32) bool {
	return *n.Cuts(from, to) > 0 || n.percent(n.Loss)
}

func (n *Network) percent(p int) bool {
	return (p > 0 || n.AlwaysDraw) && n.world.Random.IntN(100) < p
}

func (n *Network) post(d time.Duration, from, to int32, what any) {
	n.world.Push(Event{At: n.world.Now + int64(d), From: from, To: to, What: what})
}

// Latency draws the latency of a message that is sent now.
func (n *Network) Latency() time.Duration {
	d := n.Least + n.world.Below(n.Most-n.Least)
	if n.Delay > 0 && (n.Delayed == 0 || n.world.Random.IntN(100) < n.Delayed) {
		d += n.world.Below(n.Delay)
	}
	return d
}
