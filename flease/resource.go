package flease

import machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"

// A ResourceStatus is what a node knows about one resource.
type ResourceStatus struct {
	Resource string `json:"name"`
	Holder   Holder `json:"holder"`  // who seems to have it: a hint, as with [Node.Watch]
	Waiting  int    `json:"waiting"` // calls of this process that wait for it
	// Why says why the first of them has not got it yet; empty if none waits.
	Why string `json:"why,omitempty"`
}

// RaiseFence makes this member give a resource fences above a given one only, and others if they ask it in time. It is for
// applications that find a fence somewhere which all members have forgotten: they were restarted at a time, and wall clocks were set
// back. Fences then run ahead of the clock, and nobody waits for it. It takes the lock for a moment, and
// lasts until the process ends.
func (n *Node) RaiseFence(resource string, above uint64) (err error) {
	n.step(func(now machine.Time) { err = n.machine.Raise(now, resource, above) })
	return err
}

// Resource returns what the node knows about a resource. It asks nobody, and takes
// the lock for a moment.
func (n *Node) Resource(name string) ResourceStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, _ := n.time.read()
	s := ResourceStatus{Resource: name}
	s.Holder, _ = n.seen(now, name)
	if e := n.entry(name); e != nil && len(e.claims) > 0 {
		s.Waiting = len(e.claims)
		s.Why = n.obstacle(now, name)
	}
	return s
}
