package broadcast

import (
	"errors"
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A lookup that does not read costs bounded memory, and detects the gap by the messages that it receives
// later.
func TestSlowLookup(t *testing.T) {
	l := NewLookups(t.Context(), Config{MaxStreams: 8})
	s := open(t, l, &fakeStream{ctx: t.Context()})
	s.Subscribe(0, "pool")
	const changes = 10*maxQueuedUpdates + 7
	for i := range changes {
		l.Broadcast(change(i, i+1))
	}
	waiting := s.queue.drain()
	if len(waiting) == 0 || len(waiting) > maxQueuedUpdates {
		t.Fatalf("%d messages wait, want 1 to %d", len(waiting), maxQueuedUpdates)
	}
	first, last := waiting[0].update.reply, waiting[len(waiting)-1].update.reply
	if first.From == 0 || last.LSN != changes {
		t.Errorf("the queue goes from %d to %d, want a gap before it and the newest at its end", first.From, last.LSN)
	}
}

// Few lookups share one encoding of an update.
func TestUpdateIsEncodedOnce(t *testing.T) {
	l := NewLookups(t.Context(), Config{MaxStreams: 8})
	var got []*update
	var all []*Lookup
	for range 3 {
		s := open(t, l, &fakeStream{ctx: t.Context()})
		s.Subscribe(0, "pool")
		all = append(all, s)
	}
	l.Broadcast(change(0, 1))
	for _, s := range all {
		got = append(got, s.queue.drain()[0].update)
	}
	if len(slices.Compact(got)) != 1 {
		t.Error("an update is encoded for each lookup")
	}
}

// Of several requests of a lookup during a busy step the machine gets the newest, once.
func TestNewestQuestion(t *testing.T) {
	var s Lookup
	ask := func(seq protocol.Seq, lsn leasehold.LSN) bool {
		return s.Ask(mono.Instant(seq), &protocol.LookupRequest{Seq: seq, LSN: lsn})
	}
	if !ask(1, 5) || ask(2, 6) || ask(3, 7) {
		t.Error("want the machine to be given the first question only")
	}
	if got := s.Question(); got.Seq != 3 || got.LSN != 7 {
		t.Errorf("the question is %d, from LSN %d, want 3 and 7", got.Seq, got.LSN)
	}
	if !ask(4, 7) {
		t.Error("no question waits, and the machine is not given the next one")
	}
	s.answered(9)
	if got := s.status(10); got.GetHeard() != 6 || got.GetLsn() != 7 || got.GetBehind() != 2 {
		t.Errorf("the status is %v, want a question 6 ns ago, at LSN 7, 2 behind", got)
	}
}

// The receiving goroutine sends the reply to its request without waking the handler. The handler sends all other
// messages.
func TestRespond(t *testing.T) {
	l := NewLookups(t.Context(), Config{MaxStreams: 8})
	s := open(t, l, &fakeStream{ctx: t.Context()})
	var sent []message
	s.send = func(m message) error {
		sent = append(sent, m)
		return nil
	}
	woken := func() bool {
		select {
		case <-s.ready:
			return true
		default:
			return false
		}
	}
	reply := func(ran bool) func() bool {
		return func() bool {
			if s.acquire() {
				t.Error("another goroutine sends meanwhile")
			}
			if ran {
				l.Answer(s.id, &protocol.LookupReply{Namespace: "pool", Term: 1, LSN: 1})
			}
			return ran
		}
	}
	if ran, err := s.Respond(reply(true)); !ran || err != nil || len(sent) != 1 || woken() {
		t.Errorf("%d messages are sent: %v, %v", len(sent), ran, err)
	}
	if ran, err := s.Respond(reply(false)); ran || err != nil || len(sent) != 1 || woken() {
		t.Errorf("%d messages are sent: %v, %v", len(sent), ran, err)
	}
	s.send = func(message) error {
		s.with(func(q *queue) { q.addUpdates(updates(change(1, 2))) })
		return nil
	}
	if _, err := s.Respond(reply(true)); err != nil || !woken() || len(s.queue.drain()) != 1 {
		t.Errorf("the handler is not woken for an update that came meanwhile: %v", err)
	}
	broken := errors.New("broken")
	s.send = func(message) error { return broken }
	if _, err := s.Respond(reply(true)); !errors.Is(err, broken) || s.acquire() {
		t.Errorf("a message is sent on a broken stream: %v", err)
	}
}

// A bulk reply is left to the handler, which waits for a slot.
func TestRespondLeavesBulk(t *testing.T) {
	l := NewLookups(t.Context(), Config{MaxStreams: 8})
	s := open(t, l, &fakeStream{ctx: t.Context()})
	s.send = func(message) error {
		t.Error("the receiving goroutine sends a bulk reply")
		return nil
	}
	ran, err := s.Respond(func() bool {
		l.Answer(s.id, change(0, 8192))
		return true
	})
	if !ran || err != nil || len(s.ready) == 0 || len(s.queue.drain()) != 1 {
		t.Errorf("the handler is not woken: %v, %v", ran, err)
	}
}

// The limit of streams holds for lookups, and for owners.
func TestLimit(t *testing.T) {
	l := NewLookups(t.Context(), Config{MaxStreams: 1})
	first := open(t, l, &fakeStream{ctx: t.Context()})
	if _, err := l.Open(&fakeStream{ctx: t.Context()}); leasehold.KindOf(err) != leasehold.ErrLimit {
		t.Errorf("a second lookup is admitted: %v", err)
	}
	first.leave()
	open(t, l, &fakeStream{ctx: t.Context()})
	if l.Count() != 1 {
		t.Errorf("%d lookups are counted", l.Count())
	}
}

// A stream whose handler has returned is not subscribed by a request that is handled then.
func TestSubscribeAfterLeave(t *testing.T) {
	l := NewLookups(t.Context(), Config{MaxStreams: 1})
	s := open(t, l, &fakeStream{ctx: t.Context()})
	s.leave()
	s.Subscribe(0, "n")
	l.Send(s.id, &leaseholdv1.FollowResponse{})
	if len(l.CountByNamespace()) != 0 || s.queue.pending() || l.Namespace(s.id) != "" {
		t.Errorf("a lookup is subscribed that has left: %v", l.CountByNamespace())
	}
}
