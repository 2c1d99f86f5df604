package policylab

import (
	"math/bits"

	"github.com/leasehold-dev/leasehold"
)

// A span gives the keys from start on to an owner, up to the next span or the
// end of the key space.
type span struct {
	start leasehold.Key
	owner int // index of an owner; nobody
}

const nobody = -1

// A holding is a span, since the period when its owner got it. Neighbours may
// have the same owner: then the one has come later than the other.
type holding struct {
	span
	since int
	cells int // index of the first of its cells; they end where the next's begin
}

// settledAfter is for how many periods a range must be held until it may join a
// neighbour of its owner: by then, measurements are smoothed in the same way.
const settledAfter = 2

// reassign returns who holds what after from is replaced by to in a period. It
// tells moved of each stretch of keys that changes its owner, from left to
// right.
func reassign(from []holding, to []span, period int, moved func(r leasehold.Range, from, to int)) []holding {
	var next []holding
	at := leasehold.Key(0)
	for i, j := 0, 0; ; {
		h := holding{span{at, to[j].owner}, period, 0}
		endFrom, endTo := leasehold.Key(0), leasehold.Key(0)
		if i+1 < len(from) {
			endFrom = from[i+1].start
		}
		if j+1 < len(to) {
			endTo = to[j+1].start
		}
		end := min(endFrom-1, endTo-1) + 1 // 0, the end, is after all others
		if was := from[i].owner; was == h.owner {
			h.since = from[i].since
		} else {
			moved(leasehold.Range{Start: at, Limit: end}, was, h.owner)
		}
		next = appendHolding(next, h, period)
		if end == 0 {
			return next
		}
		at = end
		if end == endFrom {
			i++
		}
		if end == endTo {
			j++
		}
	}
}

func appendHolding(to []holding, h holding, period int) []holding {
	if n := len(to); n > 0 && to[n-1].owner == h.owner {
		left := &to[n-1]
		youngest := max(left.since, h.since)
		if left.since == h.since || period-youngest >= settledAfter {
			left.since = youngest
			return to
		}
	}
	return append(to, h)
}

// A cell is what an owner counts together, from start up to the next cell.
type cell struct {
	start leasehold.Key
	rate  float64 // the owner's estimate, in requests per period
}

// cut divides holdings into cells as the owner library does: all ranges of an
// owner into the same number of equal parts, a power of two, so that an owner
// has at most perOwner of them, unless it has more ranges than that.
func cut(holdings []holding, owners, perOwner int) []cell {
	counts := make([]int, owners)
	for _, h := range holdings {
		if h.owner != nobody {
			counts[h.owner]++
		}
	}
	var cells []cell
	for i := range holdings {
		h := &holdings[i]
		h.cells = len(cells)
		parts := 1
		if h.owner != nobody {
			parts = max(1, perOwner/counts[h.owner])
		}
		limit := leasehold.Key(0)
		if i+1 < len(holdings) {
			limit = holdings[i+1].start
		}
		cells = appendParts(cells, leasehold.Range{Start: h.start, Limit: limit}, bits.Len(uint(parts))-1)
	}
	return cells
}

// appendParts cuts a range into 2^shift equal parts, or fewer if it has fewer
// keys.
func appendParts(cells []cell, r leasehold.Range, shift int) []cell {
	shift = min(shift, bits.Len64(r.Size())-1)
	for i := range uint64(1) << shift {
		// i times the size, which is 1 more than fits where r is everything.
		high, low := bits.Mul64(uint64(r.Last()-r.Start), i)
		low, carry := bits.Add64(low, i, 0)
		high += carry
		cells = append(cells, cell{start: r.Start + leasehold.Key(high<<(64-shift)|low>>shift)})
	}
	return cells
}
