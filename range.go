package leasehold

import "strings"

// A Range is the set of keys k with Start <= k < Limit. A Limit of 0 stands
// for the end of the key space, so that the zero Range is [All], the whole of
// it. Ranges never wrap: an arc that crosses the end is two ranges.
//
// A range is valid if it holds at least one key: Limit == 0 or Start < Limit.
// One that is not valid holds no key: it contains nothing, overlaps nothing and
// has size 0, so that a malformed range does no harm before it is noticed.
type Range struct {
	Start Key // the first key inside
	Limit Key // the first key outside; 0 means the end of the key space
}

// All is the whole key space. It is a variable only because Go has no constant
// structs: nobody assigns to it.
var All = Range{}

// NewRange returns [start, limit), or an error if that holds no key.
func NewRange(start, limit Key) (Range, error) {
	r := Range{start, limit}
	if !r.Valid() {
		return Range{}, Errorf("new range", ErrInvalid, r.String(), emptyRange)
	}
	return r, nil
}

const emptyRange = "no key is in it: start must be below limit"

// Valid reports whether r holds at least one key.
func (r Range) Valid() bool { return r.Limit == 0 || r.Start < r.Limit }

// Last returns the greatest key in r, which must be valid.
func (r Range) Last() Key { return r.Limit - 1 }

// Contains reports whether k is in r.
func (r Range) Contains(k Key) bool { return k >= r.Start && k <= r.Last() }

// Covers reports whether o is valid and every key of o is in r. That nothing
// covers a range without keys keeps a malformed one from passing for one that
// is held.
func (r Range) Covers(o Range) bool {
	return o.Valid() && o.Start >= r.Start && o.Last() <= r.Last()
}

// Overlaps reports whether r and o share a key.
func (r Range) Overlaps(o Range) bool {
	return max(r.Start, o.Start) <= min(r.Last(), o.Last())
}

// Intersect returns the keys that r and o share, and whether there are any.
func (r Range) Intersect(o Range) (Range, bool) {
	if !r.Overlaps(o) {
		return Range{}, false
	}
	return Range{max(r.Start, o.Start), min(r.Last(), o.Last()) + 1}, true
}

// Size returns the number of keys in r. The whole key space has 2^64 keys,
// which does not fit: Size saturates at 2^64-1.
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

// String writes r as "start-limit" in hexadecimal, with "end" for the end of
// the key space: the form that [ParseRange] reads.
func (r Range) String() string {
	if r.Limit == 0 {
		return r.Start.String() + "-end"
	}
	return r.Start.String() + "-" + r.Limit.String()
}

// ParseRange reads what [Range.String] writes.
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
