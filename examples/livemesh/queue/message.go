package queue

import (
	"encoding/json"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// A Message is an enqueued message, or a report of the queue itself.
type Message struct {
	Number uint64          `json:"number"`
	Body   json.RawMessage `json:"body,omitempty"`
	// Missed reports that messages were dropped because the queue was full.
	Missed bool `json:"missed,omitempty"`
	// Lost reports names of another service whose state was lost.
	Lost *Lost `json:"lost,omitempty"`
}

// size is the maximum size of a message, in memory and encoded.
func (m *Message) size() int {
	const around, escaped = 64, 6 // a byte of a name may be encoded as \u0000
	size := around + len(m.Body)
	if m.Lost != nil {
		for _, name := range m.Lost.Names {
			size += escaped * len(name)
		}
	}
	return size
}

// A Place is a device's position in its queue: an epoch, and the number of the last message that
// it has received. The zero Place is that of a new device.
type Place struct {
	Epoch string
	Have  uint64
}

// A Batch is the response to a receive request.
type Batch struct {
	Epoch    string    `json:"epoch"`
	Messages []Message `json:"messages"`
	// Lost reports that the device's epoch is not the current one: messages may have been
	// lost, including those about losses.
	Lost bool `json:"lost,omitempty"`
}

// Next returns the place after a batch.
func (b *Batch) Next(at Place) Place {
	if b.Lost || at.Epoch == "" {
		at = Place{Epoch: b.Epoch}
	}
	if n := len(b.Messages); n > 0 {
		at.Have = b.Messages[n-1].Number
	}
	return at
}

// A Receipt is the position of an enqueued message.
type Receipt struct {
	Epoch  string `json:"epoch"`
	Number uint64 `json:"number"`
}

// A queue is the state of a device's queue. Slices and maps are never changed in place, because
// readers may use them.
type queue struct {
	Epoch     string                   `json:"epoch"`
	Last      uint64                   `json:"last"` // number of the last message
	Messages  []Message                `json:"messages"`
	Interests []Interest               `json:"interests"`
	Reported  map[string]leasehold.LSN `json:"told"` // by service: the LSN up to which losses were reported

	changed chan struct{} // closed when a message is enqueued; nil if no request waits
}

// add adds a message, and reports whether there was room.
func (q *queue) add(m Message, room int) bool {
	size := m.size()
	for _, waiting := range q.Messages {
		size += waiting.size()
	}
	if len(q.Messages) >= room || size > MaxBytes {
		return false
	}
	q.Last++
	m.Number = q.Last
	q.Messages = append(slices.Clip(q.Messages), m)
	return true
}

// miss adds a mark for missed messages. It replaces a mark at the end with one of a new number:
// the device may have received the old one already.
func (q *queue) miss() {
	q.Last++
	kept := q.Messages
	if n := len(kept); n > 0 && kept[n-1].Missed {
		kept = kept[:n-1]
	}
	q.Messages = append(slices.Clip(kept), Message{Number: q.Last, Missed: true})
}

// acknowledge removes the messages up to a place. A place of another epoch has no effect.
func (q *queue) acknowledge(name string, at Place) error {
	if at.Epoch != q.Epoch {
		return nil
	}
	if at.Have > q.Last {
		return leasehold.Errorf("receive", leasehold.ErrInvalid, name, "message %d does not exist: the last one is %d", at.Have, q.Last)
	}
	received := func(m Message) bool { return m.Number <= at.Have }
	if slices.ContainsFunc(q.Messages, received) {
		q.Messages = slices.DeleteFunc(slices.Clone(q.Messages), received)
	}
	return nil
}
