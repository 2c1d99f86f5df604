package queue

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
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
}

// ReadMessage returns the message in a request.
func ReadMessage(op string, r *jsonhttp.Request) (json.RawMessage, error) {
	body, err := r.Read(MaxMessage)
	if err == nil && !json.Valid(body) {
		err = leasehold.Errorf(op, leasehold.ErrInvalid, r.Name, "the message is not JSON")
	}
	return body, err
}

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

// A Place is a device's position in its queue: an epoch, and the number of the last message that
// it has received. The zero Place is that of a new device.
type Place struct {
	Epoch string
	Have  uint64
}

func (q *queue) after(name string, have uint64) ([]Message, error) {
	if have > q.Last {
		return nil, leasehold.Errorf("receive", leasehold.ErrInvalid, name, "message %d does not exist: the last one is %d", have, q.Last)
	}
	i := slices.IndexFunc(q.Messages, func(m Message) bool { return m.Number > have })
	if i < 0 {
		return nil, nil
	}
	return q.Messages[i:], nil
}

// An Interest is a name of another service that a device depends on.
type Interest struct {
	Service string `json:"service"`
	Name    string `json:"name"`
}

// Lost are names of another service whose state was lost.
type Lost struct {
	Service string   `json:"service"`
	Names   []string `json:"names"`
}

// setInterests replaces the interests of a device.
func (s *Service) setInterests(r *jsonhttp.Request, interests []Interest) (any, error) {
	if len(interests) > MaxInterests {
		return nil, leasehold.Errorf("set interests", leasehold.ErrInvalid, r.Name, "%d interests, %d are allowed", len(interests), MaxInterests)
	}
	for _, i := range interests {
		if err := jsonhttp.ValidName("set interests", "an interest", i.Name); err != nil {
			return nil, err
		}
		if s.cfg.Watch[i.Service] == nil {
			return nil, leasehold.Errorf("set interests", leasehold.ErrInvalid, r.Name, "unknown service %q: want one of %s", i.Service, strings.Join(slices.Sorted(maps.Keys(s.cfg.Watch)), ", "))
		}
	}
	return nil, s.do(r.Context(), r.Name, func(q *queue) error {
		s.addLosses(q) // of the previous interests
		q.Interests = slices.Clone(interests)
		return nil
	})
}

// addLosses adds messages about losses of interests since the last call for the queue. The queue
// may have been transferred meanwhile: LSNs are the same for all lookups.
func (s *Service) addLosses(q *queue) {
	reported := maps.Clone(q.Reported)
	if reported == nil {
		reported = make(map[string]leasehold.LSN)
	}
	for service, l := range s.cfg.Watch {
		lost, lsn := Lost{Service: service}, l.LSN()
		for _, i := range q.Interests {
			if i.Service == service && l.LostSince(leasehold.KeyOf(i.Name), reported[service]) {
				lost.Names = append(lost.Names, i.Name)
			}
		}
		if len(lost.Names) > 0 && !q.add(Message{Lost: &lost}, s.cfg.Room) {
			q.miss()
		}
		reported[service] = max(reported[service], lsn)
	}
	q.Reported = reported
}

// follow wakes waiting requests when another service has lost state.
func (s *Service) follow(ctx context.Context) {
	for _, l := range s.cfg.Watch {
		s.following.Go(func() {
			for _, err := range l.Losses(ctx) {
				if err != nil {
					break
				}
				s.wakeups.notifyAll()
			}
		})
	}
}
