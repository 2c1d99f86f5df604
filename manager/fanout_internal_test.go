package manager

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// following returns n lookups of a namespace.
func following(t testing.TB, l *lookups, n int) []*lookupStream {
	t.Helper()
	var all []*lookupStream
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

// change is the news that one more thing has happened.
func change(term leasehold.Term, lsn leasehold.LSN) *protocol.LookupReply {
	return &protocol.LookupReply{
		Namespace: "pool", Term: term, From: lsn - 1, LSN: lsn,
		Changes: []table.Change{{LSN: lsn, Kind: table.Vacated, Generation: 1, Holder: &table.Holder{Owner: "o"}}},
	}
}

// heard takes what waits for a lookup, and returns the first and the last change
// of each message.
func heard(t *testing.T, s *lookupStream) (all [][2]leasehold.LSN) {
	t.Helper()
	for len(s.mailbox) > 0 {
		reply := (<-s.mailbox).update.reply
		first, last := reply.Changes[0].LSN, reply.Changes[len(reply.Changes)-1].LSN
		if reply.From != first-1 || reply.LSN != last || int(last-first)+1 != len(reply.Changes) {
			t.Errorf("from %d to %d: %v", reply.From, reply.LSN, reply.Changes)
		}
		all = append(all, [2]leasehold.LSN{first, last})
	}
	return all
}

const many = 1000

// TestNewsIsGathered: a few changes go out at once, and those after them together.
func TestNewsIsGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookups(many)
		streams := following(t, l, many)
		expect := func(want ...[2]leasehold.LSN) {
			t.Helper()
			synctest.Wait()
			for _, s := range streams {
				if got := heard(t, s); !slices.Equal(got, want) {
					t.Fatalf("heard %v, want %v", got, want)
				}
			}
		}
		lsn := leasehold.LSN(0)
		var first *protocol.LookupReply
		next := func() { lsn++; first = change(1, lsn); l.broadcast(first) }
		for range inARow {
			next()
			expect([2]leasehold.LSN{lsn, lsn})
		}
		next() // it waits
		for range 5 {
			l.broadcast(change(1, lsn+1))
			lsn++
		}
		expect()
		time.Sleep(many * tellingOne)
		expect([2]leasehold.LSN{inARow + 1, inARow + 6})
		next()
		l.broadcast(change(2, lsn+1)) // another leader's
		expect([2]leasehold.LSN{lsn, lsn})
		time.Sleep(many * tellingOne)
		expect([2]leasehold.LSN{lsn + 1, lsn + 1})
		time.Sleep(time.Minute)
		l.broadcast(change(2, lsn+2)) // after a quiet time
		expect([2]leasehold.LSN{lsn + 2, lsn + 2})
		if len(first.Changes) != 1 {
			t.Error("somebody else's changes were changed")
		}
	})
}

// TestNewsOfFewIsNotGathered: it costs little.
func TestNewsOfFewIsNotGathered(t *testing.T) {
	l := newLookups(many)
	s := following(t, l, 10)[0]
	for lsn := range leasehold.LSN(3) {
		l.broadcast(change(1, 1+lsn))
	}
	if got := heard(t, s); len(got) != 3 {
		t.Errorf("heard %v, want three messages", got)
	}
}

// TestGatheredNewsIsBounded: what does not fit goes out before its time.
func TestGatheredNewsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookups(many)
		s := following(t, l, many)[0]
		for lsn := range leasehold.LSN(inARow + mostGathered + 1) {
			l.broadcast(change(1, 1+lsn))
		}
		want := [][2]leasehold.LSN{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {inARow + 1, inARow + mostGathered}}
		if got := heard(t, s); !slices.Equal(got, want) {
			t.Errorf("heard %v, want %v", got, want)
		}
		l.close()
		time.Sleep(time.Minute)
		if got := heard(t, s); got != nil {
			t.Errorf("heard %v after the end", got)
		}
	})
}

// BenchmarkNews is a change that is told to a thousand lookups, right after
// another.
func BenchmarkNews(b *testing.B) {
	l := newLookups(many)
	streams := following(b, l, many)
	told := 0
	b.ReportAllocs()
	for lsn := leasehold.LSN(1); b.Loop(); lsn++ {
		l.broadcast(change(1, lsn))
		l.mu.Lock()
		for _, s := range streams {
			for len(s.mailbox) > 0 {
				<-s.mailbox
				told++
			}
		}
		l.mu.Unlock()
	}
	b.ReportMetric(float64(told)/float64(b.N), "messages/op")
	l.close()
}
