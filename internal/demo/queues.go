package demo

import "sync"

// queues are the requests that users are to make, in the order in which they are
// due. They may be used from many goroutines at once.
type queues struct {
	mu sync.Mutex
	of map[*user][]due // has those for whom somebody makes requests
}

func newQueues() *queues { return &queues{of: make(map[*user][]due)} }

// add puts a request behind those of its user that wait, and reports whether
// nobody makes them: then the caller has to.
func (q *queues) add(u *user, d due) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, busy := q.of[u]
	d.queued = busy
	q.of[u] = append(waiting, d)
	return !busy
}

// take returns the request that is to be made next. If there is none, whoever
// asks is done.
func (q *queues) take(u *user) (due, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.of[u]
	if len(waiting) == 0 {
		delete(q.of, u)
		return due{}, false
	}
	q.of[u] = waiting[1:]
	return waiting[0], true
}
