package queue

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// push sends messages to a device that is online, as they come. It begins after the
// message that the device has named with Last-Event-ID, or in the query; that the device
// has it, and all before, it says with an acknowledgement or with its next connection.
func (s *Service) push(w http.ResponseWriter, r *jsonhttp.Request) error {
	at, err := parsePlace(r.Name, r.URL.Query())
	if id := r.Header.Get("Last-Event-ID"); id != "" { // a browser that connects again
		at, err = parseEventID(r.Name, id)
	}
	if err != nil {
		return err
	}
	if err := s.ack(r.Context(), r.Name, at); err != nil {
		return err
	}
	b, err := s.receive(r.Context(), r.Name, at, 0) // the device is to know at once that it is connected
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
	return nil //nolint:nilerr // the device connects again, to the owner of the queue
}

// writeEvents writes what a device receives, and where it is then. The last event is there
// even without messages, so that both sides know that the other is alive.
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
