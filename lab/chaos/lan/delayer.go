package lan

import (
	"slices"
	"sync"
	"time"
)

// A delayer keeps packets until they are due. Packets with the same due time keep their order.
type delayer struct {
	mu     sync.Mutex
	queue  []parcel // by due time
	timer  *time.Timer
	closed bool
}

// maxLate limits the waiting packets; further ones are dropped.
const maxLate = 100_000

type parcel struct {
	due    time.Time
	to     *Host
	packet []byte
}

func newDelayer() *delayer {
	d := &delayer{}
	d.timer = time.AfterFunc(time.Hour, d.deliver)
	return d
}

func (d *delayer) add(late time.Duration, to *Host, packet []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == maxLate || d.closed {
		return
	}
	due := time.Now().Add(late)
	at, _ := slices.BinarySearchFunc(d.queue, due, func(p parcel, due time.Time) int {
		if p.due.After(due) {
			return 1
		}
		return -1
	})
	d.queue = slices.Insert(d.queue, at, parcel{due, to, packet})
	if at == 0 {
		d.timer.Reset(late)
	}
}

// deliver delivers all due packets.
func (d *delayer) deliver() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.queue) > 0 {
		next := d.queue[0]
		if wait := time.Until(next.due); wait > 0 {
			d.timer.Reset(wait)
			return
		}
		d.queue = d.queue[1:]
		next.to.deliver(next.packet)
	}
}

func (d *delayer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer.Stop()
	d.queue, d.closed = nil, true
}
