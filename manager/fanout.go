package manager

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
)

// News goes to all lookups of a namespace, and with thousands of them that is most of what a
// manager does: a thousand owners that join, with a change each, would keep it from all else,
// renewals among it. So news goes in waves. While a wave is on its way, and for some time after
// it, what happens is gathered, and is the next wave. A change after a quiet time goes at once;
// without an end of them, waves take a part of the time, however many lookups there are and
// whatever it costs to tell one.
const (
	// restAfterWave is for how many times as long as a wave took the next one waits. Of that may
	// be left out after a quiet time what some waves take, or unrested if that is more: a few
	// changes in a row go at once.
	restAfterWave = 1
	unrestedWaves = 4
	unrested      = 500 * time.Millisecond
	// fewLookups are told at once, always, by their own goroutines.
	fewLookups = 512
	// mostGathered bounds the changes of one message, far below what a lookup takes.
	mostGathered = 4096
)

// A fanout is how the news of a namespace goes to its lookups. It is guarded by their lock.
type fanout struct {
	busy    bool                    // a wave is on its way, or was just now
	waiting []*protocol.LookupReply // what is gathered meanwhile, each ours to add to
	rested  time.Time               // when all waves so far will have been rested after
}

// broadcast sends news to all lookups of a namespace, at once or with what comes after it.
func (l *lookups) broadcast(reply *protocol.LookupReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ns := reply.Namespace
	f := l.fanouts[ns]
	if f == nil || l.closed {
		return // nobody follows it
	}
	switch {
	case f.busy:
		f.gather(reply)
	case len(l.spaces[ns]) <= l.few:
		for _, s := range l.spaces[ns] {
			s.mail.add(outgoing{update: &encoded{reply: reply}})
		}
	default:
		f.busy = true
		f.gather(reply)
		l.running.Go(func() { l.spread(ns, f) })
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

// spread sends waves, until there is nothing to tell.
func (l *lookups) spread(ns leasehold.Namespace, f *fanout) {
	for {
		all, news := l.wave(ns, f)
		if len(news) == 0 {
			return
		}
		begun := time.Now()
		slices.SortFunc(all, inOrder)
		l.tell(all, news)
		if rest := f.rest(begun, time.Now()); rest > 0 {
			l.wait(rest)
		}
	}
}

// inOrder is the order in which lookups have come. What belongs to them lies in memory in about
// that order, here and where they are, and to go through it so takes a sixth less than as it comes.
func inOrder(a, b *lookupStream) int { return cmp.Compare(a.id, b.id) }

// rest returns how long to rest after a wave, if that is more than 0. Nobody else spreads this
// news meanwhile.
func (f *fanout) rest(begun, now time.Time) time.Duration {
	if f.rested.Before(begun) {
		f.rested = begun
	}
	took := now.Sub(begun)
	f.rested = f.rested.Add((1 + restAfterWave) * took)
	return f.rested.Sub(now) - max(unrested, unrestedWaves*took)
}

// wave returns whom to tell what next. If it is nothing, nobody is spreading it any more.
func (l *lookups) wave(ns leasehold.Namespace, f *fanout) (all []*lookupStream, news []*encoded) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(f.waiting) == 0 || l.closed {
		f.busy = false
		return nil, nil
	}
	for _, reply := range f.waiting {
		news = append(news, &encoded{reply: reply})
	}
	f.waiting = nil
	return slices.Collect(maps.Values(l.spaces[ns])), news
}

// wait waits, or until nobody is to be told anything any more.
func (l *lookups) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.done:
	}
}
