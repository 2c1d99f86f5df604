package flease

import (
	"strconv"

	"github.com/leasehold-dev/leasehold"
)

// giveWay ends our part: another process runs as this member, and stays.
func (n *Node) giveWay() {
	n.gaveWay = leasehold.Errorf("flease", leasehold.NameTaken, "member "+n.cfg.self().name(),
		"another process runs as this member, as %s says: stop one of the two, and start this one anew", n.sender())
	n.after.note(remark{subject: subject{what: ousted}, args: []any{"from", n.sender()}})
	n.finish()
}

// finish lets those know who wait for it that the node takes part no more. It is
// called with the lock held.
func (n *Node) finish() {
	select {
	case <-n.done:
	default:
		close(n.done)
	}
}

// sawTwins notes that two processes run as a member.
func (n *Node) sawTwins(id ID) {
	now, _ := n.time.read()
	if m := n.member(id); m != nil {
		m.twins = now.Wall
	}
	n.noteOf(equalIDs, id, remark{args: []any{"from", n.sender()}})
}

// sender is where the packet came from that is being handled.
func (n *Node) sender() string {
	if n.source == nil {
		return "nobody"
	}
	return n.source.Addr()
}

// nameOf is what the log calls a process.
func (n *Node) nameOf(id ID) string {
	for i := range n.cfg.Members {
		if m := &n.cfg.Members[i]; m.ID == id {
			return m.name()
		}
	}
	return strconv.FormatUint(uint64(id), 10)
}
