package changelog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/changelog"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"pgregory.net/rapid"
)

const second = mono.Instant(time.Second)

var (
	ann = &table.Holder{Owner: "ann", Session: leasehold.Session{1}, Addr: "a", Weight: 1}
	bob = &table.Holder{Owner: "bob", Session: leasehold.Session{2}, Addr: "b", Weight: 1}
)

// A keeper is a table with its log.
type keeper struct {
	table *table.Table
	log   *changelog.Log
}

// newKeeper returns a table of ten ranges, and a log that starts after them.
func newKeeper(most int, age time.Duration) *keeper {
	k := &keeper{table: table.New()}
	k.grant(10)
	k.log = changelog.New(k.table.LSN(), most, age)
	return k
}

// grant applies n changes to the table, and returns them.
func (k *keeper) grant(n int) []table.Change {
	var changes []table.Change
	for range n {
		at := uint64(k.table.LSN())
		c := table.Change{
			LSN: leasehold.LSN(at + 1), Kind: table.Granted, Generation: k.table.Newest() + 1, Holder: ann,
			Range: leasehold.Range{Start: leasehold.Key(10 * at), Limit: leasehold.Key(10*at + 10)},
		}
		if err := k.table.Apply(&c); err != nil {
			panic(err)
		}
		changes = append(changes, c)
	}
	return changes
}

// move moves the ranges of the first n changes to the other owner.
func (k *keeper) move(now mono.Instant, n int) {
	var changes []table.Change
	for i := range n {
		at := leasehold.Key(10 * i)
		_, e := k.table.At(at)
		to := ann
		if e.Holder == ann {
			to = bob
		}
		c := table.Change{
			LSN: k.table.LSN() + 1, Kind: table.Moved, Generation: k.table.Newest() + 1, Holder: to, From: e.Holder,
			Range: leasehold.Range{Start: at, Limit: at + 10},
		}
		if err := k.table.Apply(&c); err != nil {
			panic(err)
		}
		changes = append(changes, c)
	}
	k.log.Append(now, changes)
}

func (k *keeper) append(now mono.Instant, n int) { k.log.Append(now, k.grant(n)) }

// reply describes the reply to a lookup at lsn.
func (k *keeper) reply(now mono.Instant, lsn leasehold.LSN) string {
	reply := &protocol.LookupReply{}
	kind := k.log.FillReply(now, &protocol.LookupRequest{Seq: 3, LSN: lsn}, k.table, k.table.Clone, reply)
	if reply.Echo != 3 || reply.LSN != k.table.LSN() || reply.From != lsn {
		return fmt.Sprintf("echo %d, lsn %d from %d", reply.Echo, reply.LSN, reply.From)
	}
	switch {
	case kind == changelog.Ahead && reply.Snapshot == nil && reply.Changes == nil:
		return "ahead"
	case kind == changelog.Current && reply.Snapshot == nil && reply.Changes == nil:
		return "current"
	case kind == changelog.Snapshot && reply.Snapshot.LSN() == k.table.LSN() && reply.Changes == nil:
		return "snapshot"
	case kind == changelog.Changes && reply.Snapshot == nil && len(reply.Changes) > 0:
		return fmt.Sprintf("%d to %d", reply.Changes[0].LSN, reply.Changes[len(reply.Changes)-1].LSN)
	}
	return fmt.Sprintf("kind %d, snapshot %v, %d changes", kind, reply.Snapshot, len(reply.Changes))
}

func TestFillReply(t *testing.T) {
	k := newKeeper(100, time.Minute)
	k.append(0, 2)
	k.append(0, 3)
	for lsn, want := range map[leasehold.LSN]string{
		16: "ahead", 15: "current", 14: "15 to 15", 12: "13 to 15", 10: "11 to 15",
		9: "snapshot", // from before the start of the log
		0: "snapshot", // the lookup has no table to which changes could apply
	} {
		if got := k.reply(0, lsn); got != want {
			t.Errorf("a lookup at %d gets %q, want %q", lsn, got, want)
		}
	}
}

// A lookup without a table gets a snapshot, even if the log goes back to LSN 0: it may have lost
// its table.
func TestEmptyLookupGetsASnapshot(t *testing.T) {
	k := &keeper{table: table.New(), log: changelog.New(0, 100, time.Minute)}
	k.append(0, 3)
	if got := k.reply(0, 0); got != "snapshot" {
		t.Errorf("a lookup at LSN 0 gets %q", got)
	}
}

// Moves are in the log like all other changes, with source and target.
func TestReplyWithMoves(t *testing.T) {
	k := newKeeper(100, time.Minute)
	k.move(0, 3)
	if got := k.reply(0, 11); got != "12 to 13" {
		t.Errorf("a lookup that has missed two moves gets %q", got)
	}
	reply := &protocol.LookupReply{}
	k.log.FillReply(0, &protocol.LookupRequest{Seq: 1, LSN: 12}, k.table, k.table.Clone, reply)
	want := []table.Change{{LSN: 13, Kind: table.Moved, Range: leasehold.Range{Start: 20, Limit: 30}, Generation: 13, Holder: bob, From: ann}}
	if diff := cmp.Diff(want, reply.Changes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A lookup that has missed more changes than the table has ranges gets a snapshot.
func TestReplyIsTheSmaller(t *testing.T) {
	k := &keeper{table: table.New(), log: changelog.New(0, 100, time.Minute)}
	k.append(0, 1)
	toggle := func(kind table.Kind, g leasehold.Generation) {
		c := table.Change{LSN: k.table.LSN() + 1, Kind: kind, Generation: g, Holder: ann, Range: leasehold.Range{Limit: 10}}
		if err := k.table.Apply(&c); err != nil {
			t.Fatal(err)
		}
		k.log.Append(0, []table.Change{c})
	}
	toggle(table.Vacated, 1)
	toggle(table.Granted, 2) // the table has two ranges after three changes
	if got := k.reply(0, 1); got != "2 to 3" {
		t.Errorf("two changes of two ranges: %q", got)
	}
	toggle(table.Vacated, 2)
	if got := k.reply(0, 1); got != "snapshot" {
		t.Errorf("three changes of at most two ranges: %q", got)
	}
}

func TestTruncationByNumberAndAge(t *testing.T) {
	k := newKeeper(5, time.Minute)
	k.append(0, 2)
	k.append(10*second, 3)
	if k.log.Len() != 5 {
		t.Fatalf("%d changes are kept, want 5", k.log.Len())
	}
	k.append(20*second, 1) // exceeds the limit: the first batch is dropped
	if got := k.reply(20*second, 12); got != "13 to 16" || k.log.Len() != 4 {
		t.Errorf("%d changes are kept, and a lookup gets %q", k.log.Len(), got)
	}
	if got := k.reply(70*second, 12); got != "13 to 16" {
		t.Errorf("after a minute: %q", got)
	}
	if got := k.reply(70*second+1, 12); got != "snapshot" || k.log.Len() != 1 {
		t.Errorf("after more than a minute %d changes are kept: %q", k.log.Len(), got)
	}
	k.log.Append(90*second, nil) // no effect
	if k.log.Len() != 1 {
		t.Errorf("%d changes are kept, want 1", k.log.Len())
	}
}

func TestLimit(t *testing.T) {
	k := newKeeper(100, time.Minute)
	k.append(0, 2)
	k.append(10*second, 3)
	k.log.Limit(20*second, 4, time.Minute)
	if k.log.Len() != 3 {
		t.Errorf("of at most 4 changes %d are kept, want 3", k.log.Len())
	}
	k.log.Limit(20*second, 4, 5*time.Second)
	if k.log.Len() != 0 || k.reply(20*second, 15) != "current" || k.reply(20*second, 14) != "snapshot" {
		t.Errorf("%d changes are kept for longer than they may", k.log.Len())
	}
}

// TestAcross: only a lookup that can cross the gap, and whose table is the one before it, gets the crossing. The log
// goes on with the limits that it was given.
func TestAcross(t *testing.T) {
	const base = 1000
	for _, test := range []struct {
		after   int // LSN before the gap
		lsn     leasehold.LSN
		crosses bool
		want    bool
	}{
		{15, 15, true, true},
		{15, 15, false, false}, // an old version
		{15, 14, true, false},
		{15, 16, true, false}, // of a lost history
		{1, 1, true, true},
		{0, 0, true, false}, // it has no table
	} {
		before := &keeper{table: table.New()}
		before.grant(test.after)
		k := &keeper{table: before.table.Rebased(base, false, func(leasehold.Range, table.Entry) bool { return false })}
		crossing := before.table.Crossing(k.table)
		k.log = changelog.NewAcross(crossing, 5, time.Minute)
		reply := &protocol.LookupReply{}
		kind := k.log.FillReply(0, &protocol.LookupRequest{LSN: test.lsn, Crosses: test.crosses}, k.table, k.table.Clone, reply)
		if crossed := kind == changelog.Changes && reply.Crossing == crossing && reply.Snapshot == nil; crossed != test.want || !crossed && reply.Snapshot == nil {
			t.Errorf("%+v: kind %d, crossing %v", test, kind, reply.Crossing)
		}
		k.append(0, 2)
		if got := k.reply(30*second, base+1); got != "1002 to 1002" {
			t.Errorf("after the gap: %q", got)
		}
	}
}

// A reply is not modified by later appends and truncations.
func TestRepliesAreImmutable(t *testing.T) {
	k := newKeeper(4, time.Minute)
	k.append(0, 2)
	k.append(0, 1) // in two appends, so that the slice has spare capacity
	reply := &protocol.LookupReply{}
	k.log.FillReply(0, &protocol.LookupRequest{Seq: 1, LSN: 11}, k.table, k.table.Clone, reply)
	before := append([]table.Change(nil), reply.Changes...)
	mine := append(reply.Changes, table.Change{LSN: 99}) //nolint:gocritic // append must copy
	for range 10 {
		k.append(0, 1)
	}
	if got := mine[len(mine)-1].LSN; got != 99 {
		t.Errorf("a change appended to the reply became lsn %d", got)
	}
	if diff := cmp.Diff(before, reply.Changes); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if got := k.reply(0, 19); got != "20 to 23" {
		t.Errorf("a lookup gets %q", got)
	}
}

// A follower that was up to date once and applies all replies has the same table as the log, for
// any sequence of appends and truncations.
func TestFollowersCatchUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 20).Draw(t, "most")
		k := newKeeper(most, 10*time.Second)
		follower := k.table.Clone()
		now := mono.Instant(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
			if rapid.IntRange(0, 3).Draw(t, "move") == 0 {
				k.move(now, rapid.IntRange(0, 6).Draw(t, "n"))
				continue
			}
			if rapid.Bool().Draw(t, "append") {
				k.append(now, rapid.IntRange(0, 6).Draw(t, "n"))
				if k.log.Len() > most {
					t.Fatalf("%d changes are kept, at most %d may be", k.log.Len(), most)
				}
				continue
			}
			reply := &protocol.LookupReply{}
			kind := k.log.FillReply(now, &protocol.LookupRequest{Seq: 1, LSN: follower.LSN()}, k.table, k.table.Clone, reply)
			for i := range reply.Changes {
				if err := follower.Apply(&reply.Changes[i]); err != nil {
					t.Fatal(err)
				}
			}
			if kind == changelog.Snapshot {
				follower = reply.Snapshot
			}
			for r, pair := range keyrange.Diff(follower.Entries(), k.table.Entries()) {
				t.Fatalf("a follower has %+v at %v, want %+v", pair[0], r, pair[1])
			}
			if kind == changelog.Ahead || follower.LSN() != k.table.LSN() || follower.Len() != k.table.Len() {
				t.Fatalf("kind %d: a follower is at lsn %d with %d ranges, want %d and %d", kind, follower.LSN(), follower.Len(), k.table.LSN(), k.table.Len())
			}
		}
	})
}
