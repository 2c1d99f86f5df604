package engine

// A Timeline holds things that happen, earliest first, and those of one instant
// in the order in which they were added. So a simulation that adds the same
// things does the same. It is not safe for concurrent use.
//
// It is a heap of places in a list, four children to a node. The heap has no
// pointers, so that the garbage collector need not hear of every move.
type Timeline[T any] struct {
	heap   []place
	things []T
	free   []int32 // places in things that are not used
	added  uint64
}

type place struct {
	at    int64
	seq   uint64
	index int32
}

func (p *place) before(o *place) bool { return p.at < o.at || p.at == o.at && p.seq < o.seq }

// Len returns how many things there are.
func (l *Timeline[T]) Len() int { return len(l.heap) }

// Earliest returns when the first thing happens. There must be something.
func (l *Timeline[T]) Earliest() int64 { return l.heap[0].at }

// Add adds a thing that happens at an instant.
func (l *Timeline[T]) Add(at int64, thing T) {
	var index int32
	if n := len(l.free); n > 0 {
		index = l.free[n-1]
		l.free = l.free[:n-1]
		l.things[index] = thing
	} else {
		index = int32(len(l.things))
		l.things = append(l.things, thing)
	}
	l.added++
	l.heap = append(l.heap, place{at, l.added, index})
	l.rise(len(l.heap) - 1)
}

// Next removes what happens first, and returns when. There must be something.
func (l *Timeline[T]) Next() (at int64, thing T) {
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
	var nothing T
	thing := l.things[index]
	l.things[index] = nothing // lets go of what it points to
	l.free = append(l.free, index)
	return thing
}

// Revise removes what keep refuses, and moves the rest to where it says. What is
// moved to one instant happens in the order in which it was added.
func (l *Timeline[T]) Revise(keep func(at int64, thing *T) (int64, bool)) {
	kept := l.heap[:0]
	for _, p := range l.heap {
		at, ok := keep(p.at, &l.things[p.index])
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
