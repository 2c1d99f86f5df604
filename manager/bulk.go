package manager

import (
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/failpoint"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/wire"
)

// Thousands of lookups may ask for a whole table at once, when a manager has been restarted.
// To send to all of them at a time would keep the processors from owners that renew, for as
// long as it takes. So there are few at a time to whom much is sent.
const (
	// bulkSize is from where on something is large, in bytes: twice what gRPC takes off our
	// hands without having sent any of it.
	bulkSize = 128 << 10
	// longestBulk is for how long a lookup that reads slowly, or is far away, has one of the
	// places: a moment, so that those who never read do not keep the others from their tables.
	longestBulk = 25 * time.Millisecond
)

// bulkAtOnce is how many have one.
func bulkAtOnce() int { return 16 * runtime.GOMAXPROCS(0) }

// sendAll sends all that waits for a lookup.
func (l *lookups) sendAll(stream grpc.ServerStream, m *mail) error {
	for {
		out, some := m.take()
		if !some {
			return nil
		}
		if err := l.sendOne(stream, m, out); err != nil {
			return err
		}
	}
}

// sendAnswer sends the answer to what a lookup has just asked, if there is one and it is small.
// Everything else is left to the lookup's own goroutine. The caller attends to the mail, and no
// longer afterwards.
func (l *lookups) sendAnswer(s *lookupStream) error {
	defer s.mail.release(nil, false)
	out := s.mail.takeAnswer()
	switch {
	case out == nil:
		return nil
	case !out.small():
		s.mail.returnAnswer(out)
		return nil
	}
	return l.sendOne(s.wire, s.mail, *out)
}

// small reports whether something can be sent at once, without a place for what is large.
func (o outgoing) small() bool {
	if o.message != nil {
		return true
	}
	frame, err := o.update.bytes()
	return err == nil && frame.Len() < bulkSize
}

func (l *lookups) sendOne(stream grpc.ServerStream, m *mail, o outgoing) error {
	if failpoint.Drop("manager/update-before-send") {
		return nil
	}
	if o.message != nil {
		return stream.SendMsg(o.message)
	}
	frame, err := o.frame()
	if err != nil {
		return wire.FromError(err)
	}
	if frame.Len() < bulkSize {
		return stream.SendMsg(frame)
	}
	return l.sendBulk(stream, m, o)
}

// frame is what is sent.
func (o outgoing) frame() (*wire.Frame, error) {
	frame, err := o.update.bytes()
	if err == nil && o.answer != nil {
		frame = frame.Answer(o.answer.Echo, o.answer.Age)
	}
	return frame, err
}

// sendBulk sends something large when there is a place; or the answer to what the lookup has
// asked while there was none.
func (l *lookups) sendBulk(stream grpc.ServerStream, m *mail, o outgoing) error {
	select {
	case l.bulk <- struct{}{}:
	case <-stream.Context().Done():
		return wire.FromError(stream.Context().Err())
	case <-l.done:
		return nil // whoever converses says why
	}
	leave := sync.OnceFunc(func() { <-l.bulk })
	late := time.AfterFunc(longestBulk, leave)
	defer leave()
	defer late.Stop()
	if newer, some := m.instead(o); some {
		o = newer
	}
	frame, err := o.frame()
	if err != nil {
		return wire.FromError(err)
	}
	if err := stream.SendMsg(frame); err != nil {
		return err
	}
	reply := o.update.reply
	// gRPC takes one message off our hands, however large, and the next one only when most of
	// that has been sent. So a small one that says nothing new is how we know.
	return stream.SendMsg(wire.FromLookupReply(&protocol.LookupReply{
		Namespace: reply.Namespace, Leader: reply.Leader, Leads: reply.Leads, Term: reply.Term, LSN: reply.LSN, Age: reply.Age,
	}))
}
