package broadcast

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A wave is stalled if fewer than minProgress lookups were begun in firstStall, and in
	// laterStall after that. Usual is one in some 50 us.
	firstStall  = 20 * time.Millisecond
	laterStall  = 5 * time.Millisecond
	minProgress = 20
	// maxWaveSenders is how many goroutines a wave has at most.
	maxWaveSenders = 32
	// slowSend is how long a send to a slow lookup takes.
	slowSend = 5 * time.Millisecond
	// yieldEvery is after how many lookups a sender yields its processor. Each send wakes a
	// goroutine of gRPC; a renewal waits behind those, but not behind the whole wave. A smaller
	// number makes waves slower.
	yieldEvery = 1024
)

// A wave sends updates to the lookups of a namespace.
type wave struct {
	lookups []*Lookup
	updates []message
	next    atomic.Int64  // index of the next lookup
	sending atomic.Int64  // how many goroutines are in a send; others may wait for a processor
	end     chan struct{} // closed when no lookup is left
	once    sync.Once
}

// sendWaves sends waves until a batch is empty.
func (l *Lookups) sendWaves(ns *namespace) {
	for {
		w := l.nextWave(ns)
		if w == nil {
			return
		}
		begun := time.Now()
		l.send(w)
		if pause := ns.batch.pause(begun, time.Now()); pause > 0 {
			l.wait(pause)
		}
	}
}

// nextWave returns the next wave of a namespace, nil if there is none.
func (l *Lookups) nextWave(ns *namespace) *wave {
	l.mu.Lock()
	defer l.mu.Unlock()
	replies := ns.batch.take()
	if len(replies) == 0 {
		return nil
	}
	return &wave{lookups: slices.Collect(maps.Values(ns.lookups)), updates: updates(replies...), end: make(chan struct{})}
}

func byID(a, b *Lookup) int { return cmp.Compare(a.id, b.id) }

// send sends a wave. It returns when no lookup is left, except those on which a goroutine is
// blocked. Bulk goes to the queues, and what cannot be encoded as well: the handlers return why.
func (l *Lookups) send(w *wave) {
	// The order of connections is about that of memory, here and at the receivers: sending in it
	// takes a sixth less time.
	slices.SortFunc(w.lookups, byID)
	small := !slices.ContainsFunc(w.updates, func(m message) bool {
		frame, err := m.update.encode()
		return err != nil || frame.Len() >= bulkSize
	})
	stall := firstStall
	for n := 1; small && n <= maxWaveSenders; n++ {
		l.running.Go(func() { l.sendRest(w) })
		if l.finishes(w, int64(n), stall) {
			return
		}
		stall = laterStall
	}
	for s := w.take(); s != nil; s = w.take() {
		s.with(func(q *queue) { q.addUpdates(w.updates) })
	}
}

// finishes reports true at the end of a wave, and false when it is stalled and all its senders
// are blocked.
func (l *Lookups) finishes(w *wave, senders int64, stall time.Duration) bool {
	ticker := time.NewTicker(stall)
	defer ticker.Stop()
	for {
		before := w.next.Load()
		select {
		case <-w.end:
			return true
		case <-l.done:
			return true
		case <-ticker.C:
			if w.next.Load() < before+minProgress && w.sending.Load() == senders {
				return false
			}
		}
	}
}

// take returns the next lookup, nil if none is left.
func (w *wave) take() *Lookup {
	i := w.next.Add(1) - 1
	if i >= int64(len(w.lookups)) {
		w.once.Do(func() { close(w.end) })
		return nil
	}
	s := w.lookups[i]
	w.lookups[i] = nil // a blocked sender keeps no others in memory
	return s
}

// sendRest sends to the lookups that are left.
func (l *Lookups) sendRest(w *wave) {
	for n := 1; ; n++ {
		s := w.take()
		if s == nil {
			return
		}
		select {
		case <-l.done:
			return
		default:
		}
		w.sendTo(s)
		if n%yieldEvery == 0 {
			runtime.Gosched()
		}
	}
}

// sendTo sends the updates to one lookup. What cannot be sent goes to its queue: the handler
// sends it later, or returns why that is not possible.
func (w *wave) sendTo(s *Lookup) {
	var acquired bool
	s.with(func(q *queue) { acquired = q.acquireForWave(w.updates) })
	if !acquired {
		return
	}
	w.sending.Add(1)
	defer w.sending.Add(-1)
	begun := time.Now()
	unsent := w.updates
	for len(unsent) > 0 && s.send(unsent[0]) == nil {
		unsent = unsent[1:]
	}
	slow := time.Since(begun) > slowSend
	s.with(func(q *queue) { q.release(unsent, slow) })
}

// wait waits, or until the manager ends.
func (l *Lookups) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.done:
	}
}
