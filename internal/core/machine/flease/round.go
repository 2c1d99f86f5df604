package flease

import (
	"math/bits"
	"slices"
)

// A round is one attempt to get promises and then accepts from a majority. Members are bits, by
// their index in the group. Accepts are a subset of promises; a member that has promised may still
// reject the write.
type round struct {
	ballot   Ballot
	promises uint64     // members whose promise was considered
	accepts  uint64     // members that have accepted
	rejects  uint64     // members that will not promise or accept
	withheld bool       // one of them reports that another process has the lease
	refs     []Ref      // the promising members' refs of the resource
	seen     []sighting // values in the promises: the last one of each owner
	fence    uint64     // highest reported fence
	sends    int        // transmissions of the present messages
}

// consider records the value that an acceptor reports: for each owner its last value, which
// supersedes its earlier ones.
//
// It is not sufficient to keep the value of the latest round. An acceptor that has lost its promise
// of that round may have accepted a lease since, in an earlier round; and the value of the latest
// round may have expired long ago.
//
// It returns the recorded value of the owner; nil if there is none. bit is the acceptor's.
func (r *round) consider(msg *Message, bit uint64) *sighting {
	r.fence = max(r.fence, msg.Fence, msg.Value.Fence)
	v := &msg.Value
	if v.Owner == 0 {
		return nil
	}
	i := slices.IndexFunc(r.seen, func(s sighting) bool { return s.sameOwner(v) })
	if i < 0 {
		r.seen = append(r.seen, sighting{*v, msg.Written, bit, v.Until})
		return &r.seen[len(r.seen)-1]
	}
	s := &r.seen[i]
	tenure := s.Fence == v.Fence && !s.Released && !v.Released
	switch {
	case tenure:
		s.by, s.until = s.by|bit, min(s.until, v.Until)
	case v.Serial > s.Serial:
		s.by, s.until = bit, v.Until
	}
	switch {
	case v.Serial > s.Serial:
		s.Value, s.at = *v, msg.Written
	case v.Serial == s.Serial:
		s.Left, s.at = min(s.Left, v.Left), later(s.at, msg.Written)
	}
	return s
}

// agreed returns the largest number of members that report the same tenure.
func (r *round) agreed() int {
	n := 0
	for i := range r.seen {
		n = max(n, bits.OnesCount64(r.seen[i].by))
	}
	return n
}
