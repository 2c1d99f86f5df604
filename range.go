package leasehold

import "strings"

// A Range is the set of keys k with Start <= k < Limit. A Limit of 0 is the end of the key
// space, so the zero Range is [All]. Ranges do not wrap: an arc that crosses the end of the
// key space is two ranges.
//
// A range is valid if it contains at least one key: Limit == 0 or Start < Limit.
// An invalid range contains no key, overlaps no range and
// has size 0, so it is harmless until validation rejects it.
type Range struct {
	Start Key // the first key of the range
	Limit Key // the first key after the range; 0 is the end of the key space
}

// All is the whole key space. It must not be assigned to; it is a variable because Go has
// no constant structs.
var All = Range{}

// NewRange returns [start, limit), or an error if that range is empty.
func NewRange(start, limit Key) (Range, error) {
	r := Range{start, limit}
	if !r.Valid() {
		return Range{}, Errorf("new range", ErrInvalid, r.String(), emptyRange)
	}
	return r, nil
}

const emptyRange = "the range is empty: start must be below limit"

// Valid reports whether r contains at least one key.
func (r Range) Valid() bool { return r.Limit == 0 || r.Start < r.Limit }

// Last returns the greatest key of r, which must be valid.
func (r Range) Last() Key { return r.Limit - 1 }

// Contains reports whether k is in r.
func (r Range) Contains(k Key) bool { return k >= r.Start && k <= r.Last() }

// Covers reports whether o is valid and every key of o is in r. No range covers an
// empty range, so a malformed range never counts as held.
func (r Range) Covers(o Range) bool {
	return o.Valid() && o.Start >= r.Start && o.Last() <= r.Last()
}

// Overlaps reports whether r and o share a key.
func (r Range) Overlaps(o Range) bool {
	return max(r.Start, o.Start) <= min(r.Last(), o.Last())
}

// Intersect returns the keys that r and o share. It reports false if they share none.
func (r Range) Intersect(o Range) (Range, bool) {
	if !r.Overlaps(o) {
		return Range{}, false
	}
	return Range{max(r.Start, o.Start), min(r.Last(), o.Last()) + 1}, true
}

// Size returns the number of keys of r. The whole key space has 2^64 keys, which
// overflows: Size returns 2^64-1.
func (r Range) Size() uint64 {
	if !r.Valid() {
		return 0
	}
	n := uint64(r.Last()-r.Start) + 1
	if n == 0 {
		return ^uint64(0)
	}
	return n
}

// String formats r as "start-limit" in hexadecimal, with "end" for the end of
// the key space: the format of [ParseRange].
func (r Range) String() string {
	if r.Limit == 0 {
		return r.Start.String() + "-end"
	}
	return r.Start.String() + "-" + r.Limit.String()
}

// ParseRange parses the format of [Range.String].
func ParseRange(s string) (Range, error) {
	const op = "parse range"
	from, to, found := strings.Cut(s, "-")
	if !found {
		return Range{}, Errorf(op, ErrInvalid, clip(s), "want start-limit, such as 4000000000000000-end")
	}
	start, err := ParseKey(from)
	if err != nil {
		return Range{}, &Error{Op: op, Kind: ErrInvalid, Subject: clip(s), Err: err}
	}
	if to == "end" {
		return Range{Start: start}, nil
	}
	limit, err := ParseKey(to)
	if err != nil {
		return Range{}, &Error{Op: op, Kind: ErrInvalid, Subject: clip(s), Err: err}
	}
	if limit == 0 {
		return Range{}, Errorf(op, ErrInvalid, s, `the end of the key space is written "end", not as 0`)
	}
	r := Range{start, limit}
	if !r.Valid() {
		return Range{}, Errorf(op, ErrInvalid, s, emptyRange)
	}
	return r, nil
}
