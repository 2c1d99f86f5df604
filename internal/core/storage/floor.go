package storage

import "github.com/leasehold-dev/leasehold"

// Clock converts a wall clock time, in seconds since 1970, to a number; 0 if the time is
// implausible. Fewer than a million numbers are assigned per second. So no assigned number is above
// it, as long as clocks are not set back and gaps end no higher than the clock. Before the year
// 2242 numbers have at most 53 bits, the precision of numbers in some languages.
func Clock(wall int64) uint64 {
	const perSecond, farthest = 1 << 20, 1 << 33
	if wall <= 0 || wall >= farthest {
		return 0
	}
	return uint64(wall) * perSecond
}

// Above returns the number at which a sequence continues if the numbers after n may have been lost
// because an old backup was restored: the number of the clock. If n is slightly above that, so may
// others be, but by no more than a second or two assigns. Without a usable clock, it is far above
// n, and different for each term, in steps of a million: if the same backup is restored again, it
// has no record of the first continuation, but owners may have its term.
func Above(n, clock uint64, t leasehold.Term) uint64 {
	const little = 1 << 21
	switch {
	case n < clock:
		return clock
	case clock != 0 && n-clock < near:
		return n + little
	}
	return n + Forgettable(t)
}

// NextFloor returns the floor of a record after last, in a store that may have lost its end, for a leader in term t
// with the wall clock wall. It is above the floors of all records that the leader has read: of last, and of those that
// the store has lost.
//
// A leader whose wall clock was ahead may have raised the floor. Later leaders continued above it, so until wall clocks
// have passed it, lost floors may be ahead of the clock, too: by as much as that of last was when last was written, and
// no more. So this one is as far ahead. Only owners know the numbers of a leader whose clock was ahead, if the store has
// lost its record (see [Plausible]).
func NextFloor(last Record, lost uint64, wall int64, t leasehold.Term) uint64 {
	const longest = 1 << 42 // 48 days; if the writer's clock was behind by more, numbers need not skip as much
	known, clock, written := max(last.Floor, lost), Clock(wall), Clock(last.At)
	switch ahead := max(last.Floor, written) - written; {
	case clock == 0:
		known = max(known, written)
	case written != 0 && ahead < longest:
		clock += ahead
	}
	return Above(known, clock, t)
}

// near is how far above the clock a number may be if the clock is usable.
const near = 1 << 30

// far is how far above the clock a plausible number may be: about eight years. A manager whose
// clock was ahead may have assigned it.
const far = 1 << 48

// Plausible reports whether the number had can have been assigned, given the highest known number
// and the clock.
func Plausible(had, known, clock uint64) bool { return had < max(known, clock)+far }

// FloorOfOthers returns the floor that a number requires in other namespaces than the one whose lost history has assigned
// it: a leader whose clock was ahead may have assigned numbers up to little more in all. It is 0 if the clock would be
// ahead by more than 36 hours: an owner of one namespace must not move the numbers of others by more.
func FloorOfOthers(n, clock uint64) uint64 {
	const ahead = 36 * 3600 << 20
	if clock == 0 || n >= clock+ahead {
		return 0
	}
	return n + near
}

// Forgettable is the number of assigned numbers that may be lost if only a term is known: more than
// are assigned in the life of a namespace.
func Forgettable(t leasehold.Term) uint64 {
	const many, perTerm, terms = 1 << 40, 1 << 20, 1 << 20
	return many + uint64(t%terms)*perTerm
}
