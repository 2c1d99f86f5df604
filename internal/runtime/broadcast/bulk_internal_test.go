package broadcast

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

type followStream = grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]

// A fakeStream takes some time for each frame, and counts them.
type fakeStream struct {
	followStream
	ctx   context.Context //nolint:containedctx // it is the stream's
	takes time.Duration
	count *atomic.Int64
	last  any
}

func (f *fakeStream) Context() context.Context { return f.ctx }

func (f *fakeStream) SendMsg(m any) error {
	if _, frame := m.(*wire.Frame); frame {
		f.count.Add(1)
		time.Sleep(f.takes)
	}
	f.last = m
	return nil
}

func open(t testing.TB, l *Lookups, stream followStream) *Lookup {
	t.Helper()
	s, err := l.Open(stream)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// As many bulk messages are sent at a time as there are slots. A slow lookup has one for a moment.
func TestBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := bulkSlots()
		l := NewLookups(t.Context(), Config{MaxStreams: 5 * slots})
		var begun atomic.Int64
		send := func(takes time.Duration) *fakeStream {
			stream := &fakeStream{ctx: t.Context(), takes: takes, count: &begun}
			s := open(t, l, stream)
			go func() {
				if err := s.sendBulk(answerAt(3, 7)); err != nil {
					t.Error(err)
				}
			}()
			return stream
		}
		for range slots {
			send(time.Hour)
		}
		synctest.Wait()
		var quick []*fakeStream
		for range 3 * slots {
			quick = append(quick, send(10*time.Millisecond))
		}
		for _, step := range []struct {
			after time.Duration
			begun int
		}{{0, slots}, {maxBulkTime, 2 * slots}, {20 * time.Millisecond, 4 * slots}} {
			time.Sleep(step.after)
			synctest.Wait()
			if n := begun.Load(); n != int64(step.begun) {
				t.Errorf("%v later %d sends have begun, want %d with %d slots", step.after, n, step.begun, slots)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(l.slots) != 0 {
			t.Errorf("%d slots are never free again", len(l.slots))
		}
		after, ok := quick[0].last.(*leaseholdv1.FollowResponse)
		if u := after.GetUpdate(); !ok || u.GetLsn() != 7 || u.GetEcho() != 0 || u.GetTable() != nil || u.GetChanges() != nil {
			t.Errorf("the last message is %v", quick[0].last)
		}
	})
}

// While there is no slot, a newer reply replaces the one that waits for it, and a stream that ends
// is not sent on.
func TestBulkWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLookups(t.Context(), Config{MaxStreams: 2})
		for range bulkSlots() {
			l.slots <- struct{}{}
		}
		stream := &fakeStream{ctx: t.Context(), count: &atomic.Int64{}}
		s := open(t, l, stream)
		go func() { _ = s.sendBulk(answerAt(3, 7)) }()
		synctest.Wait()
		s.with(func(q *queue) { q.putReply(answerAt(3, 8)) })
		s.with(func(q *queue) { q.putReply(answerAt(3, 9)) })
		ended, end := context.WithCancel(t.Context())
		end()
		if err := open(t, l, &fakeStream{ctx: ended}).sendBulk(answerAt(3, 7)); err == nil {
			t.Error("a stream that has ended is sent on")
		}
		for range bulkSlots() {
			<-l.slots
		}
		synctest.Wait()
		if s.queue.pending() || stream.count.Load() != 1 {
			t.Errorf("%d tables are sent, and more wait: %v", stream.count.Load(), s.queue.pending())
		}
		if after, ok := stream.last.(*leaseholdv1.FollowResponse); !ok || after.GetUpdate().GetLsn() != 9 {
			t.Errorf("the last message is %v", stream.last)
		}
	})
}
