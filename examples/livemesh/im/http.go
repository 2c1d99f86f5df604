package im

import (
	"net/http"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

const (
	maxRequest = 16 << 10 // bytes of a request: all texts, escaped, and what is around them
	wanted     = "session, address, status and ip"
)

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.users.Owner())
	mux.Handle("GET /im/{name}", func(r *jsonhttp.Request) (any, error) { return s.Get(r.Name) })
	mux.Handle("PUT /im/{name}", func(r *jsonhttp.Request) (any, error) {
		on, err := jsonhttp.Body[SignOn](r, maxRequest, wanted)
		if err != nil {
			return nil, err
		}
		return s.SignOn(r.Context(), r.Name, on)
	})
	mux.Handle("PATCH /im/{name}", func(r *jsonhttp.Request) (any, error) {
		c, err := jsonhttp.Body[Change](r, maxRequest, wanted)
		if err != nil {
			return nil, err
		}
		return s.Change(r.Context(), r.Name, c)
	})
	mux.Handle("POST /im/{name}/refresh", func(r *jsonhttp.Request) (any, error) {
		return nil, s.Refresh(r.Context(), r.Name, r.URL.Query().Get("session"))
	})
	mux.Handle("DELETE /im/{name}", func(r *jsonhttp.Request) (any, error) {
		return nil, s.SignOff(r.Context(), r.Name, r.URL.Query().Get("session"))
	})
	return mux
}
