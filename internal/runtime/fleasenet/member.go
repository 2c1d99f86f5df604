package fleasenet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

const (
	// maxUnderWay is how many packets may be on their way to a member of a Memory.
	maxUnderWay = 4096
	// maxGathered is how many bytes of packets wait for Flush at most.
	maxGathered = 4 << 20
)

// A member is a process in a Memory.
type member struct {
	tally
	network *Memory
	self    flease.Process
	packer  *packer
	limit   int
	buffer  []byte // the packets that wait for Flush
	waiting []parcel

	mu       sync.Mutex
	underWay []parcel      // in the order in which they arrive
	wake     chan struct{} // has one when something came that may be due sooner

	stop    context.CancelFunc
	running sync.WaitGroup
}

// A parcel is a packet under way.
type parcel struct {
	packet []byte
	to     flease.Process
	due    time.Time
}

// Addr names the process.
func (n *member) Addr() string { return fmt.Sprintf("memory:%d", n.self) }

func (n *member) Send(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
	if to == n.self {
		return // there is one process of each id here
	}
	if n.packer.numbers[to] == nil {
		n.drop(foreign, 1)
		return
	}
	for first := true; first || len(msgs) > 0; first = false {
		if len(n.buffer) >= maxGathered {
			n.drop(full, 1)
			return
		}
		start := len(n.buffer)
		n.buffer, msgs = n.packer.pack(n.buffer, n.limit, to, e, msgs)
		n.waiting = append(n.waiting, parcel{packet: n.buffer[start:], to: to})
	}
}

func (n *member) Flush() {
	for _, p := range n.waiting {
		n.network.carry(way{n.self, p.to}, p.packet)
	}
	clear(n.waiting)
	n.waiting, n.buffer = n.waiting[:0], n.buffer[:0]
}

// arrive lets a packet come at a time. It takes a copy, since the sender uses the
// buffer again, and the receiver writes over it.
func (n *member) arrive(packet []byte, due time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.underWay) >= maxUnderWay {
		n.drop(full, 1)
		return
	}
	after, _ := slices.BinarySearchFunc(n.underWay, due, func(p parcel, due time.Time) int {
		return cmp.Or(p.due.Compare(due), -1) // behind those that are due at the same time
	})
	n.underWay = slices.Insert(n.underWay, after, parcel{packet: slices.Clone(packet), due: due})
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// read hands over what is due until the context ends.
func (n *member) read(ctx context.Context, r *reader) {
	for ctx.Err() == nil {
		packet, wait := n.due()
		if packet != nil {
			r.packet(packet)
			continue
		}
		r.drain()
		n.sleep(ctx, wait)
	}
}

// due returns a packet that has arrived, or nil and when the next one does, 0 if
// there is none.
func (n *member) due() ([]byte, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.underWay) == 0 {
		return nil, 0
	}
	if wait := time.Until(n.underWay[0].due); wait > 0 {
		return nil, wait
	}
	packet := n.underWay[0].packet
	n.underWay = slices.Delete(n.underWay, 0, 1)
	return packet, 0
}

// sleep waits for something new, and for so long at most, unless that is 0. With
// nothing under way there is no timer, so that virtual time has nowhere to go.
func (n *member) sleep(ctx context.Context, wait time.Duration) {
	var due <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-n.wake:
	case <-due:
	}
}

// Close leaves the network.
func (n *member) Close() error {
	n.network.mu.Lock()
	if n.network.members[n.self] == n {
		delete(n.network.members, n.self)
	}
	n.network.mu.Unlock()
	n.stop()
	n.running.Wait()
	return nil
}
