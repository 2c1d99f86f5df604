package sim

// An event is something that happens at an instant of true time. What it does
// depends on what; where it happens is an endpoint of the network, or nowhere.
type event struct {
	at    int64  // true time, in nanoseconds
	seq   uint64 // events of one instant happen in the order they were made
	to    int32  // the endpoint, or none
	epoch uint32 // for timers: the process that set it must still be the same
	what  any
}

const none int32 = -1

// A queue is a heap of events, earliest first.
type queue struct{ heap []event }

func (q *queue) len() int { return len(q.heap) }

func (q *queue) before(i, j int) bool {
	a, b := &q.heap[i], &q.heap[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (q *queue) push(e event) {
	q.heap = append(q.heap, e)
	for i := len(q.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.before(i, parent) {
			break
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *queue) pop() event {
	top := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap[last] = event{} // lets go of what it points to
	q.heap = q.heap[:last]
	q.sift(0)
	return top
}

func (q *queue) sift(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q.heap); child++ {
			if q.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}

// filter removes the events that keep refuses.
func (q *queue) filter(keep func(*event) bool) {
	kept := q.heap[:0]
	for i := range q.heap {
		if keep(&q.heap[i]) {
			kept = append(kept, q.heap[i])
		}
	}
	clear(q.heap[len(kept):])
	q.heap = kept
	for i := len(q.heap)/2 - 1; i >= 0; i-- {
		q.sift(i)
	}
}
