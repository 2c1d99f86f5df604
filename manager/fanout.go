package manager

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
)

// News goes to all lookups of a namespace, and with thousands of them that is most of what a
// manager does: a thousand owners that join, with a change each, would keep it from all else,
// renewals among it. So news goes in waves. While a wave is on its way, and for as long again
// as it was, times restAfterWave, what happens is gathered, and is the next wave. A change
// after a quiet time goes at once; without a pause, waves take a third of the time, however
// many lookups there are and whatever it costs to tell one.
const (
	restAfterWave = 2
	// A wave is over when all but a tenth have been told, or after some time: those that
	// read slowly do not count.
	longestWave = time.Second
	// fewLookups are told at once, always: it is cheaper than to think about it.
	fewLookups = 32
	// mostGathered bounds the changes of one message, far below what a lookup takes.
	mostGathered = 4096
)

// A fanout is how the news of a namespace goes to its lookups. It is guarded by their lock.
type fanout struct {
	busy    bool                    // a wave is on its way, or was just now
	waiting []*protocol.LookupReply // what is gathered meanwhile, each ours to add to
}

// broadcast sends news to all lookups of a namespace, at once or with what comes after it.
func (l *lookups) broadcast(reply *protocol.LookupReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.fanouts[reply.Namespace]
	if f == nil {
		return // nobody follows it
	}
	f.gather(reply)
	if !f.busy {
		l.tell(reply.Namespace, f)
	}
}

// gather adds a reply to what waits.
func (f *fanout) gather(reply *protocol.LookupReply) {
	if n := len(f.waiting); n > 0 && continues(f.waiting[n-1], reply) {
		last := f.waiting[n-1]
		last.Changes, last.LSN, last.Age = append(last.Changes, reply.Changes...), reply.LSN, reply.Age
		return
	}
	own := *reply
	own.Changes = slices.Clone(reply.Changes)
	f.waiting = append(f.waiting, &own)
}

// continues reports whether the second reply's changes follow on those of the first, so that
// one message can say both.
func continues(first, second *protocol.LookupReply) bool {
	return first.Term == second.Term && first.Leader == second.Leader && first.Snapshot == nil && second.Snapshot == nil &&
		len(first.Changes) > 0 && len(second.Changes) > 0 && second.From == first.LSN && len(first.Changes)+len(second.Changes) <= mostGathered
}

// tell leaves what waits with everybody. The lock is held.
func (l *lookups) tell(ns leasehold.Namespace, f *fanout) {
	all := l.spaces[ns]
	var w *wave
	if len(all) > fewLookups {
		w = newWave(len(all), func(took time.Duration) { l.rest(ns, f, took) })
	}
	f.busy = w != nil
	for i, reply := range f.waiting {
		out := outgoing{update: &encoded{reply: reply}}
		if i == len(f.waiting)-1 {
			out.wave = w
		}
		for _, s := range all {
			s.put(out)
		}
	}
	f.waiting = nil
}

// rest has the next wave of a namespace wait for a while after one that took so long.
func (l *lookups) rest(ns leasehold.Namespace, f *fanout, took time.Duration) {
	time.AfterFunc(restAfterWave*took, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if f.busy = false; len(f.waiting) > 0 && !l.closed {
			l.tell(ns, f)
		}
	})
}

// A wave is news on its way to many lookups.
type wave struct {
	left atomic.Int64 // how many must yet be told for it to be over
	over func()       // the first call says so
}

// newWave returns a wave to so many, and calls over when it is. That must not wait.
func newWave(n int, over func(took time.Duration)) *wave {
	w := &wave{}
	w.left.Store(int64(n - n/10))
	begun := time.Now()
	var late *time.Timer
	w.over = sync.OnceFunc(func() {
		late.Stop()
		over(time.Since(begun))
	})
	late = time.AfterFunc(longestWave, w.over)
	return w
}

// told says that one more lookup has been told. There need not be a wave.
func (w *wave) told() {
	if w != nil && w.left.Add(-1) == 0 {
		w.over()
	}
}
