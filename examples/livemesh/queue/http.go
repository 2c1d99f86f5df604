package queue

import (
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

// MaxWait is how long a device may wait for a message in one request.
const MaxWait = time.Minute

// Key is where in a request the name of its queue is.
func Key() leasehttp.Source { return leasehttp.PathSegment(2) }

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(r *http.Request) (any, error)) {
		mux.Handle(pattern, jsonhttp.Answer(func(_ http.ResponseWriter, r *http.Request) (any, error) { return answer(r) }))
	}
	handle("POST /queues/{name}/messages", func(r *http.Request) (any, error) {
		body, err := jsonhttp.Read(r, MaxMessage)
		if err != nil {
			return nil, err
		}
		overflow := r.URL.Query().Get("overflow")
		if overflow != "" && overflow != "mark" {
			return nil, leasehold.Errorf("enqueue", leasehold.Invalid, r.PathValue("name"), "overflow is %q, want mark or nothing", overflow)
		}
		return s.Enqueue(r.Context(), r.PathValue("name"), body, overflow == "mark")
	})
	handle("GET /queues/{name}/messages", s.poll)
	handle("POST /queues/{name}/ack", func(r *http.Request) (any, error) {
		at, err := parsePlace(r.PathValue("name"), r.URL.Query())
		if err != nil {
			return nil, err
		}
		return nil, s.Ack(r.Context(), r.PathValue("name"), at)
	})
	handle("PUT /queues/{name}/interests", func(r *http.Request) (any, error) {
		body, err := jsonhttp.Read(r, 1<<20)
		if err != nil {
			return nil, err
		}
		var interests []Interest
		if err := jsonhttp.Decode(body, &interests); err != nil {
			return nil, leasehold.Errorf("set interests", leasehold.Invalid, r.PathValue("name"), "want a list of services and names as JSON: %w", err)
		}
		return nil, s.SetInterests(r.Context(), r.PathValue("name"), interests)
	})
	handle("DELETE /queues/{name}", func(r *http.Request) (any, error) {
		return nil, s.Delete(r.Context(), r.PathValue("name"))
	})
	mux.HandleFunc("GET /queues/{name}/events", s.push)
	// Requests wait for a queue that is about to arrive; those that wait for messages
	// end when the lease does.
	return leasehttp.Middleware(s.Owner(), Key())(jsonhttp.Routes(mux))
}

// poll answers a device that asks, and lets it wait. That it asks for what comes after a
// message says that it has all before.
func (s *Service) poll(r *http.Request) (any, error) {
	name, query := r.PathValue("name"), r.URL.Query()
	at, err := parsePlace(name, query)
	if err != nil {
		return nil, err
	}
	wait := time.Duration(0)
	if text := query.Get("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 || wait > MaxWait {
			return nil, leasehold.Errorf("receive", leasehold.Invalid, name, "wait is %q, want a time of up to %v, 30s for instance", text, MaxWait)
		}
	}
	if err := s.Ack(r.Context(), name, at); err != nil {
		return nil, err
	}
	return s.Receive(r.Context(), name, at, wait)
}

func parsePlace(name string, query url.Values) (at Place, err error) {
	at.Epoch = query.Get("epoch")
	if at.Epoch == "" && query.Has("after") {
		return Place{}, leasehold.Errorf("receive", leasehold.Invalid, name, "after is there without epoch: say of which life of the queue the number is")
	}
	if text := query.Get("after"); text != "" {
		if at.Have, err = strconv.ParseUint(text, 10, 64); err != nil {
			return Place{}, leasehold.Errorf("receive", leasehold.Invalid, name, "after is %q, want the number of a message", text)
		}
	}
	return at, at.validate(name)
}

// validate refuses an epoch that is none of ours: in an event it could be taken for another one.
func (at Place) validate(name string) error {
	if strings.ContainsFunc(at.Epoch, func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }) {
		return leasehold.Errorf("receive", leasehold.Invalid, name, "epoch is %q, want what a batch had", at.Epoch)
	}
	return nil
}

// push sends messages to a device that is online, as they come. It begins after the
// message that the device has named with Last-Event-ID, or in the query; that the device
// has it, and all before, it says with an acknowledgement or with its next connection.
func (s *Service) push(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	at, err := parsePlace(name, r.URL.Query())
	if id := r.Header.Get("Last-Event-ID"); id != "" { // a browser that connects again
		at, err = parseEventID(id)
	}
	if err == nil {
		err = s.Ack(r.Context(), name, at)
	}
	wait := time.Duration(0) // the device is to know at once that it is connected
	for began := false; ; began, wait = true, MaxWait/2 {
		var b Batch
		if err == nil {
			b, err = s.Receive(r.Context(), name, at, wait)
		}
		if err != nil {
			if !began {
				jsonhttp.Fail(w, err)
			}
			return // the device comes again, to whoever has the queue then
		}
		if !began {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Cache-Control", "no-store")
		}
		at = b.Next(at)
		if err := writeEvents(w, b, at); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
	}
}

// writeEvents writes what a device receives, and where it is then. With nothing to say it
// says just that, so that both sides know that the other is there.
func writeEvents(w io.Writer, b Batch, at Place) error {
	if b.Lost {
		if _, err := fmt.Fprintf(w, "event: lost\nid: %s/0\ndata: {}\n\n", b.Epoch); err != nil {
			return err
		}
	}
	for _, m := range b.Messages {
		data, err := json.Marshal(m)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "id: %s/%d\ndata: %s\n\n", b.Epoch, m.Number, data); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "event: alive\nid: %s/%d\ndata: {}\n\n", at.Epoch, at.Have)
	return err
}

func parseEventID(text string) (Place, error) {
	epoch, number, ok := strings.Cut(text, "/")
	have, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil {
		return Place{}, leasehold.Errorf("receive", leasehold.Invalid, "", "Last-Event-ID is %q, want what an event had", text)
	}
	at := Place{epoch, have}
	return at, at.validate("")
}
