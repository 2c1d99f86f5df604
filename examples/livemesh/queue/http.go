package queue

import (
	"cmp"
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

// poll answers a device that asks, and lets it wait. That it asks for what comes after a
// message says that it has all before.
func (s *Service) poll(r *jsonhttp.Request) (any, error) {
	at, err := parsePlace(r.Name, r.URL.Query())
	if err != nil {
		return nil, err
	}
	text := cmp.Or(r.URL.Query().Get("wait"), "0s")
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > MaxWait {
		return nil, leasehold.Errorf("receive", leasehold.ErrInvalid, r.Name, "wait is %q, want a time of up to %v, 30s for instance", text, MaxWait)
	}
	if err := s.ack(r.Context(), r.Name, at); err != nil {
		return nil, err
	}
	return s.receive(r.Context(), r.Name, at, wait)
}

func parsePlace(name string, query url.Values) (Place, error) {
	if query.Get("epoch") == "" {
		if query.Has("after") {
			return Place{}, leasehold.Errorf("receive", leasehold.ErrInvalid, name, "after is there without epoch: say of which life of the queue the number is")
		}
		return Place{}, nil
	}
	return newPlace(name, query.Get("epoch"), cmp.Or(query.Get("after"), "0"))
}

// parseEventID reads what writeEvents has written.
func parseEventID(name, id string) (Place, error) {
	epoch, have, _ := strings.Cut(id, "/")
	return newPlace(name, epoch, have)
}

// newPlace refuses an epoch that is none of ours: in an event it could be taken for another one.
func newPlace(name, epoch, have string) (Place, error) {
	n, err := strconv.ParseUint(have, 10, 64)
	if err != nil || strings.ContainsFunc(epoch, func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }) {
		return Place{}, leasehold.Errorf("receive", leasehold.ErrInvalid, name, "epoch is %q and message %q, want the epoch of a batch and the number of a message", epoch, have)
	}
	return Place{epoch, n}, nil
}
