package pubsub

import (
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// UsualTTL is how long a subscription lasts that does not say.
const UsualTTL = time.Hour

// Key is where in a request the name of its topic is.
func Key() leasehttp.Source { return leasehttp.PathSegment(2) }

// Published is the answer to a publication.
type Published struct {
	Subscribers int `json:"subscribers"`
}

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(r *http.Request, topic string) (any, error)) {
		mux.Handle(pattern, jsonhttp.Answer(func(_ http.ResponseWriter, r *http.Request) (any, error) {
			name := r.PathValue("name")
			s.Owner().Await(r.Context(), leasehold.KeyOf(name)) // if it is about to arrive
			return answer(r, name)
		}))
	}
	lasting := func(do func(r *http.Request, topic string, ttl time.Duration) error) func(*http.Request, string) (any, error) {
		return func(r *http.Request, topic string) (any, error) {
			ttl, err := parseTTL(r, topic)
			if err != nil {
				return nil, err
			}
			return nil, do(r, topic, ttl)
		}
	}
	handle("PUT /topics/{name}/subscriptions/{queue}", lasting(func(r *http.Request, topic string, ttl time.Duration) error {
		return s.Subscribe(r.Context(), topic, r.PathValue("queue"), ttl)
	}))
	handle("POST /topics/{name}/subscriptions/{queue}/refresh", lasting(func(r *http.Request, topic string, ttl time.Duration) error {
		return s.Refresh(r.Context(), topic, r.PathValue("queue"), ttl)
	}))
	handle("DELETE /topics/{name}/subscriptions/{queue}", func(r *http.Request, topic string) (any, error) {
		return nil, s.Unsubscribe(r.Context(), topic, r.PathValue("queue"))
	})
	handle("POST /topics/{name}/messages", func(r *http.Request, topic string) (any, error) {
		message, err := jsonhttp.Read(r, queue.MaxMessage)
		if err != nil {
			return nil, err
		}
		n, err := s.Publish(r.Context(), topic, message)
		return Published{n}, err
	})
	return jsonhttp.Routes(mux)
}

func parseTTL(r *http.Request, topic string) (time.Duration, error) {
	text := r.URL.Query().Get("ttl")
	if text == "" {
		return UsualTTL, nil
	}
	ttl, err := time.ParseDuration(text)
	if err != nil {
		return 0, leasehold.Errorf("subscribe", leasehold.Invalid, topic, "ttl is %q, want a time, 1h for instance", text)
	}
	return ttl, nil
}
