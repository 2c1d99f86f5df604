package sim

// An event is something that happens at an instant of true time. What it does
// depends on what; where it happens is an endpoint of the network, or nowhere.
type event struct {
	at    int64  // true time, in nanoseconds
	seq   uint64 // events of one instant happen in the order they were made
	from  int32  // the endpoint that sent it, or none
	to    int32  // the endpoint, or none
	epoch uint32 // for timers: the process that set it must still be the same
	what  any
}

const none int32 = -1

// A queue holds events, earliest first: a heap of places in a list. The heap
// has no pointers, so that the garbage collector need not hear of every move.
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
	q.rise(len(q.heap) - 1)
}

func (q *queue) rise(i int) {
	moving := q.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
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
	return q.take(top)
}

// take empties a place in the list.
func (q *queue) take(index int32) event {
	e := q.events[index]
	q.events[index].what = nil // lets go of what it points to
	q.free = append(q.free, index)
	return e
}

func (q *queue) sink(i int) {
	moving := q.heap[i]
	for {
		child := 2*i + 1
		if child >= len(q.heap) {
			break
		}
		if right := child + 1; right < len(q.heap) && q.heap[right].before(&q.heap[child]) {
			child = right
		}
		if !q.heap[child].before(&moving) {
			break
		}
		q.heap[i] = q.heap[child]
		i = child
	}
	q.heap[i] = moving
}

// filter removes the events that keep refuses. It may move the others in time.
func (q *queue) filter(keep func(*event) bool) {
	kept := q.heap[:0]
	for _, p := range q.heap {
		e := &q.events[p.index]
		if !keep(e) {
			q.take(p.index)
			continue
		}
		p.at = e.at
		kept = append(kept, p)
	}
	q.heap = kept
	for i := len(q.heap)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}
