package partition

import "container/heap"

// A ranking is a priority queue: it finds the ID with the highest value, the lowest ID
// among equals. Values may decrease, but not increase, while it is in use, so that a
// stored value is never too low: top updates the first entry.
type ranking struct {
	value   func(int32) float64
	entries rankedHeap
}

type ranked struct {
	value float64
	id    int32
}

type rankedHeap []ranked

func (h rankedHeap) Len() int      { return len(h) }
func (h rankedHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *rankedHeap) Push(x any)   { *h = append(*h, x.(ranked)) }

func (h rankedHeap) Less(i, j int) bool {
	return h[i].value > h[j].value || h[i].value == h[j].value && h[i].id < h[j].id
}

func (h *rankedHeap) Pop() any {
	last := len(*h) - 1
	*h = (*h)[:last]
	return nil // unused
}

func newRanking(value func(int32) float64, ids ...int32) *ranking {
	r := &ranking{value: value, entries: make(rankedHeap, len(ids))}
	for i, id := range ids {
		r.entries[i] = ranked{value(id), id}
	}
	heap.Init(&r.entries)
	return r
}

// top returns the ID with the highest value; false if none is left.
func (r *ranking) top() (int32, bool) {
	for len(r.entries) > 0 {
		first := &r.entries[0]
		now := r.value(first.id)
		if !(now < first.value) {
			return first.id, true
		}
		first.value = now
		heap.Fix(&r.entries, 0)
	}
	return 0, false
}

// drop removes the top ID.
func (r *ranking) drop() { heap.Pop(&r.entries) }

// push adds an ID that is not in the ranking.
func (r *ranking) push(id int32) { heap.Push(&r.entries, ranked{r.value(id), id}) }
