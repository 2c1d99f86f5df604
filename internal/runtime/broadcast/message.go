package broadcast

import (
	"sync"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// A message is for one receiver. It has either a response or an update.
type message struct {
	// response is a wire message, or a *protocol.LeaseReply. The sending goroutine converts that:
	// a thousand replies at once must not delay the machine.
	response any
	redirect bool // response is a redirect to the leader

	update *update
	answer *protocol.LookupReply // the reply that update is sent for; nil for a broadcast
}

// none reports whether there is no message.
func (m message) none() bool { return m.response == nil && m.update == nil }

// payload returns the message for the stream.
func (m message) payload() (any, error) {
	switch r := m.response.(type) {
	case nil:
	case *protocol.LeaseReply:
		return wire.FromLeaseReply(r), nil
	default:
		return r, nil
	}
	frame, err := m.update.encode()
	if err != nil {
		return nil, wire.FromError(err)
	}
	if m.answer != nil {
		frame = frame.Answer(m.answer.Echo, m.answer.Age)
	}
	return frame, nil
}

// bulk reports whether the message needs a bulk slot.
func (m message) bulk() bool {
	if m.update == nil {
		return false
	}
	frame, err := m.update.encode()
	return err == nil && frame.Len() >= bulkSize
}

// An update is a reply that many lookups share. The first sender encodes it for all.
type update struct {
	reply *protocol.LookupReply
	once  sync.Once
	frame *wire.Frame
	err   error
}

func (u *update) encode() (*wire.Frame, error) {
	u.once.Do(func() { u.frame, u.err = wire.EncodeUpdate(u.reply) })
	return u.frame, u.err
}

// updates returns the messages for a broadcast of replies.
func updates(replies ...*protocol.LookupReply) []message {
	out := make([]message, len(replies))
	for i, r := range replies {
		out[i].update = &update{reply: r}
	}
	return out
}
