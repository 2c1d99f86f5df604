package manager

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// following admits lookups of a namespace.
func following(t *testing.T, l *lookups, n int) (all []*lookupStream) {
	t.Helper()
	for range n {
		s, err := l.admit("")
		if err != nil {
			t.Fatal(err)
		}
		l.subscribe(0, s, "pool")
		all = append(all, s)
	}
	return all
}

// reading has lookups take what waits for them, each message in some time.
func reading(all []*lookupStream, each time.Duration, heard func(i int, o outgoing)) {
	for i, s := range all {
		go func() {
			for range s.mail.ready {
				for _, o := range taken(s) {
					time.Sleep(each)
					heard(i, o)
					o.telling.told()
				}
			}
		}()
	}
}

func change(from, to int) *protocol.LookupReply {
	r := &protocol.LookupReply{Namespace: "pool", Term: 1, Leader: "m", From: leasehold.LSN(from), LSN: leasehold.LSN(to)}
	for i := from; i < to; i++ {
		r.Changes = append(r.Changes, table.Change{LSN: leasehold.LSN(i + 1)})
	}
	return r
}

// Many lookups are told of everything, in order and without a gap, in far fewer messages than
// there are changes; and the first change comes at once.
func TestWaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lookups, changes = 3*someLookups + 7, 1000
		l := newLookups(lookups)
		all := following(t, l, lookups)
		defer func() {
			l.close()
			for _, s := range all {
				close(s.mail.ready)
			}
		}()
		var (
			mu       sync.Mutex
			at       [lookups]leasehold.LSN
			messages [lookups]int
		)
		reading(all, 10*time.Millisecond, func(i int, o outgoing) {
			mu.Lock()
			defer mu.Unlock()
			if r := o.update.reply; r.From != at[i] || int(r.LSN-r.From) != len(r.Changes) {
				t.Errorf("lookup %d is at %d, and is told of %d to %d", i, at[i], r.From, r.LSN)
			}
			at[i] = o.update.reply.LSN
			messages[i]++
		})
		l.broadcast(change(0, 1))
		time.Sleep(10 * time.Millisecond) // what a lookup takes
		synctest.Wait()
		mu.Lock()
		if messages == [lookups]int{} {
			t.Error("nobody has been told at once")
		}
		mu.Unlock()
		for i := 1; i < changes; i++ {
			l.broadcast(change(i, i+1))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		for i := range at {
			if at[i] != changes || messages[i] > changes/50 {
				t.Fatalf("lookup %d has heard up to %d, in %d messages", i, at[i], messages[i])
			}
		}
	})
}

// Lookups that do not read, however many, keep the others waiting once, and for a moment.
func TestWavesPassTheSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lookups, slow = 2 * someLookups, someLookups
		l := newLookups(lookups)
		all := following(t, l, lookups)
		defer func() {
			l.close()
			for _, s := range all[slow:] {
				close(s.mail.ready)
			}
		}()
		var heard [lookups]atomic.Uint64
		reading(all[slow:], 0, func(i int, o outgoing) { heard[i].Store(uint64(o.update.reply.LSN)) })
		l.broadcast(change(0, 1))
		time.Sleep(2 * time.Second)
		for i := 1; i < 10; i++ {
			l.broadcast(change(i, i+1))
			synctest.Wait() // and no time passes
		}
		for i := range lookups - slow {
			if n := heard[i].Load(); n != 10 {
				t.Fatalf("lookup %d has heard up to %d", i, n)
			}
		}
	})
}

// A few waves after a quiet time are not rested after, however long they take; waves without an
// end take half of the time.
func TestRest(t *testing.T) {
	for _, took := range []time.Duration{10 * time.Millisecond, 400 * time.Millisecond} {
		var f fanout
		now := time.Unix(1000, 0)
		wave := func() time.Duration {
			begun := now
			now = now.Add(took)
			rest := max(0, f.rest(begun, now))
			now = now.Add(rest)
			return rest
		}
		for i := range 2 {
			if rest := wave(); rest != 0 {
				t.Errorf("waves of %v: it rests for %v after wave %d", took, rest, i+1)
			}
		}
		for range 100 {
			wave()
		}
		if rest := wave(); rest != restAfterWave*took {
			t.Errorf("waves of %v: it rests for %v in the end, want %v", took, rest, restAfterWave*took)
		}
		now = now.Add(time.Minute)
		if rest := wave(); rest != 0 {
			t.Errorf("waves of %v: it rests for %v after a quiet time", took, rest)
		}
	}
}

// What does not follow on what is gathered is told by itself.
func TestGather(t *testing.T) {
	later, other := change(5, 6), change(6, 7)
	later.Term, other.Leader = 2, "n"
	var f fanout
	for _, r := range []*protocol.LookupReply{change(0, 2), change(2, 3), change(4, 5), later, other, {Namespace: "pool", Snapshot: table.New(), LSN: 7}, change(7, 8)} {
		f.gather(r)
	}
	var got []leasehold.LSN
	for _, r := range f.waiting {
		got = append(got, r.From, r.LSN)
	}
	want := []leasehold.LSN{0, 3, 4, 5, 5, 6, 6, 7, 0, 7, 7, 8}
	if len(got) != len(want) {
		t.Fatalf("gathered are %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("gathered are %v", got)
		}
	}
	theirs := change(0, 1)
	theirs.Changes = append(make([]table.Change, 0, 4), theirs.Changes...)
	var own fanout
	own.gather(theirs)
	own.gather(change(1, 2))
	if theirs.LSN != 1 || theirs.Changes[:2][1].LSN != 0 {
		t.Error("what somebody else has was changed")
	}
	big := fanout{}
	big.gather(change(0, mostGathered))
	big.gather(change(mostGathered, mostGathered+1))
	if len(big.waiting) != 2 {
		t.Error("there is no end of what is gathered")
	}
}

// An answer takes the place of an earlier one, and of the news that it has.
func TestMail(t *testing.T) {
	m := newMail()
	answer := func(lsn int, term leasehold.Term) outgoing {
		r := &protocol.LookupReply{Namespace: "pool", Term: term, LSN: leasehold.LSN(lsn)}
		return outgoing{update: &encoded{reply: r}, answer: r}
	}
	told := &telling{done: make(chan struct{})}
	told.left.Store(1)
	m.reply(answer(1, 1))
	m.add(outgoing{update: &encoded{reply: change(1, 2)}, telling: told})
	m.add(outgoing{update: &encoded{reply: change(2, 3)}})
	m.reply(answer(2, 1))
	select {
	case <-told.done:
	default:
		t.Error("whoever waits for news that was dropped waits for ever")
	}
	all := taken(&lookupStream{mail: m})
	if len(all) != 2 || all[0].answer == nil || all[0].answer.LSN != 2 || all[1].update.reply.LSN != 3 {
		t.Errorf("what is sent: %+v", all)
	}
	m.add(outgoing{update: &encoded{reply: change(3, 4)}})
	m.reply(answer(9, 2)) // of another term: it may be about another history
	if all := taken(&lookupStream{mail: m}); len(all) != 2 {
		t.Errorf("what is sent: %+v", all)
	}
}
