package engine

// A Timeline is a priority queue of items by time. Items of one instant keep the order in which they were
// added, so a simulation is deterministic. It is not safe for concurrent use.
//
// It is a heap of indices into a list, with four children per node. The heap has no pointers, so a move needs
// no write barrier of the garbage collector.
type Timeline[T any] struct {
	heap  []place
	items []T
	free  []int32 // unused indices of items
	added uint64
}

type place struct {
	at    int64
	seq   uint64
	index int32
}

func (p *place) before(o *place) bool { return p.at < o.at || p.at == o.at && p.seq < o.seq }

// Len returns the number of items.
func (l *Timeline[T]) Len() int { return len(l.heap) }

// Earliest returns the time of the first item. The timeline must not be empty.
func (l *Timeline[T]) Earliest() int64 { return l.heap[0].at }

// Add adds an item at an instant.
func (l *Timeline[T]) Add(at int64, item T) {
	var index int32
	if n := len(l.free); n > 0 {
		index = l.free[n-1]
		l.free = l.free[:n-1]
		l.items[index] = item
	} else {
		index = int32(len(l.items))
		l.items = append(l.items, item)
	}
	l.added++
	l.heap = append(l.heap, place{at, l.added, index})
	l.rise(len(l.heap) - 1)
}

// Next removes the first item, and returns it with its time. The timeline must not be empty.
func (l *Timeline[T]) Next() (at int64, item T) {
	top := l.heap[0]
	last := len(l.heap) - 1
	l.heap[0] = l.heap[last]
	l.heap = l.heap[:last]
	if last > 0 {
		l.sink(0)
	}
	return top.at, l.take(top.index)
}

func (l *Timeline[T]) take(index int32) T {
	var zero T
	item := l.items[index]
	l.items[index] = zero // releases the item for the garbage collector
	l.free = append(l.free, index)
	return item
}

// Revise removes the items for which keep returns false, and moves the others to the returned instant. Items
// that are moved to one instant keep the order in which they were added.
func (l *Timeline[T]) Revise(keep func(at int64, item *T) (int64, bool)) {
	kept := l.heap[:0]
	for _, p := range l.heap {
		at, ok := keep(p.at, &l.items[p.index])
		if !ok {
			l.take(p.index)
			continue
		}
		p.at = at
		kept = append(kept, p)
	}
	l.heap = kept
	for i := len(l.heap) - 1; i >= 0; i-- {
		l.sink(i)
	}
}

func (l *Timeline[T]) rise(i int) {
	moving := l.heap[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !moving.before(&l.heap[parent]) {
			break
		}
		l.heap[i] = l.heap[parent]
		i = parent
	}
	l.heap[i] = moving
}

func (l *Timeline[T]) sink(i int) {
	moving := l.heap[i]
	for {
		least := 4*i + 1
		if least >= len(l.heap) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(l.heap)); c++ {
			if l.heap[c].before(&l.heap[least]) {
				least = c
			}
		}
		if !l.heap[least].before(&moving) {
			break
		}
		l.heap[i] = l.heap[least]
		i = least
	}
	l.heap[i] = moving
}
