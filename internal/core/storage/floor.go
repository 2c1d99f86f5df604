package storage

import "github.com/leasehold-dev/leasehold"

// Clock is the number that a time on the wall clock stands for, in seconds since 1970; 0 if
// the time cannot be right. Fewer than a million numbers are given out in a second: so none
// that was given out before is above it, as long as clocks are not set back and numbers
// jump no further than to where the clock is. None takes more than 53 bits, which is what
// some languages have for numbers, before the year 2242.
func Clock(wall int64) uint64 {
	const perSecond, farthest = 1 << 20, 1 << 33
	if wall <= 0 || wall >= farthest {
		return 0
	}
	return uint64(wall) * perSecond
}

// Above is where numbers go on if those after n may have been forgotten, because a store was
// restored from an old backup: at what the clock stands for. If n is a little above that, so
// may others be, but not by more than are given out in a second or two. If the clock is no
// help at all, it is far above n. Then each term goes on elsewhere, a million numbers from the
// one before: if the same backup is restored once more, nothing in it tells where the first
// time went on, but owners may know the term.
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

// near is how far above the clock a number may be so that others are near it as well.
const near = 1 << 30

// far is how far above the clock a number may be that is not made up: some eight years. A
// manager whose clock was ahead may have given it out.
const far = 1 << 48

// Plausible reports whether a number can have been given out that is above all that is known, which
// go up to known.
func Plausible(had, known, clock uint64) bool { return had < max(known, clock)+far }

// Forgettable is how many numbers may have been forgotten if nothing but a term is known: more
// than are given out in the life of a namespace.
func Forgettable(t leasehold.Term) uint64 {
	const many, perTerm, terms = 1 << 40, 1 << 20, 1 << 20
	return many + uint64(t%terms)*perTerm
}
