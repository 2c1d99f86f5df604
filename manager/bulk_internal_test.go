package manager

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A fakeStream takes messages in some time, and counts.
type fakeStream struct {
	grpc.ServerStream
	ctx   context.Context //nolint:containedctx // it is the stream's
	takes time.Duration
	count *atomic.Int64 // large messages
	last  any
}

func (f *fakeStream) Context() context.Context { return f.ctx }

func (f *fakeStream) SendMsg(m any) error {
	if _, large := m.(*wire.Frame); large {
		f.count.Add(1)
		time.Sleep(f.takes)
	}
	f.last = m
	return nil
}

// Few are sent something large at a time. Who reads slowly has a place for a moment.
func TestBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookups(100)
		defer l.close()
		places := bulkAtOnce()
		reply := &protocol.LookupReply{Namespace: "pool", Leader: "m", Term: 3, LSN: 7}
		large := outgoing{update: &encoded{reply: reply}, answer: reply}
		var begun atomic.Int64
		send := func(takes time.Duration) *fakeStream {
			s := &fakeStream{ctx: t.Context(), takes: takes, count: &begun}
			go func() {
				if err := l.sendBulk(s, newMail(), large); err != nil {
					t.Error(err)
				}
			}()
			return s
		}
		for range places {
			send(time.Hour)
		}
		synctest.Wait()
		var quick []*fakeStream
		for range 3 * places {
			quick = append(quick, send(10*time.Millisecond))
		}
		synctest.Wait()
		if n := begun.Load(); n != int64(places) {
			t.Errorf("%d have begun, and there are %d places", n, places)
		}
		time.Sleep(longestBulk)
		synctest.Wait()
		if n := begun.Load(); n != int64(2*places) {
			t.Errorf("after a moment %d have begun", n)
		}
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if n := begun.Load(); n != int64(4*places) {
			t.Errorf("at last %d have begun", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(l.bulk) != 0 {
			t.Errorf("%d places are never free again", len(l.bulk))
		}
		after, ok := quick[0].last.(*leaseholdv1.FollowResponse)
		if u := after.GetUpdate(); !ok || u.GetLsn() != 7 || u.GetEcho() != 0 || u.GetTable() != nil || u.GetChanges() != nil {
			t.Errorf("what is sent last is %v", quick[0].last)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		for range places {
			l.bulk <- struct{}{}
		}
		cancel()
		if err := l.sendBulk(&fakeStream{ctx: cancelled}, newMail(), large); err == nil {
			t.Error("it is sent to somebody who has gone")
		}
		for range places {
			<-l.bulk
		}
	})
}

// Who asks again while there is no place is answered once, with what it asked last.
func TestBulkAnswersTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLookups(100)
		defer l.close()
		for range bulkAtOnce() {
			l.bulk <- struct{}{}
		}
		answer := func(lsn leasehold.LSN) outgoing {
			reply := &protocol.LookupReply{Namespace: "pool", Leader: "m", Term: 3, LSN: lsn}
			return outgoing{update: &encoded{reply: reply}, answer: reply}
		}
		m, s := newMail(), &fakeStream{ctx: t.Context(), count: &atomic.Int64{}}
		go func() { _ = l.sendBulk(s, m, answer(7)) }()
		synctest.Wait()
		m.reply(answer(8))
		m.reply(answer(9))
		for range bulkAtOnce() {
			<-l.bulk
		}
		synctest.Wait()
		if _, more := m.take(); more || s.count.Load() != 1 {
			t.Errorf("%d tables are sent, and there are more: %v", s.count.Load(), more)
		}
		if after, ok := s.last.(*leaseholdv1.FollowResponse); !ok || after.GetUpdate().GetLsn() != 9 {
			t.Errorf("what is sent last is %v", s.last)
		}
	})
}
