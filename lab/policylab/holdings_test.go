package policylab

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
)

// drawSpans draws an assignment of the key space to three owners, with unowned ranges.
func drawSpans(t *rapid.T) []span {
	var spans []span
	for _, start := range drawBounds(t, 12) {
		owner := rapid.IntRange(noOwner, 2).Draw(t, "owner")
		if n := len(spans); n == 0 || spans[n-1].owner != owner {
			spans = append(spans, span{start, owner})
		}
	}
	return spans
}

func holdersOf(holdings []holding) []span {
	var spans []span
	for _, h := range holdings {
		if n := len(spans); n == 0 || spans[n-1].owner != h.owner {
			spans = append(spans, h.span)
		}
	}
	return spans
}

// at finds a key by a linear search.
func at(holdings []holding, k leasehold.Key) holding {
	found := holdings[0]
	for _, h := range holdings {
		if h.start <= k {
			found = h
		}
	}
	return found
}

// TestReassign: owners hold what was assigned, and the period since when they hold each key is correct, or
// later.
func TestReassign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		holdings := []holding{{span: span{owner: noOwner}}}
		for period := range rapid.IntRange(1, 6).Draw(t, "periods") {
			to := drawSpans(t)
			moved := 0.0
			next := reassign(holdings, to, period, func(r leasehold.Range, from, to int) {
				if !r.Valid() || from == to || at(holdings, r.Start).owner != from || at(holdings, r.Last()).owner != from {
					t.Fatalf("%v does not move from %d to %d", r, from, to)
				}
				moved += share(r)
			})
			if diff := cmp.Diff(to, holdersOf(next), cmp.AllowUnexported(span{})); diff != "" {
				t.Fatalf("period %d: %s", period, diff)
			}
			fresh := 0.0
			for i, h := range next {
				before := at(holdings, h.start)
				kept := before.owner == h.owner
				if kept && h.since < before.since || !kept && h.since != period {
					t.Fatalf("period %d: %+v was %+v", period, h, before)
				}
				if h.since == period && !kept {
					limit := leasehold.Key(0)
					if i+1 < len(next) {
						limit = next[i+1].start
					}
					fresh += share(leasehold.Range{Start: h.start, Limit: limit})
				}
			}
			if !near(moved, fresh) {
				t.Fatalf("period %d: %v moved, and %v is new", period, moved, fresh)
			}
			holdings = next
		}
	})
}

// TestCut: cells divide holdings evenly, and no owner has too many.
func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		holdings := reassign([]holding{{span: span{owner: noOwner}}}, drawSpans(t), 0, func(leasehold.Range, int, int) {})
		perOwner := rapid.IntRange(1, 100).Draw(t, "cells")
		cells := cut(holdings, 3, perOwner)
		counts, ranges := [3]int{}, [3]int{}
		for i, h := range holdings {
			if cells[h.cells].start != h.start {
				t.Fatalf("the cells of %+v begin at %v", h, cells[h.cells].start)
			}
			end := len(cells)
			if i+1 < len(holdings) {
				end = holdings[i+1].cells
			}
			if h.owner != noOwner {
				counts[h.owner] += end - h.cells
				ranges[h.owner]++
			}
			smallest, largest := uint64(1<<64-1), uint64(0)
			for j := h.cells; j < end; j++ {
				size := leasehold.Range{Start: cells[j].start, Limit: limitOf(cells, j)}.Size()
				smallest, largest = min(smallest, size), max(largest, size)
			}
			if smallest == 0 || largest-smallest > 1 {
				t.Fatalf("the cells of %+v have %d to %d keys", h, smallest, largest)
			}
		}
		for owner, n := range counts {
			if n > max(perOwner, ranges[owner]) {
				t.Fatalf("owner %d has %d cells in %d ranges, want %d", owner, n, ranges[owner], perOwner)
			}
		}
	})
}

// TestDivide: the sum of rates does not change when cells change.
func TestDivide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := func(rated bool) (cells []cell, sum float64) {
			for _, start := range drawBounds(t, 10) {
				c := cell{start: start}
				if rated {
					c.rate = rapid.Float64Range(0, 100).Draw(t, "rate")
				}
				sum += c.rate
				cells = append(cells, c)
			}
			return cells, sum
		}
		from, want := cells(true)
		to, _ := cells(false)
		divide(from, to)
		sum := 0.0
		for _, c := range to {
			sum += c.rate
		}
		if !near(sum, want) {
			t.Fatalf("%v became %v", want, sum)
		}
	})
}
