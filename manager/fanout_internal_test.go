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

func change(from, to int) *protocol.LookupReply {
	r := &protocol.LookupReply{Namespace: "pool", Term: 1, Leader: "m", From: leasehold.LSN(from), LSN: leasehold.LSN(to)}
	for i := from; i < to; i++ {
		r.Changes = append(r.Changes, table.Change{
			LSN: leasehold.LSN(i + 1), Kind: table.Granted, Generation: leasehold.Generation(i + 1),
			Holder: &table.Holder{Owner: "o", Session: leasehold.Session{1}, Addr: "o:80", Weight: 1},
		})
	}
	return r
}

// Many lookups are told of everything, in order and without a gap, in far fewer messages than
// there are changes; and the first change comes at once.
func TestWaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lookups, changes, takes = 3*fewLookups + 7, 1000, 100 * time.Microsecond
		l := newLookups(lookups)
		all := listening(t, l, lookups)
		for _, a := range all {
			a.takes = takes
		}
		l.broadcast(change(0, 1))
		time.Sleep(takes)
		synctest.Wait()
		if !slices.ContainsFunc(all, func(a *audience) bool { return a.at.Load() == 1 }) {
			t.Error("nobody has been told at once")
		}
		for i := 1; i < changes; i++ {
			l.broadcast(change(i, i+1))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		for i, a := range all {
			if a.at.Load() != changes || a.gaps.Load() != 0 || a.messages.Load() > changes/50 {
				t.Fatalf("lookup %d has heard up to %d, in %d messages with %d gaps", i, a.at.Load(), a.messages.Load(), a.gaps.Load())
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
		if rest := wave(); rest != took {
			t.Errorf("waves of %v: it rests for %v in the end, want %v", took, rest, took)
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
