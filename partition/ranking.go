package partition

// A ranking finds the one with the highest value among many, the lowest number
// among equals. While it is in use values may fall, but not rise, so that what
// it remembers is never too low: it looks again at whoever seems to be on top.
type ranking struct {
	value func(int32) float64
	heap  []ranked
}

type ranked struct {
	value float64
	id    int32
}

func (a ranked) before(b ranked) bool {
	return a.value > b.value || a.value == b.value && a.id < b.id
}

func newRanking(value func(int32) float64, ids ...int32) *ranking {
	r := &ranking{value: value, heap: make([]ranked, len(ids))}
	for i, id := range ids {
		r.heap[i] = ranked{value(id), id}
	}
	for i := len(ids)/2 - 1; i >= 0; i-- {
		r.down(i)
	}
	return r
}

// top returns who has the highest value; false if nobody is left.
func (r *ranking) top() (int32, bool) {
	for len(r.heap) > 0 {
		first := &r.heap[0]
		now := r.value(first.id)
		if !(now < first.value) {
			return first.id, true
		}
		first.value = now
		r.down(0)
	}
	return 0, false
}

// drop takes out the one on top.
func (r *ranking) drop() {
	last := len(r.heap) - 1
	r.heap[0] = r.heap[last]
	r.heap = r.heap[:last]
	r.down(0)
}

// push puts in one that is not there.
func (r *ranking) push(id int32) {
	r.heap = append(r.heap, ranked{r.value(id), id})
	for i := len(r.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !r.heap[i].before(r.heap[parent]) {
			return
		}
		r.heap[i], r.heap[parent] = r.heap[parent], r.heap[i]
		i = parent
	}
}

func (r *ranking) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(r.heap) {
			return
		}
		if child+1 < len(r.heap) && r.heap[child+1].before(r.heap[child]) {
			child++
		}
		if !r.heap[child].before(r.heap[i]) {
			return
		}
		r.heap[i], r.heap[child] = r.heap[child], r.heap[i]
		i = child
	}
}
