package broadcast

import (
	"runtime"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

const (
	// bulkSize is from which size on a message needs a slot: twice what gRPC buffers before it
	// has sent any of it.
	bulkSize = 128 << 10
	// maxBulkTime is how long a slow lookup keeps a slot: short, so that lookups that never read
	// do not keep others from their tables.
	maxBulkTime = 25 * time.Millisecond
)

// bulkSlots is how many bulk messages are sent at a time.
func bulkSlots() int { return 16 * runtime.GOMAXPROCS(0) }

// sendMessage sends a message, and waits for a slot if it is bulk.
func (s *Lookup) sendMessage(m message) error {
	if failpoint.Drop("manager/update-before-send") {
		return nil
	}
	if m.bulk() {
		return s.sendBulk(m)
	}
	return s.transmit(m)
}

// sendBulk sends a message with a slot, or a newer reply that came before there was one.
func (s *Lookup) sendBulk(m message) error {
	slots, ctx := s.lookups.slots, s.stream.Context()
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return wire.FromError(ctx.Err())
	case <-s.lookups.done:
		return nil // serve returns why
	}
	free := sync.OnceFunc(func() { <-slots })
	late := time.AfterFunc(maxBulkTime, free)
	defer free()
	defer late.Stop()
	if m.answer != nil {
		if newer, ok := s.takeReply(); ok {
			m = newer
		}
	}
	if err := s.transmit(m); err != nil || m.update == nil {
		return err
	}
	// gRPC accepts one message of any size, and the next one when most of that has been sent. A
	// small one without changes blocks until then.
	r := m.update.reply
	return s.stream.SendMsg(wire.FromLookupReply(&protocol.LookupReply{
		Namespace: r.Namespace, Leader: r.Leader, Leads: r.Leads, Term: r.Term, LSN: r.LSN, Age: r.Age,
	}))
}
