package feed

import (
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

const (
	maxEvent = 16 << 10         // bytes of a request with an event
	bodyTime = 10 * time.Second // in which a request must be here, because it counts as one at work
)

// Key is where in a request the name of its user is.
func Key() leasehttp.Source { return leasehttp.PathSegment(2) }

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(w http.ResponseWriter, r *http.Request) (any, error)) {
		mux.Handle(pattern, jsonhttp.Answer(func(w http.ResponseWriter, r *http.Request) (any, error) {
			// If the feed is about to arrive, what is posted now would be replaced by it.
			// If it is not, whoever owns it is nothing to us.
			s.Owner().Await(r.Context(), leasehold.KeyOf(r.PathValue("name")))
			return answer(w, r)
		}))
	}
	handle("POST /feeds/{name}/items", func(w http.ResponseWriter, r *http.Request) (any, error) {
		data, err := read(w, r, MaxBytes)
		if err != nil {
			return nil, err
		}
		return s.Add(r.Context(), r.PathValue("name"), data)
	})
	handle("POST /feeds/{name}/events", s.postEvent)
	handle("DELETE /feeds/{name}", func(_ http.ResponseWriter, r *http.Request) (any, error) {
		return nil, s.Delete(r.Context(), r.PathValue("name"))
	})
	mux.HandleFunc("GET /feeds/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.Owner().Await(r.Context(), leasehold.KeyOf(r.PathValue("name")))
		if err := s.get(w, r); err != nil {
			jsonhttp.Fail(w, err)
		}
	})
	return s.admit(jsonhttp.Routes(mux))
}

// admit refuses requests while as many are at work as may be (PRS 3.3).
func (s *Service) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.working <- struct{}{}:
			defer func() { <-s.working }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			jsonhttp.Fail(w, leasehold.Errorf("admit", leasehold.Limit, r.URL.Path, "nothing was done: %d requests are at work here, as many as may be; send it again later", s.cfg.MaxWorking))
		}
	})
}

// read returns the body of a request, if it comes in time.
func read(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	in := http.NewResponseController(w)
	if err := in.SetReadDeadline(time.Now().Add(bodyTime)); err == nil { // or the server has its own
		defer in.SetReadDeadline(time.Time{}) //nolint:errcheck // it could be set
	}
	return jsonhttp.Read(r, most)
}

func (s *Service) postEvent(w http.ResponseWriter, r *http.Request) (any, error) {
	data, err := read(w, r, maxEvent)
	if err != nil {
		return nil, err
	}
	var e Event
	if err := jsonhttp.Decode(data, &e); err != nil {
		return nil, leasehold.Errorf("report event", leasehold.Invalid, r.PathValue("name"), `want an event as JSON, {"text": "is now online"} for instance: %w`, err)
	}
	return s.Report(r.Context(), r.PathValue("name"), e)
}
