package lan

import (
	"container/heap"
	"sync"
	"time"
)

// A delayer keeps packets until they are due. Packets that are due at the same
// time leave in the order in which they came.
type delayer struct {
	mu     sync.Mutex
	queue  queue
	came   uint64
	news   chan struct{} // something is due sooner than before
	closed chan struct{}
	ended  sync.WaitGroup
}

// maxLate is how many packets may wait; others are lost.
const maxLate = 100_000

type parcel struct {
	due    time.Time
	number uint64
	to     *Host
	packet []byte
}

func newDelayer() *delayer {
	d := &delayer{news: make(chan struct{}, 1), closed: make(chan struct{})}
	d.ended.Go(d.run)
	return d
}

func (d *delayer) add(late time.Duration, to *Host, packet []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == maxLate {
		return
	}
	d.came++
	heap.Push(&d.queue, parcel{time.Now().Add(late), d.came, to, packet})
	if d.queue[0].number != d.came {
		return
	}
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// run delivers what is due, until it is closed.
func (d *delayer) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-d.closed:
			return
		case <-d.news:
		case <-timer.C:
		}
		timer.Reset(d.deliver())
	}
}

// deliver delivers what is due, and returns how long it will take until more is.
func (d *delayer) deliver() time.Duration {
	for {
		d.mu.Lock()
		if len(d.queue) == 0 {
			d.mu.Unlock()
			return time.Hour
		}
		if wait := time.Until(d.queue[0].due); wait > 0 {
			d.mu.Unlock()
			return wait
		}
		next := heap.Pop(&d.queue).(parcel)
		d.mu.Unlock()
		next.to.deliver(next.packet)
	}
}

func (d *delayer) close() {
	close(d.closed)
	d.ended.Wait()
}

// A queue is a heap of parcels, the one that is due first at its top.
type queue []parcel

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].due.Equal(q[j].due) {
		return q[i].number < q[j].number
	}
	return q[i].due.Before(q[j].due)
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(parcel)) }

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
