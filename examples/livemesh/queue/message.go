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

// A Message is what somebody has enqueued, or what the queue itself has to say.
type Message struct {
	Number uint64          `json:"number"`
	Body   json.RawMessage `json:"body,omitempty"`
	// Missed says that there was no room for one or more messages.
	Missed bool `json:"missed,omitempty"`
	// Lost are names of another service whose state was lost.
	Lost *Lost `json:"lost,omitempty"`
}

// A Batch is what a device receives.
type Batch struct {
	Epoch    string    `json:"epoch"`
	Messages []Message `json:"messages"`
	// Lost says that the device knew another life of the queue: messages may have been
	// lost with it, and with them those about losses.
	Lost bool `json:"lost,omitempty"`
}

// Next is the place after a batch.
func (b *Batch) Next(at Place) Place {
	if b.Lost || at.Epoch == "" {
		at = Place{Epoch: b.Epoch}
	}
	if n := len(b.Messages); n > 0 {
		at.Have = b.Messages[n-1].Number
	}
	return at
}

// A Receipt says where a message is.
type Receipt struct {
	Epoch  string `json:"epoch"`
	Number uint64 `json:"number"`
}

// A queue is the messages of a device. What is there is never changed in place, because
// it may be being read.
type queue struct {
	Epoch     string                   `json:"epoch"`
	Last      uint64                   `json:"last"` // number of the last message
	Messages  []Message                `json:"messages"`
	Interests []Interest               `json:"interests"`
	Told      map[string]leasehold.LSN `json:"told"` // up to which losses of a service it has messages
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

// size is how many bytes a message takes up at most, here and on its way.
func (m *Message) size() int {
	const around, escaped = 64, 6 // a byte of a name may be written as \u0000
	size := around + len(m.Body)
	if m.Lost != nil {
		for _, name := range m.Lost.Names {
			size += escaped * len(name)
		}
	}
	return size
}

// miss leaves a mark. One that is there already gives way to it: the device may have
// received that one, and must learn that it has missed something since.
func (q *queue) miss() {
	q.Last++
	kept := q.Messages
	if n := len(kept); n > 0 && kept[n-1].Missed {
		kept = kept[:n-1]
	}
	q.Messages = append(slices.Clip(kept), Message{Number: q.Last, Missed: true})
}

// A Place is where a device is in its queue: which life of the queue it knows, and up to
// which number it has everything. The zero Place is that of a device that knows nothing.
type Place struct {
	Epoch string
	Have  uint64
}

func (q *queue) after(name string, have uint64) ([]Message, error) {
	if have > q.Last {
		return nil, leasehold.Errorf("receive", leasehold.ErrInvalid, name, "there is no message %d: the last one has number %d", have, q.Last)
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

// setInterests says on which names of other services a device depends, in place of what
// was said before.
func (s *Service) setInterests(r *jsonhttp.Request, interests []Interest) (any, error) {
	if len(interests) > MaxInterests {
		return nil, leasehold.Errorf("set interests", leasehold.ErrInvalid, r.Name, "%d interests, and %d are allowed", len(interests), MaxInterests)
	}
	for _, i := range interests {
		if err := jsonhttp.ValidName("set interests", "what a device depends on", i.Name); err != nil {
			return nil, err
		}
		if s.cfg.Watch[i.Service] == nil {
			return nil, leasehold.Errorf("set interests", leasehold.ErrInvalid, r.Name, "there is no service %q: want one of %s", i.Service, strings.Join(slices.Sorted(maps.Keys(s.cfg.Watch)), ", "))
		}
	}
	return nil, s.do(r.Context(), r.Name, func(q *queue) error {
		s.addLosses(q) // of what it depended on before
		q.Interests = slices.Clone(interests)
		return nil
	})
}

// addLosses adds messages about what was lost of other services since it was last called for
// the queue. Where the queue was then does not matter: LSNs are the same for all lookups.
func (s *Service) addLosses(q *queue) {
	told := maps.Clone(q.Told)
	if told == nil {
		told = make(map[string]leasehold.LSN)
	}
	for service, l := range s.cfg.Watch {
		lost, lsn := Lost{Service: service}, l.LSN()
		for _, i := range q.Interests {
			if i.Service == service && l.LostSince(leasehold.KeyOf(i.Name), told[service]) {
				lost.Names = append(lost.Names, i.Name)
			}
		}
		if len(lost.Names) > 0 && !q.add(Message{Lost: &lost}, s.cfg.Room) {
			q.miss()
		}
		told[service] = max(told[service], lsn)
	}
	q.Told = told
}

// follow wakes devices that wait, when another service has lost state.
func (s *Service) follow(ctx context.Context) {
	for _, l := range s.cfg.Watch {
		s.following.Go(func() {
			for _, err := range l.Losses(ctx) {
				if err != nil {
					break
				}
				s.bells.ringAll()
			}
		})
	}
}
