package manager

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An audience is a lookup at the other end of a stream.
type audience struct {
	grpc.ServerStream
	ctx      context.Context //nolint:containedctx // it is the stream's
	stream   *lookupStream
	takes    time.Duration // how long it takes to hear a message
	deaf     chan struct{} // it hears nothing until this is closed; nil if it hears
	hearing  atomic.Bool
	at       atomic.Uint64
	messages atomic.Int64
	gaps     atomic.Int64
}

func (a *audience) Context() context.Context { return a.ctx }

// SendMsg waits for whoever is deaf, as gRPC does when it has taken much.
func (a *audience) SendMsg(m any) error {
	if a.hearing.Swap(true) {
		panic("two send at a time")
	}
	defer a.hearing.Store(false)
	if a.deaf != nil {
		select {
		case <-a.deaf:
		case <-a.ctx.Done():
			return a.ctx.Err()
		}
	}
	time.Sleep(a.takes)
	var got leaseholdv1.FollowResponse
	if err := proto.Unmarshal(reflect.ValueOf(m.(*wire.Frame)).Elem().FieldByName("shared").Bytes(), &got); err != nil {
		panic(err)
	}
	r, err := wire.ToLookupReply(got.GetUpdate(), protocol.DefaultLimits)
	if err != nil {
		panic(err)
	}
	if uint64(r.From) != a.at.Load() {
		a.gaps.Add(1)
	}
	a.at.Store(uint64(r.LSN))
	a.messages.Add(1)
	return nil
}

// listening has lookups converse with a manager until the test ends. A stream's context ends with
// its conversation, as gRPC's does.
func listening(t *testing.T, l *lookups, n int) (all []*audience) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stopped, stop := context.WithCancel(context.Background())
	m := &Manager{ctx: ctx, lookups: l}
	for range n {
		a := &audience{}
		s, err := l.admit("", a)
		if err != nil {
			t.Fatal(err)
		}
		a.stream = s
		own, end := context.WithCancel(stopped)
		a.ctx = own
		l.subscribe(0, s, "pool")
		all = append(all, a)
		m.running.Go(func() {
			defer end()
			defer l.leave(s)
			_ = converse(m, conversation[leaseholdv1.FollowRequest]{
				ctx: own, ready: s.mail.ready, speak: func() error { return l.sendAll(a, s.mail) },
				recv: func() (*leaseholdv1.FollowRequest, error) {
					<-own.Done()
					return nil, own.Err()
				},
			})
		})
	}
	t.Cleanup(func() { // in a manager's order
		cancel()
		l.close()
		stop()
		m.running.Wait()
	})
	return all
}

// Lookups that do not hear keep the others waiting once each, and for a moment. What is
// said meanwhile they are told later, in order.
func TestWavesPassTheSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lookups, deaf, changes = 2 * fewLookups, mostStuck / 2, 10
		l := newLookups(lookups)
		all := listening(t, l, lookups)
		hear := make(chan struct{})
		for i := range deaf {
			all[i*lookups/deaf].deaf = hear
		}
		l.broadcast(change(0, 1))
		time.Sleep(2*stuckAfter + 2*deaf*stuckAgain) // who is stuck is found out within two moments
		synctest.Wait()
		for i, a := range all {
			if a.deaf == nil && a.at.Load() != 1 {
				t.Fatalf("lookup %d has not been told after a moment for each who does not hear", i)
			}
		}
		time.Sleep(time.Minute) // until that wave has been rested after
		for i := 1; i < changes; i++ {
			l.broadcast(change(i, i+1))
			synctest.Wait() // and no time passes
		}
		for i, a := range all {
			if want := a.deaf == nil; want != (a.at.Load() == changes) || !want && a.at.Load() != 0 {
				t.Fatalf("lookup %d (it hears: %v) has heard up to %d", i, want, a.at.Load())
			}
		}
		close(hear)
		synctest.Wait()
		for i, a := range all {
			if a.at.Load() != changes || a.gaps.Load() != 0 {
				t.Fatalf("in the end lookup %d has heard up to %d, with %d gaps", i, a.at.Load(), a.gaps.Load())
			}
		}
	})
}

// longest is how long a wave may take, whoever is in it.
const longest = time.Second / 2

// However many do not hear, the others do, within a bound, and a manager can end.
func TestDeafMultitude(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lookups = 4 * fewLookups
		l := newLookups(lookups)
		all := listening(t, l, lookups)
		for i, a := range all {
			if i%2 == 0 {
				a.deaf = make(chan struct{}) // for ever
			}
		}
		for n := range 3 {
			l.broadcast(change(n, n+1))
			time.Sleep(longest)
			synctest.Wait()
			for i, a := range all {
				if a.deaf == nil && (a.at.Load() != uint64(n+1) || a.gaps.Load() != 0) {
					t.Fatalf("lookup %d has heard up to %d of %d, with %d gaps", i, a.at.Load(), n+1, a.gaps.Load())
				}
			}
			time.Sleep(time.Minute) // until that wave has been rested after
		}
	})
}

// Those who are slow, though they hear, do not make the others wait for all of them.
func TestWavesPassTheSluggish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lookups = 4 * fewLookups
		l := newLookups(lookups)
		all := listening(t, l, lookups)
		for i, a := range all {
			if i%2 == 0 {
				a.takes = stuckAfter * 3 / 4
			}
		}
		for n := range 3 {
			l.broadcast(change(n, n+1))
			time.Sleep(longest)
			synctest.Wait()
			for i, a := range all {
				if a.at.Load() != uint64(n+1) || a.gaps.Load() != 0 {
					t.Fatalf("lookup %d has heard up to %d of %d, with %d gaps", i, a.at.Load(), n+1, a.gaps.Load())
				}
			}
			time.Sleep(time.Minute)
		}
	})
}
