package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// MaxWait is the maximum wait of one request.
const MaxWait = time.Minute

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.queues.Owner())
	mux.Handle("POST /queues/{name}/messages", s.enqueue)
	mux.Handle("GET /queues/{name}/messages", s.poll)
	mux.Serve("GET /queues/{name}/events", s.push)
	mux.Handle("POST /queues/{name}/ack", func(r *jsonhttp.Request) (any, error) {
		at, err := parsePlace(r.Name, r.URL.Query())
		if err != nil {
			return nil, err
		}
		return nil, s.ack(r.Context(), r.Name, at)
	})
	mux.Handle("PUT /queues/{name}/interests", jsonhttp.Body(1<<20, "a list of services and names", s.setInterests))
	mux.Handle("DELETE /queues/{name}", func(r *jsonhttp.Request) (any, error) {
		return nil, s.queues.Delete(r.Context(), r.Name)
	})
	// Requests that wait for messages end when the lease does.
	return leasehttp.Middleware(s.queues.Owner(), jsonhttp.Key())(mux)
}

// poll returns messages after a place, and waits for them. A request for messages after a number
// acknowledges all messages up to it.
func (s *Service) poll(r *jsonhttp.Request) (any, error) {
	at, err := parsePlace(r.Name, r.URL.Query())
	if err != nil {
		return nil, err
	}
	text := cmp.Or(r.URL.Query().Get("wait"), "0s")
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > MaxWait {
		return nil, leasehold.Errorf("receive", leasehold.ErrInvalid, r.Name, "wait is %q, want a duration of up to %v, for example 30s", text, MaxWait)
	}
	if err := s.ack(r.Context(), r.Name, at); err != nil {
		return nil, err
	}
	return s.receive(r.Context(), r.Name, at, wait)
}

func parsePlace(name string, query url.Values) (Place, error) {
	if query.Get("epoch") == "" {
		if query.Has("after") {
			return Place{}, leasehold.Errorf("receive", leasehold.ErrInvalid, name, "after without epoch: want the epoch of the number")
		}
		return Place{}, nil
	}
	return newPlace(name, query.Get("epoch"), cmp.Or(query.Get("after"), "0"))
}

// parseEventID parses the id of an event from writeEvents.
func parseEventID(name, id string) (Place, error) {
	epoch, have, _ := strings.Cut(id, "/")
	return newPlace(name, epoch, have)
}

// newPlace rejects epochs with characters that could inject another event.
func newPlace(name, epoch, have string) (Place, error) {
	n, err := strconv.ParseUint(have, 10, 64)
	if err != nil || strings.ContainsFunc(epoch, func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }) {
		return Place{}, leasehold.Errorf("receive", leasehold.ErrInvalid, name, "epoch is %q and message %q, want the epoch of a batch and the number of a message", epoch, have)
	}
	return Place{epoch, n}, nil
}

// push streams messages to a device. It starts after the message in Last-Event-ID or in the query.
// The device acknowledges messages with an ack request or with its next connection.
func (s *Service) push(w http.ResponseWriter, r *jsonhttp.Request) error {
	at, err := parsePlace(r.Name, r.URL.Query())
	if id := r.Header.Get("Last-Event-ID"); id != "" { // a reconnecting browser
		at, err = parseEventID(r.Name, id)
	}
	if err != nil {
		return err
	}
	if err := s.ack(r.Context(), r.Name, at); err != nil {
		return err
	}
	b, err := s.receive(r.Context(), r.Name, at, 0) // without waiting, so that the response starts at once
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	for err == nil {
		at = b.Next(at)
		if writeEvents(w, b, at) != nil || http.NewResponseController(w).Flush() != nil {
			break
		}
		b, err = s.receive(r.Context(), r.Name, at, MaxWait/2)
	}
	return nil //nolint:nilerr // the device reconnects, to the owner of the queue
}

// writeEvents writes a batch as events. The last event is a heartbeat with the current place,
// which is also sent without messages.
func writeEvents(w io.Writer, b Batch, at Place) error {
	if b.Lost {
		if err := writeEvent(w, "lost", Place{Epoch: b.Epoch}, struct{}{}); err != nil {
			return err
		}
	}
	for _, m := range b.Messages {
		if err := writeEvent(w, "message", Place{b.Epoch, m.Number}, m); err != nil {
			return err
		}
	}
	return writeEvent(w, "alive", at, struct{}{})
}

func writeEvent(w io.Writer, event string, at Place, data any) error {
	text, err := json.Marshal(data)
	if err == nil {
		_, err = fmt.Fprintf(w, "event: %s\nid: %s/%d\ndata: %s\n\n", event, at.Epoch, at.Have, text)
	}
	return err
}

// A Client is a client of the service.
type Client struct{ jsonhttp.Client }

// Enqueue adds a message. It fails with [leasehold.ErrLimit] if the queue is full. With mark it
// succeeds, and leaves a mark for the missed message.
func (c *Client) Enqueue(ctx context.Context, name string, body any, mark bool) (Receipt, error) {
	path := jsonhttp.Path("queues", name, "messages")
	if mark {
		path += jsonhttp.Query("overflow", "mark")
	}
	return jsonhttp.Call[Receipt](ctx, c.Client, http.MethodPost, path, body)
}

// Receive returns the messages after a place, and waits for them. It acknowledges all messages up
// to the place.
func (c *Client) Receive(ctx context.Context, name string, at Place, wait time.Duration) (Batch, error) {
	after := ""
	if at.Epoch != "" {
		after = strconv.FormatUint(at.Have, 10)
	}
	path := jsonhttp.Path("queues", name, "messages") + jsonhttp.Query("wait", wait.String(), "epoch", at.Epoch, "after", after)
	return jsonhttp.Call[Batch](ctx, c.Client, http.MethodGet, path, nil)
}

// SetInterests replaces the names of other services that a device depends on.
func (c *Client) SetInterests(ctx context.Context, name string, interests []Interest) error {
	return c.Do(ctx, http.MethodPut, jsonhttp.Path("queues", name, "interests"), interests, nil)
}
