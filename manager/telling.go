package manager

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Who tells news to thousands sends it to one after the other. To wake as many goroutines
// instead, each with a stack that no processor remembers, takes longer than sending. But who sends
// to a lookup that does not read waits for it, once gRPC has taken what it takes. So when few have
// been told for a moment, one more goroutine goes on with the next; when there are many of them, what
// is left waits with each lookup's mail, and the lookup's own goroutine sends it. So it does in the
// next waves, if the lookup was slow.
const (
	// stuckAfter is the first such moment, and stuckAgain each after that. Few is less than
	// tellingPace: usual is one in some 50 us.
	stuckAfter  = 20 * time.Millisecond
	stuckAgain  = 5 * time.Millisecond
	tellingPace = 20
	// mostStuck is how many go on at a time.
	mostStuck = 32
	// slowAfter is from when on a lookup was slow, and slowFor for how many waves that counts.
	slowAfter = 5 * time.Millisecond
	slowFor   = 64
	// tellingTurn is how many are told in a row. Each of them wakes a goroutine of gRPC, and
	// whoever renews a lease waits behind those, but not behind all others. Shorter turns take
	// longer in all.
	tellingTurn = 1024
)

// A telling is a wave on its way.
type telling struct {
	to   []*lookupStream
	news []outgoing
	next atomic.Int64  // who is to be told next
	at   atomic.Int64  // how many goroutines are sending; others of them wait for a processor
	all  chan struct{} // closed when somebody has found that there is nobody left
	once sync.Once
}

// tell tells lookups, and returns when there is none left but those that somebody is stuck with.
func (l *lookups) tell(all []*lookupStream, news []*encoded) {
	t := &telling{to: all, all: make(chan struct{})}
	small := true
	for _, update := range news {
		frame, err := update.bytes()
		small = small && err == nil && frame.Len() < bulkSize
		t.news = append(t.news, outgoing{update: update})
	}
	moment := stuckAfter
	for n := range mostStuck {
		if !small {
			break // there is a way of its own for what is large, or cannot be sent
		}
		l.running.Go(func() { l.tellRest(t) })
		if l.attend(t, int64(n+1), moment) {
			return
		}
		moment = stuckAgain
	}
	for s := t.take(); s != nil; s = t.take() {
		for _, out := range t.news {
			s.mail.add(out)
		}
	}
}

// attend reports false when few have been told for a moment by those who go on, so many, and all
// of them are sending.
func (l *lookups) attend(t *telling, tellers int64, moment time.Duration) bool {
	ticker := time.NewTicker(moment)
	defer ticker.Stop()
	for {
		before := t.next.Load()
		select {
		case <-t.all:
			return true
		case <-l.done:
			return true
		case <-ticker.C:
			if t.next.Load() < before+tellingPace && t.at.Load() == tellers {
				return false
			}
		}
	}
}

// take returns whom to tell next, or nil.
func (t *telling) take() *lookupStream {
	i := t.next.Add(1) - 1
	if i >= int64(len(t.to)) {
		t.once.Do(func() { close(t.all) })
		return nil
	}
	s := t.to[i]
	t.to[i] = nil // whoever is stuck does not keep it
	return s
}

// tellRest tells whoever is left.
func (l *lookups) tellRest(t *telling) {
	for n := 1; ; n++ {
		s := t.take()
		if s == nil {
			return
		}
		select {
		case <-l.done:
			return
		default:
		}
		l.tellOne(t, s)
		if n%tellingTurn == 0 {
			runtime.Gosched()
		}
	}
}

// tellOne sends news to a lookup. What cannot be sent now is left with its mail: whoever
// converses sends it later, or finds out why it cannot be.
func (l *lookups) tellOne(t *telling, s *lookupStream) {
	if !s.mail.claim(t.news) {
		return
	}
	t.at.Add(1)
	defer t.at.Add(-1)
	begun := time.Now()
	unsent := t.news
	for len(unsent) > 0 && l.sendOne(s.wire, s.mail, unsent[0]) == nil {
		unsent = unsent[1:]
	}
	s.mail.release(unsent, time.Since(begun) > slowAfter)
}
