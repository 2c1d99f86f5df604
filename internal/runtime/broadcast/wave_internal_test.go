package broadcast

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A client is a lookup at the other end of a stream.
type client struct {
	followStream
	ctx      context.Context //nolint:containedctx // it is the stream's
	takes    time.Duration   // how long it takes to read a message
	blocked  chan struct{}   // it reads nothing until this is closed; nil if it reads
	reading  atomic.Bool
	at       atomic.Uint64
	messages atomic.Int64
	gaps     atomic.Int64
}

func (c *client) Context() context.Context { return c.ctx }

func (c *client) Recv() (*leaseholdv1.FollowRequest, error) {
	<-c.ctx.Done()
	return nil, c.ctx.Err()
}

// SendMsg waits for a client that does not read, as gRPC does when its buffer is full.
func (c *client) SendMsg(m any) error {
	if c.reading.Swap(true) {
		panic("two goroutines send at a time")
	}
	defer c.reading.Store(false)
	if c.blocked != nil {
		select {
		case <-c.blocked:
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	time.Sleep(c.takes)
	var got leaseholdv1.FollowResponse
	if err := proto.Unmarshal(reflect.ValueOf(m.(*wire.Frame)).Elem().FieldByName("shared").Bytes(), &got); err != nil {
		panic(err)
	}
	r, err := wire.ToLookupReply(got.GetUpdate(), protocol.DefaultLimits)
	if err != nil {
		panic(err)
	}
	if uint64(r.From) != c.at.Load() {
		c.gaps.Add(1)
	}
	c.at.Store(uint64(r.LSN))
	c.messages.Add(1)
	return nil
}

// connect serves lookups of a namespace until the test ends. The context of a stream ends with its
// handler, as gRPC's does.
func connect(t *testing.T, n int) (l *Lookups, all []*client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	server, stop := context.WithCancel(context.Background())
	l = NewLookups(ctx, Config{MaxStreams: n})
	for range n {
		own, end := context.WithCancel(server)
		c := &client{ctx: own}
		s := open(t, l, c)
		s.Subscribe(0, "pool")
		all = append(all, c)
		go func() {
			defer end()
			_ = s.Serve(nil)
		}()
	}
	t.Cleanup(func() {
		cancel()
		stop()
		l.Close()
		synctest.Wait()
		if l.Count() != 0 || len(l.CountByNamespace()) != 0 {
			t.Errorf("%d lookups are connected", l.Count())
		}
	})
	return l, all
}

// Many lookups get all changes, in order and without a gap, in far fewer messages than there are
// changes; and the first change at once.
func TestWaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const changes, takes = 1000, 100 * time.Microsecond
		l, all := connect(t, 3*defaultMaxDirect+7)
		for _, c := range all {
			c.takes = takes
		}
		l.Broadcast(change(0, 1))
		time.Sleep(takes)
		synctest.Wait()
		if !slices.ContainsFunc(all, func(c *client) bool { return c.at.Load() == 1 }) {
			t.Error("the first change is not sent at once")
		}
		for i := 1; i < changes; i++ {
			l.Broadcast(change(i, i+1))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		for i, c := range all {
			if c.at.Load() != changes || c.gaps.Load() != 0 || c.messages.Load() > changes/50 {
				t.Fatalf("lookup %d is at %d, after %d messages with %d gaps", i, c.at.Load(), c.messages.Load(), c.gaps.Load())
			}
		}
	})
}

// Lookups that do not read delay the others once each, for a moment. They receive the updates later, in order.
func TestWavesPassTheSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lookups, blocked, changes = 2 * defaultMaxDirect, maxWaveSenders / 2, 10
		l, all := connect(t, lookups)
		read := make(chan struct{})
		for i := range blocked {
			all[i*lookups/blocked].blocked = read
		}
		l.Broadcast(change(0, 1))
		time.Sleep(2*firstStall + 2*blocked*laterStall) // a stall is noticed within two ticks
		synctest.Wait()
		for i, c := range all {
			if c.blocked == nil && c.at.Load() != 1 {
				t.Fatalf("lookup %d does not have the change after a moment for each that does not read", i)
			}
		}
		time.Sleep(time.Minute) // the pause is over
		for i := 1; i < changes; i++ {
			l.Broadcast(change(i, i+1))
			synctest.Wait() // and no time passes
		}
		for i, c := range all {
			want := uint64(changes)
			if c.blocked != nil {
				want = 0
			}
			if c.at.Load() != want {
				t.Fatalf("lookup %d is at %d, want %d", i, c.at.Load(), want)
			}
		}
		close(read)
		synctest.Wait()
		for i, c := range all {
			if c.at.Load() != changes || c.gaps.Load() != 0 {
				t.Fatalf("in the end lookup %d is at %d, with %d gaps", i, c.at.Load(), c.gaps.Load())
			}
		}
	})
}

// If half of all lookups are slow, or never read, the others get each change within a bound, and
// the manager can end.
func TestWavesPassSlowMultitudes(t *testing.T) {
	const longestWave = time.Second / 2
	for name, slow := range map[string]func(*client){
		"never read": func(c *client) { c.blocked = make(chan struct{}) },
		"slow":       func(c *client) { c.takes = firstStall * 3 / 4 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, all := connect(t, 4*defaultMaxDirect)
				for i := 0; i < len(all); i += 2 {
					slow(all[i])
				}
				for n := range 3 {
					l.Broadcast(change(n, n+1))
					time.Sleep(longestWave)
					synctest.Wait()
					for i, c := range all {
						if c.blocked == nil && (c.at.Load() != uint64(n+1) || c.gaps.Load() != 0) {
							t.Fatalf("lookup %d is at %d of %d, with %d gaps", i, c.at.Load(), n+1, c.gaps.Load())
						}
					}
					time.Sleep(time.Minute) // the pause is over
				}
			})
		})
	}
}
