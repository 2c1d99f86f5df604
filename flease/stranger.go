package flease

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
)

// fingerprint stands for what all members must have been told alike. It is in every
// packet.
func (c *Config) fingerprint() uint64 {
	var ids []ID
	for _, m := range c.Members {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	b := binary.LittleEndian.AppendUint64([]byte("leasehold flease group 1"), uint64(len(ids)))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Lease))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Epsilon))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.Drift))
	sum := sha256.Sum256(append(b, c.Label...))
	return binary.LittleEndian.Uint64(sum[:])
}

// A StrangerStatus is what a node knows about a process that has the same key, and
// was told of other members, times or label: see "How to change the members".
type StrangerStatus struct {
	ID          ID        `json:"id"`
	Fingerprint uint64    `json:"fingerprint,string"`
	Heard       time.Time `json:"heard"` // when something came from it last
	Waits       bool      `json:"waits"` // it did not take part then
}

type stranger struct {
	StrangerStatus
	at       mono.Instant // when it was heard last
	answered mono.Instant // when it was answered last
}

const maxStrangers = 1024

const otherGroupText = "a process with our key was told of other members, lease, epsilon, drift or label: it is not listened to, " +
	"and of the two groups only the one that was there first takes part. Stop those who were told wrong; " +
	"the documentation of package flease says how to change the members"

// strange takes the step of a packet from a stranger.
func (n *Node) strange(e *machine.Envelope, fingerprint uint64, from *fleasenet.Source) {
	n.mu.Lock()
	now := n.look()
	n.source = from
	answer, wanted := n.machine.Strange(now, e)
	s := n.roster.strangers[ID(e.From)]
	if s == nil && len(n.roster.strangers) < maxStrangers {
		s = &stranger{StrangerStatus: StrangerStatus{ID: ID(e.From)}}
		n.roster.strangers[s.ID] = s
	}
	if s != nil {
		n.know(now, s, e, fingerprint)
		if wanted && (s.answered == 0 || now.Mono.Sub(s.answered) >= n.machine.GreetEvery()/2) {
			s.answered = now.Mono
			from.Reply(&answer)
		}
	}
	n.settle(now)
	n.source = nil
	n.unlock(now)
}

// know notes what was heard of a stranger. That it is one is logged once.
func (n *Node) know(now machine.Time, s *stranger, e *machine.Envelope, fingerprint uint64) {
	if s.Fingerprint != fingerprint {
		s.Fingerprint = fingerprint
		n.note(s.ID, slog.LevelError, otherGroupText, "stranger", n.nameOf(s.ID),
			"one_of_ours", n.roster.member(s.ID) != nil || s.ID == n.cfg.Self, "from", n.source.Addr(),
			"theirs", printed(fingerprint), "ours", printed(n.cfg.fingerprint()),
			"takes_part", !e.Waiting, "we_take_part", n.machine.Ready())
	}
	s.at, s.Heard, s.Waits = now.Mono, timeOf(now.Wall), e.Waiting
}

func printed(fingerprint uint64) string { return fmt.Sprintf("%016x", fingerprint) }

// greet greets all members from time to time, until we take part, and returns when
// it is to be called again. A stranger among them answers.
func (n *Node) greet(now machine.Time) time.Duration {
	if n.machine.Ready() || n.machine.Retired() {
		return tick
	}
	every := n.machine.GreetEvery()
	if since := now.Mono.Sub(n.roster.greeted); n.roster.greeted != 0 && since < every {
		return every - since
	}
	n.roster.greeted = now.Mono
	n.machine.Greet()
	return every
}

// whyNotReady says why we do not take part. It is called with the lock held.
func (n *Node) whyNotReady() string {
	now, _ := n.time.read()
	for _, s := range n.roster.sortedStrangers() {
		if now.Mono.Sub(s.at) <= 2*n.cfg.Lease {
			return fmt.Sprintf("this member does not take part while process %s does, which was told of other members, times or label", n.nameOf(s.ID))
		}
	}
	return "this member has started too short a time ago"
}

func (r *roster) sortedStrangers() []*stranger {
	return slices.SortedFunc(maps.Values(r.strangers), func(a, b *stranger) int { return cmp.Compare(a.ID, b.ID) })
}

// giveWay ends our part: another process runs as this member, and stays.
func (n *Node) giveWay() {
	n.note(0, slog.LevelError, "another process runs as this member: this one takes part no more, and all its leases are dropped. Stop one of the two",
		"from", n.sender())
	n.life.end(leasehold.Errorf("flease", leasehold.ErrNameTaken, "member "+n.cfg.self().name(),
		"another process runs as this member, as %s says: stop one of the two, and start this one anew", n.sender()))
}

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

func (n *Node) nameOf(id ID) string {
	if m := n.cfg.member(id); m != nil {
		return m.name()
	}
	return strconv.FormatUint(uint64(id), 10)
}
