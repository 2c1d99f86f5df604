package leaseholdtest

import (
	"context"
	"slices"
	"time"
)

// Kill ends the node as kill -9 ends a process: its connections are reset, nobody hears
// a word, and what it held is gone. A node of the same name may come after it, and
// gets the name's leases when the old ones have run out.
func (n *Node) Kill() {
	n.cluster.mu.Lock()
	n.killed = true
	n.cluster.mu.Unlock()
	n.host.Kill()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	n.clean(ended)
}

// Pause stops the node, as a long garbage collection or kill -STOP does: it neither
// hears nor says anything until Resume. Its goroutines run on if they do neither.
func (n *Node) Pause() { n.host.Freeze() }

// Resume lets a paused node go on.
func (n *Node) Resume() { n.host.Thaw() }

// Cut separates the node from others, named by their hosts: "b", "m1". Without names
// it is separated from all managers, and keeps its connections to callers. Nothing is
// told to either side, and what was under way arrives after Heal. A name that no host
// has fails the test: a cut that separates nobody proves nothing.
func (n *Node) Cut(names ...string) {
	n.cluster.t.Helper()
	if len(names) == 0 {
		for i := range n.cluster.cfg.Managers {
			names = append(names, managerName(i))
		}
	}
	hosts := n.cluster.hosts()
	for _, name := range names {
		if !slices.Contains(hosts, name) {
			n.cluster.t.Fatalf("%s cannot be cut off from %q: there are only %v", n.Name(), name, hosts)
		}
	}
	for _, name := range names {
		n.cluster.net.Cut(n.Name(), name)
	}
}

// Heal ends all cuts of the node.
func (n *Node) Heal() { n.cluster.net.HealAll(n.Name()) }

// Expire lets the leases of the node run out, because it does not reach the managers for
// as long as that takes. When it returns, the managers have given its keys to other nodes,
// and it reaches them again. There must be another: leases that no other owner could have
// are suspended and do not end, which [Node.Cut] and [Node.Heal] are for.
func (n *Node) Expire() {
	n.cluster.t.Helper()
	n.Cut()
	defer n.Heal()
	for deadline := time.Now().Add(n.cluster.patience()); n.cluster.leasesOf(n.Name()) > 0; n.cluster.Advance(n.cluster.cfg.Lease / 100) {
		if time.Now().After(deadline) {
			n.cluster.t.Fatalf("the leases of %s do not run out: want another node with an owner that can have its keys", n.Name())
		}
	}
}
