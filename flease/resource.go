package flease

import "errors"

// A ResourceStatus is what a node knows about one resource.
type ResourceStatus struct {
	Resource string
	Holder   Holder // who seems to have it: a hint, as with [Node.Watch]
	Waiting  int    // calls of this process that wait for it
	// Why says why the first of them has not got it yet; nil if none waits.
	Why error
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
		s.Why = errors.New(n.obstacle(now, name))
	}
	return s
}
