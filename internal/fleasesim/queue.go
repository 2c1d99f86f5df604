package fleasesim

// An event is something that happens at an instant of true time.
type event struct {
	at    int64
	seq   uint64 // events of one instant happen in the order in which they were made
	what  happening
	to    int32  // the process
	epoch uint32 // for what a process has set for itself: it must still be the same
	mail  *packet
	do    func()
}

// A happening is a kind of event.
type happening uint8

const (
	arrival happening = iota // of a packet
	alarm                    // that a machine has asked for
	resume                   // after a pause
	action                   // of the application
	effect                   // whatever its function does
)

// A queue holds events, earliest first: a heap of places in a list, four children
// to a node. The heap has no pointers, so that the garbage collector need not
// hear of every move.
type queue struct {
	heap   []place
	events []event
	free   []int32 // places in events that are not used
}

type place struct {
	at    int64
	seq   uint64
	index int32
}

func (p *place) before(o *place) bool { return p.at < o.at || p.at == o.at && p.seq < o.seq }

func (q *queue) len() int { return len(q.heap) }

func (q *queue) push(e event) {
	var index int32
	if n := len(q.free); n > 0 {
		index = q.free[n-1]
		q.free = q.free[:n-1]
		q.events[index] = e
	} else {
		index = int32(len(q.events))
		q.events = append(q.events, e)
	}
	q.heap = append(q.heap, place{e.at, e.seq, index})
	i, moving := len(q.heap)-1, q.heap[len(q.heap)-1]
	for i > 0 {
		parent := (i - 1) / 4
		if !moving.before(&q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = moving
}

func (q *queue) pop() event {
	top := q.heap[0].index
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap = q.heap[:last]
	if last > 0 {
		q.sink(0)
	}
	e := q.events[top]
	q.events[top] = event{} // lets go of what it points to
	q.free = append(q.free, top)
	return e
}

func (q *queue) sink(i int) {
	moving := q.heap[i]
	for {
		least := 4*i + 1
		if least >= len(q.heap) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(q.heap)); c++ {
			if q.heap[c].before(&q.heap[least]) {
				least = c
			}
		}
		if !q.heap[least].before(&moving) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = moving
}

// revise lets an event be moved to another time, for all of them.
func (q *queue) revise(move func(*event)) {
	for i := range q.heap {
		e := &q.events[q.heap[i].index]
		move(e)
		q.heap[i].at = e.at
	}
	for i := len(q.heap) - 1; i >= 0; i-- {
		q.sink(i)
	}
}
