package flease

import (
	"cmp"
	"slices"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
)

// A Status is how a node does, at one moment.
type Status struct {
	Self  ID     `json:"member"`
	Addr  string `json:"addr"`  // where it listens
	Ready bool   `json:"ready"` // whether it takes part
	// Err is why it takes part no more: what [Node.Err] returns.
	Err error `json:"-"`

	Members []MemberStatus `json:"members"` // the others
	// Fingerprint stands for what all members must have been told alike.
	Fingerprint uint64           `json:"fingerprint,string"`
	Strangers   []StrangerStatus `json:"strangers,omitempty"` // who was told otherwise, in the order of IDs
	Clock       ClockStatus      `json:"clock"`

	Held      int     `json:"held"`      // leases
	Waiting   int     `json:"waiting"`   // resources that calls of this process wait for
	Resources int     `json:"resources"` // that it knows of, as a member of their groups
	Counts    Counts  `json:"counts"`
	Traffic   Traffic `json:"traffic"`
}

// A MemberStatus is what a node knows about another member.
type MemberStatus struct {
	Member
	Heard time.Time `json:"heard,omitzero"`  // when something came from it last; zero if never
	Waits bool      `json:"waits,omitempty"` // it did not take part then: it had just started, or hears strangers
	// ClockOff is by how much its clock was found to be ahead of ours, or behind
	// if it is negative, at least. While it is not 0 the member is ignored.
	ClockOff time.Duration `json:"clockOffNanos,omitempty"`
	// Twins is when two processes were last found to run as this member; zero if
	// never.
	Twins time.Time `json:"twins,omitzero"`
}

// A ClockStatus is what a node knows about its own wall clock.
type ClockStatus struct {
	Wrong   bool          `json:"wrong"`               // most other members find it wrong
	Steps   uint64        `json:"steps"`               // how often it was seen to have been set
	Stepped time.Time     `json:"stepped,omitzero"`    // when, the last time, by the clock itself
	By      time.Duration `json:"stepNanos,omitempty"` // and by how much
}

// Counts count what has happened since the start.
type Counts struct {
	Acquired uint64 `json:"acquired"` // leases
	Lost     uint64 `json:"lost"`     // of them, that were not released
	Void     uint64 `json:"void"`     // packets meant for an earlier start of a member, or from one
	BadTime  uint64 `json:"badTime"`  // messages of members whose clocks are off
	Foreign  uint64 `json:"foreign"`  // messages about resources that are not ours to decide
	Full     uint64 `json:"full"`     // resources for which there was no room
}

// Traffic counts packets since the start.
type Traffic struct {
	PacketsIn   uint64 `json:"packetsIn"`
	PacketsOut  uint64 `json:"packetsOut"`
	MessagesIn  uint64 `json:"messagesIn"`
	MessagesOut uint64 `json:"messagesOut"`
	BytesIn     uint64 `json:"bytesIn"`
	BytesOut    uint64 `json:"bytesOut"`
	Refused     uint64 `json:"refused"` // that were malformed, foreign, not authentic or replayed
	Strange     uint64 `json:"strange"` // of members that were told otherwise
	Lost        uint64 `json:"lost"`    // for which there was no room here, or no way out
}

type member struct {
	Member
	heard machine.Wall // 0 if never
	waits bool         // it did not take part then
	off   time.Duration
	twins machine.Wall // 0 if never
}

// A roster is what a node knows about other processes.
type roster struct {
	members   []*member // in the order of IDs
	strangers map[ID]*stranger
	greeted   mono.Instant // when the others were greeted last, before this node took part
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
		delete(r.strangers, m.ID) // it was told anew
	}
}

// member returns a member, nil if it is none or this process.
func (r *roster) member(id ID) *member {
	place, found := slices.BinarySearchFunc(r.members, id, func(m *member, id ID) int { return cmp.Compare(m.ID, id) })
	if !found {
		return nil
	}
	return r.members[place]
}

// Status returns how the node does. It takes the lock for as long as it takes to
// count what is held.
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

// Leases returns the leases that this node has, in the order of their resources.
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
