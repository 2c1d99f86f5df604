package flease

import (
	"math/bits"
	"slices"
)

// A round is one attempt to get promises and then accepts from a majority. Members are bits, by their places
// in the group. Accepts are among promises; a member that has promised may still reject the write.
type round struct {
	ballot   Ballot
	promises uint64     // by whom: what they said was considered
	accepts  uint64     // by whom
	rejects  uint64     // by whom: they will not promise or accept
	withheld bool       // one of them says that another process has the lease
	refs     []Ref      // where those who promised keep the resource
	seen     []sighting // in the promises: of each owner what it wrote last
	fence    uint64     // the highest that they know of
	sends    int        // how often the present messages were sent
}

// consider keeps what an acceptor says was written: of each owner the value that
// it wrote last, which counts for all that it wrote before.
//
// It is not enough to keep what was written in the latest round. An acceptor that
// has forgotten its promise of that round may have accepted a lease since, in an
// earlier one; and what was written in the latest may be long over.
//
// It returns what it keeps for the owner; nil if nothing is written. The bit is the
// acceptor's.
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

// agreed is how many know of the same tenure, at most.
func (r *round) agreed() int {
	n := 0
	for i := range r.seen {
		n = max(n, bits.OnesCount64(r.seen[i].by))
	}
	return n
}
