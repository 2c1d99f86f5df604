package flease

import (
	"cmp"
	"time"
)

// A Process is a member of the system. Zero is nobody.
type Process uint32

// Wall is a time on a process's wall clock, in nanoseconds since 1970.
type Wall int64

// Add returns the time d later.
func (w Wall) Add(d time.Duration) Wall { return w + Wall(d) }

// Sub returns the time from o to w.
func (w Wall) Sub(o Wall) time.Duration { return time.Duration(w - o) }

// A Ballot numbers a round of the register of one resource. Ballots are ordered
// by interval of time, number within it, and process.
type Ballot struct {
	Interval uint64
	Round    uint32
	Process  Process
}

// Compare returns -1, 0 or 1.
func (b Ballot) Compare(o Ballot) int {
	if b.Interval != o.Interval {
		return cmp.Compare(b.Interval, o.Interval)
	}
	if b.Round != o.Round {
		return cmp.Compare(b.Round, o.Round)
	}
	return cmp.Compare(b.Process, o.Process)
}

// Less reports whether b comes before o.
func (b Ballot) Less(o Ballot) bool { return b.Compare(o) < 0 }

// A Value is what a register holds: who has the lease, and for how long. With no
// Owner it is empty.
type Value struct {
	Owner       Process
	Released    bool   // the owner has given it up
	Incarnation uint64 // of the owner
	Serial      uint64 // rises with each value that the owner writes
	Fence       uint64 // rises with each tenure
	Until       Wall   // the owner's clock when it ends
	// Left is for how long the owner may still believe in it, on its own clock,
	// when this is said. It counts no time that a message takes, so it is rather
	// too long.
	Left time.Duration
}

// same reports whether v and o were written as one by their owner.
func (v *Value) same(o *Value) bool {
	return v.Owner == o.Owner && v.Incarnation == o.Incarnation && v.Fence == o.Fence && v.Serial == o.Serial
}

// sameOwner reports whether v and o were written for one incarnation of one process.
func (v *Value) sameOwner(o *Value) bool {
	return v.Owner == o.Owner && v.Incarnation == o.Incarnation
}

// A Kind says what a message is for.
type Kind uint8

// The kinds of messages. Reads, writes and insistence go from proposers to
// acceptors, and the others are answers.
const (
	KindRead    Kind = iota + 1 // asks for the promise of a round, and for the value
	KindWrite                   // asks to store a value
	KindPromise                 // answers a read
	KindAccept                  // answers a write
	KindReject                  // answers either
	KindHeld                    // answers a read: someone has the lease, and nothing is promised
	KindInsist                  // is a read that is to be promised although someone may have the lease
)

// A Message is about one resource. Many travel together, in an [Envelope].
type Message struct {
	Kind Kind
	// To is where the addressee keeps the resource, as it has said; 0 in a read.
	To Ref
	// From is where the sender keeps it; 0 in what is not answered.
	From Ref
	// Name is of the resource. Only a read needs it: others may have lost it on
	// their way, and have it for those who want to see what is said.
	Name   string
	Ballot Ballot // of the round
	// Written is the ballot at which a value that is reported was written, and in
	// a rejection the ballot that must be exceeded.
	Written Ballot
	Value   Value  // in a promise, in a write, and of who has it; of an accept, only the Serial
	Fence   uint64 // in a promise, and with who has it: the highest that is known
}

// An Envelope is what all messages that travel together have in common.
type Envelope struct {
	From        Process
	Incarnation uint64 // of the sender: random, new with every start
	Waiting     bool   // the sender does not take part yet
	GiveWay     bool   // another process with the addressee's id is alive, and stays
	// To is the incarnation that the sender takes the addressee to be, 0 if it
	// has never heard it. A write that is meant for another is void.
	To   uint64
	Sent Wall // the sender's clock
	Echo Wall // the Sent of what reached the sender last from the addressee; 0 if none
}
