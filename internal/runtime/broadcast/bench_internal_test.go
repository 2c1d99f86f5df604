package broadcast

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A countingStream counts down the messages of all streams.
type countingStream struct {
	followStream
	ctx  context.Context //nolint:containedctx // it is the stream's
	left *atomic.Int64
	all  chan struct{} // gets one when none is left
}

func (s *countingStream) Context() context.Context { return s.ctx }

func (s *countingStream) SendMsg(any) error {
	if s.left.Add(-1) == 0 {
		s.all <- struct{}{}
	}
	return nil
}

// BenchmarkBroadcast is the time from a change until it is sent to all lookups, without gRPC. With
// more than 512 lookups it includes the pauses after waves.
func BenchmarkBroadcast(b *testing.B) {
	for _, n := range []int{100, 500, 5000, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			l := NewLookups(ctx, Config{MaxStreams: n})
			var handlers sync.WaitGroup
			var left atomic.Int64
			all := make(chan struct{}, 1)
			for range n {
				s := open(b, l, &countingStream{ctx: ctx, left: &left, all: all})
				s.Subscribe(0, "pool")
				handlers.Go(func() {
					for ctx.Err() == nil {
						select {
						case <-ctx.Done():
						case <-s.ready:
							_ = s.flush()
						}
					}
				})
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				left.Store(int64(n))
				l.Broadcast(change(i, i+1))
				<-all
			}
			b.StopTimer()
			cancel()
			l.Close()
			handlers.Wait()
		})
	}
}

// BenchmarkAnswer is the time to send a lookup that no change is missing, without gRPC.
func BenchmarkAnswer(b *testing.B) {
	l := NewLookups(b.Context(), Config{MaxStreams: 1})
	s := open(b, l, &countingStream{ctx: b.Context(), left: &atomic.Int64{}})
	s.Subscribe(0, "pool")
	b.ReportAllocs()
	for i := range b.N {
		_, _ = s.Respond(func() bool {
			l.Answer(s.id, &protocol.LookupReply{Namespace: "pool", Term: 1, Leader: "m", Echo: protocol.Seq(i), LSN: 7})
			return true
		})
	}
}

// BenchmarkReply is the time to send an owner a reply, without gRPC.
func BenchmarkReply(b *testing.B) {
	o := NewOwners(b.Context(), Config{MaxStreams: 1})
	stream := &holdStream{}
	stream.onSend = func() { stream.sent = stream.sent[:0] }
	s, err := o.Open(stream)
	if err != nil {
		b.Fatal(err)
	}
	ann := protocol.Speaker{Namespace: "n", Owner: "ann", Session: leasehold.Session{1}}
	s.Register(ann)
	b.ReportAllocs()
	for i := range b.N {
		_, _ = s.Respond(func() bool {
			o.Reply(ann, &protocol.LeaseReply{Seq: protocol.Seq(i)})
			return true
		})
	}
}
