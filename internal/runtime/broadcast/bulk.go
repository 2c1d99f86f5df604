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
	// bulkSize is the minimum size of a message that needs a slot: twice the size of gRPC's send
	// buffer.
	bulkSize = 128 << 10
	// maxBulkTime is the maximum time that a lookup keeps a slot: short, so that lookups that do not read
	// do not block others.
	maxBulkTime = 25 * time.Millisecond
)

// bulkSlots returns the maximum number of concurrent bulk messages.
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
		return nil // serve returns the reason
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
