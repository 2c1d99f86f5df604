package flease

import (
	"log/slog"
	"strconv"

	"github.com/leasehold-dev/leasehold"
)

// giveWay ends our part: another process runs as this member, and stays.
func (n *Node) giveWay() {
	n.note(0, slog.LevelError, "another process runs as this member: this one takes part no more, and all its leases are dropped. Stop one of the two",
		"from", n.sender())
	n.life.end(leasehold.Errorf("flease", leasehold.ErrNameTaken, "member "+n.cfg.self().name(),
		"another process runs as this member, as %s says: stop one of the two, and start this one anew", n.sender()))
}

// sawTwins notes that two processes run as a member.
func (n *Node) sawTwins(id ID) {
	now, _ := n.time.read()
	if m := n.roster.member(id); m != nil {
		m.twins = now.Wall
	}
	n.note(id, slog.LevelError, "two processes run as the same member, and one of them is told to give way: stop it, and give each process an ID of its own",
		"of", n.nameOf(id), "from", n.sender())
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
