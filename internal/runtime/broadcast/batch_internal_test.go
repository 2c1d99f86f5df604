package broadcast

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A few waves after a quiet time have no pause, however long they take; waves without end take half
// of the time.
func TestPause(t *testing.T) {
	for _, took := range []time.Duration{10 * time.Millisecond, 400 * time.Millisecond} {
		var b batch
		now := time.Unix(1000, 0)
		wave := func() time.Duration {
			begun := now
			now = now.Add(took)
			pause := max(0, b.pause(begun, now))
			now = now.Add(pause)
			return pause
		}
		for i := range 2 {
			if pause := wave(); pause != 0 {
				t.Errorf("waves of %v: the pause after wave %d is %v", took, i+1, pause)
			}
		}
		for range 100 {
			wave()
		}
		if pause := wave(); pause != took {
			t.Errorf("waves of %v: the pause in the end is %v, want %v", took, pause, took)
		}
		now = now.Add(time.Minute)
		if pause := wave(); pause != 0 {
			t.Errorf("waves of %v: the pause after a quiet time is %v", took, pause)
		}
	}
}

// Replies that do not continue the last one are sent as they are.
func TestBatch(t *testing.T) {
	later, other := change(5, 6), change(6, 7)
	later.Term, other.Leader = 2, "n"
	var b batch
	for _, r := range []*protocol.LookupReply{
		change(0, 2), change(2, 3), change(4, 5), later, other, {Namespace: "pool", Snapshot: table.New(), LSN: 7}, change(7, 8),
	} {
		b.add(r)
	}
	var got []leasehold.LSN
	for _, r := range b.take() {
		got = append(got, r.From, r.LSN)
	}
	if want := []leasehold.LSN{0, 3, 4, 5, 5, 6, 6, 7, 0, 7, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("the batch is %v, want %v", got, want)
	}
	if !b.active || len(b.take()) != 0 || b.active {
		t.Error("want waves until the batch is empty")
	}
}

func TestBatchCopiesReplies(t *testing.T) {
	theirs := change(0, 1)
	theirs.Changes = append(make([]table.Change, 0, 4), theirs.Changes...)
	var b batch
	b.add(theirs)
	b.add(change(1, 2))
	if theirs.LSN != 1 || theirs.Changes[:2][1].LSN != 0 {
		t.Error("the caller's reply was changed")
	}
}

func TestBatchIsBounded(t *testing.T) {
	var b batch
	b.add(change(0, maxBatchChanges))
	b.add(change(maxBatchChanges, maxBatchChanges+1))
	if len(b.replies) != 2 {
		t.Error("a message has too many changes")
	}
	for i := range 10*maxQueuedUpdates + 7 {
		b.add(change(2*i, 2*i+1))
	}
	if n := len(b.replies); n > maxQueuedUpdates || b.replies[n-1].LSN != 2*(10*maxQueuedUpdates+6)+1 {
		t.Errorf("%d messages wait, the last at LSN %d", n, b.replies[n-1].LSN)
	}
}
