package im

import (
	"net/http"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// maxRequest is how long a request may be: all texts, escaped, and what is around them.
const maxRequest = 16 << 10

// Key is where in a request the name of its user is.
func Key() leasehttp.Source { return leasehttp.PathSegment(2) }

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(r *http.Request, user string) (any, error)) {
		mux.Handle(pattern, jsonhttp.Answer(func(_ http.ResponseWriter, r *http.Request) (any, error) {
			user := r.PathValue("name")
			s.Owner().Await(r.Context(), leasehold.KeyOf(user)) // if it is about to arrive
			return answer(r, user)
		}))
	}
	handle("GET /im/{name}", func(_ *http.Request, user string) (any, error) { return s.Get(user) })
	handle("PUT /im/{name}", func(r *http.Request, user string) (any, error) {
		var on SignOn
		if err := read(r, user, &on); err != nil {
			return nil, err
		}
		return s.SignOn(r.Context(), user, on)
	})
	handle("PATCH /im/{name}", func(r *http.Request, user string) (any, error) {
		var c Change
		if err := read(r, user, &c); err != nil {
			return nil, err
		}
		return s.Change(r.Context(), user, c)
	})
	handle("POST /im/{name}/refresh", func(r *http.Request, user string) (any, error) {
		return nil, s.Refresh(r.Context(), user, session(r))
	})
	handle("DELETE /im/{name}", func(r *http.Request, user string) (any, error) {
		return nil, s.SignOff(r.Context(), user, session(r))
	})
	return jsonhttp.Routes(mux)
}

// read reads the body of a request.
func read(r *http.Request, user string, into any) error {
	data, err := jsonhttp.Read(r, maxRequest)
	if err != nil {
		return err
	}
	if err := jsonhttp.Decode(data, into); err != nil {
		return leasehold.Errorf("read presence", leasehold.Invalid, user, "want JSON, with session, address, status and ip: %w", err)
	}
	return nil
}

func session(r *http.Request) string { return r.URL.Query().Get("session") }
