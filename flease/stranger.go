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

// fingerprint returns a hash of the settings that all members must share. It is in
// every packet.
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

// A StrangerStatus is a node's view of a process with the same key, and other members,
// times or label: see "Membership changes".
type StrangerStatus struct {
	ID          ID        `json:"id"`
	Fingerprint uint64    `json:"fingerprint,string"`
	Heard       time.Time `json:"heard"` // when its last packet arrived
	Waits       bool      `json:"waits"` // it did not take part then
}

type stranger struct {
	StrangerStatus
	at       mono.Instant // of its last packet
	answered mono.Instant // of the last reply to it
}

const maxStrangers = 1024

const otherGroupText = "a process with the same key has other members, lease, epsilon, drift or label: its messages are dropped, " +
	"and of the two groups only the first takes part. Stop the processes with the wrong configuration; " +
	"see \"Membership changes\" in the documentation of package flease"

// receiveStranger executes the step of a packet of a stranger.
func (n *Node) receiveStranger(e *machine.Envelope, fingerprint uint64, from *fleasenet.Source) {
	n.mu.Lock()
	now := n.now()
	n.source = from
	answer, wanted := n.machine.Strange(now, e)
	s := n.roster.strangers[ID(e.From)]
	if s == nil && len(n.roster.strangers) < maxStrangers {
		s = &stranger{StrangerStatus: StrangerStatus{ID: ID(e.From)}}
		n.roster.strangers[s.ID] = s
	}
	if s != nil {
		n.recordStranger(now, s, e, fingerprint)
		if wanted && (s.answered == 0 || now.Mono.Sub(s.answered) >= n.machine.GreetEvery()/2) {
			s.answered = now.Mono
			from.Reply(&answer)
		}
	}
	n.process(now)
	n.source = nil
	n.unlock(now)
}

// recordStranger records a packet of a stranger, and logs a new stranger.
func (n *Node) recordStranger(now machine.Time, s *stranger, e *machine.Envelope, fingerprint uint64) {
	if s.Fingerprint != fingerprint {
		s.Fingerprint = fingerprint
		n.note(s.ID, slog.LevelError, otherGroupText, "stranger", n.nameOf(s.ID),
			"one_of_ours", n.roster.member(s.ID) != nil || s.ID == n.cfg.Self, "from", n.source.Addr(),
			"theirs", hex(fingerprint), "ours", hex(n.cfg.fingerprint()),
			"takes_part", !e.Waiting, "we_take_part", n.machine.Ready())
	}
	s.at, s.Heard, s.Waits = now.Mono, timeOf(now.Wall), e.Waiting
}

func hex(fingerprint uint64) string { return fmt.Sprintf("%016x", fingerprint) }

// greet greets all members periodically until this node takes part, so that strangers
// among them reply. It returns the time until the next call.
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

// notReadyReason returns why this node does not take part. The lock is held.
func (n *Node) notReadyReason() string {
	now, _ := n.time.read()
	for _, s := range n.roster.sortedStrangers() {
		if now.Mono.Sub(s.at) <= 2*n.cfg.Lease {
			return fmt.Sprintf("this member does not take part while process %s does, which has other members, times or label", n.nameOf(s.ID))
		}
	}
	return "this member started too recently"
}

func (r *roster) sortedStrangers() []*stranger {
	return slices.SortedFunc(maps.Values(r.strangers), func(a, b *stranger) int { return cmp.Compare(a.ID, b.ID) })
}

// giveWay ends the part of this node, in favour of another process with the same ID.
func (n *Node) giveWay() {
	n.note(0, slog.LevelError, "another process runs as this member: this one has ceased to take part, and all its leases are dropped. Stop one of the two",
		"from", n.sender())
	n.life.end(leasehold.Errorf("flease", leasehold.ErrNameTaken, "member "+n.cfg.self().name(),
		"another process runs as this member, as reported by %s: stop one of the two, and restart this one", n.sender()))
}

func (n *Node) sawTwins(id ID) {
	now, _ := n.time.read()
	if m := n.roster.member(id); m != nil {
		m.twins = now.Wall
	}
	n.note(id, slog.LevelError, "two processes run as the same member, and one of them must give way: stop it, and give each process a unique ID",
		"of", n.nameOf(id), "from", n.sender())
}

// sender returns the source address of the current packet.
func (n *Node) sender() string {
	if n.source == nil {
		return "unknown"
	}
	return n.source.Addr()
}

func (n *Node) nameOf(id ID) string {
	if m := n.cfg.member(id); m != nil {
		return m.name()
	}
	return strconv.FormatUint(uint64(id), 10)
}
