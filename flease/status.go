package flease

import (
	"cmp"
	"slices"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
)

// A Status is the status of a node at one moment.
type Status struct {
	Self  ID     `json:"member"`
	Addr  string `json:"addr"`  // local
	Ready bool   `json:"ready"` // the node takes part
	// Err is the result of [Node.Err].
	Err error `json:"-"`

	Members []MemberStatus `json:"members"` // the others
	// Fingerprint is a hash of the settings that all members must share.
	Fingerprint uint64           `json:"fingerprint,string"`
	Strangers   []StrangerStatus `json:"strangers,omitempty"` // in the order of IDs
	Clock       ClockStatus      `json:"clock"`

	Held      int     `json:"held"`      // leases
	Waiting   int     `json:"waiting"`   // resources that calls of this process wait for
	Resources int     `json:"resources"` // in memory, as a member of their groups
	Counts    Counts  `json:"counts"`
	Traffic   Traffic `json:"traffic"`
}

// A MemberStatus is a node's view of another member.
type MemberStatus struct {
	Member
	Heard time.Time `json:"heard,omitzero"`  // when its last packet arrived; zero if none did
	Waits bool      `json:"waits,omitempty"` // it did not take part then: it had just started, or receives packets of strangers
	// ClockOff is a lower bound on how far its clock is ahead of this node's; negative
	// if it is behind. While it is not 0 the member's messages are dropped.
	ClockOff time.Duration `json:"clockOffNanos,omitempty"`
	// Twins is when two processes were last found to run as this member; zero if
	// never.
	Twins time.Time `json:"twins,omitzero"`
}

// A ClockStatus is the status of a node's own wall clock.
type ClockStatus struct {
	Wrong   bool          `json:"wrong"`               // it differs from the clocks of most other members
	Steps   uint64        `json:"steps"`               // detected settings of the clock
	Stepped time.Time     `json:"stepped,omitzero"`    // the time of the last one, by the clock itself
	By      time.Duration `json:"stepNanos,omitempty"` // the size of the last one
}

// Counts are event counters since the start.
type Counts struct {
	Acquired uint64 `json:"acquired"` // leases
	Lost     uint64 `json:"lost"`     // leases that ended without a release
	Void     uint64 `json:"void"`     // packets for or from an earlier process of a member
	BadTime  uint64 `json:"badTime"`  // messages of members with wrong clocks
	Foreign  uint64 `json:"foreign"`  // messages about resources of other groups
	Full     uint64 `json:"full"`     // resources rejected because of MaxResources
}

// Traffic counts packets since the start.
type Traffic struct {
	PacketsIn   uint64 `json:"packetsIn"`
	PacketsOut  uint64 `json:"packetsOut"`
	MessagesIn  uint64 `json:"messagesIn"`
	MessagesOut uint64 `json:"messagesOut"`
	BytesIn     uint64 `json:"bytesIn"`
	BytesOut    uint64 `json:"bytesOut"`
	Refused     uint64 `json:"refused"` // malformed, foreign, not authentic or replayed
	Strange     uint64 `json:"strange"` // of strangers
	Lost        uint64 `json:"lost"`    // dropped because a queue was full, or sending failed
}

type member struct {
	Member
	heard machine.Wall // 0 if never
	waits bool         // it did not take part then
	off   time.Duration
	twins machine.Wall // 0 if never
}

// A roster is a node's view of the other processes.
type roster struct {
	members   []*member // in the order of IDs
	strangers map[ID]*stranger
	greeted   mono.Instant // of the last greeting before this node took part
}

func newRoster(c *Config) roster {
	r := roster{strangers: make(map[ID]*stranger)}
	for _, m := range c.Members {
		if m.ID != c.Self {
			r.members = append(r.members, &member{Member: m})
		}
	}
	slices.SortFunc(r.members, func(a, b *member) int { return cmp.Compare(a.ID, b.ID) })
	return r
}

func (r *roster) heard(now machine.Time, e *machine.Envelope) {
	if m := r.member(ID(e.From)); m != nil {
		m.heard, m.waits = now.Wall, e.Waiting
		delete(r.strangers, m.ID) // its configuration was corrected
	}
}

// member returns another member, or nil.
func (r *roster) member(id ID) *member {
	place, found := slices.BinarySearchFunc(r.members, id, func(m *member, id ID) int { return cmp.Compare(m.ID, id) })
	if !found {
		return nil
	}
	return r.members[place]
}

// Status returns the status of the node. It takes the node's lock, for a time
// proportional to the resources that this process holds or waits for.
func (n *Node) Status() Status {
	s := Status{Self: n.cfg.Self, Addr: n.Addr(), Err: n.Err(), Traffic: traffic(n.net.Counters()), Members: []MemberStatus{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	void := n.machine.Counters()
	s.Ready, s.Resources, s.Clock, s.Counts = n.machine.Ready() && !n.life.closing, n.machine.Size(), n.clock, n.counts
	s.Counts.Void, s.Counts.BadTime, s.Counts.Foreign, s.Counts.Full = void.Void, void.BadTime, void.Foreign, void.Full
	for _, m := range n.roster.members {
		s.Members = append(s.Members, MemberStatus{
			Member: m.Member, Heard: timeOf(m.heard), Waits: m.waits, ClockOff: m.off, Twins: timeOf(m.twins),
		})
	}
	s.Fingerprint = n.cfg.fingerprint()
	for _, stranger := range n.roster.sortedStrangers() {
		s.Strangers = append(s.Strangers, stranger.StrangerStatus)
	}
	for _, e := range n.requests.entries {
		if e.lease != nil {
			s.Held++
		} else if len(e.claims) > 0 {
			s.Waiting++
		}
	}
	return s
}

func traffic(c fleasenet.Counters) Traffic {
	return Traffic{
		PacketsIn: c.PacketsIn, PacketsOut: c.PacketsOut,
		MessagesIn: c.MessagesIn, MessagesOut: c.MessagesOut,
		BytesIn: c.BytesIn, BytesOut: c.BytesOut,
		Refused: c.Malformed + c.Oversized + c.Foreign + c.Unauthentic + c.Replayed + c.Refused,
		Strange: c.Strange,
		Lost:    c.Full + c.Failed,
	}
}

// Leases returns the leases of this node, in the order of their resources.
func (n *Node) Leases() []*Lease {
	var leases []*Lease
	n.mu.Lock()
	for _, e := range n.requests.entries {
		if e.lease != nil {
			leases = append(leases, e.lease)
		}
	}
	n.mu.Unlock()
	slices.SortFunc(leases, func(a, b *Lease) int { return cmp.Compare(a.entry.name, b.entry.name) })
	return leases
}

// A ResourceStatus is a node's view of one resource.
type ResourceStatus struct {
	Resource string `json:"name"`
	Holder   Holder `json:"holder"`  // a hint, as with [Node.Watch]
	Waiting  int    `json:"waiting"` // calls of this process that wait for it
	// Why is the reason why the first of them still waits; empty if none waits.
	Why string `json:"why,omitempty"`
}

// RaiseFence makes this member grant only fences above a given one for a resource, and
// propose them to the members whose requests it receives. Use it if an external system
// has a higher fence than all members, because they were restarted at the same time and
// wall clocks were set back. Fences are then ahead of the clock; acquisitions do not wait for the clock. The
// effect lasts until the process ends. It takes the node's lock briefly.
func (n *Node) RaiseFence(resource string, above uint64) (err error) {
	n.step(func(now machine.Time) { err = n.machine.Raise(now, resource, above) })
	return err
}

// Resource returns the node's view of a resource. It sends no message, and takes the
// node's lock briefly.
func (n *Node) Resource(name string) ResourceStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, _ := n.time.read()
	s := ResourceStatus{Resource: name}
	s.Holder, _ = n.holderAt(now, name)
	if e := n.entry(name); e != nil && len(e.claims) > 0 {
		s.Waiting = len(e.claims)
		s.Why = n.obstacle(now, name)
	}
	return s
}
