package pubsub

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

// UsualTTL is how long a subscription lasts that does not say.
const UsualTTL = time.Hour

// Published is the answer to a publication.
type Published struct {
	Subscribers int `json:"subscribers"`
}

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.topics.Owner())
	lasting := func(do func(ctx context.Context, topic, queue string, ttl time.Duration) error) func(*jsonhttp.Request) (any, error) {
		return func(r *jsonhttp.Request) (any, error) {
			ttl, err := parseTTL(r)
			if err != nil {
				return nil, err
			}
			return nil, do(r.Context(), r.Name, r.PathValue("queue"), ttl)
		}
	}
	mux.Handle("PUT /topics/{name}/subscriptions/{queue}", lasting(s.Subscribe))
	mux.Handle("POST /topics/{name}/subscriptions/{queue}/refresh", lasting(s.Refresh))
	mux.Handle("DELETE /topics/{name}/subscriptions/{queue}", func(r *jsonhttp.Request) (any, error) {
		return nil, s.Unsubscribe(r.Context(), r.Name, r.PathValue("queue"))
	})
	mux.Handle("POST /topics/{name}/messages", func(r *jsonhttp.Request) (any, error) {
		message, err := r.Read(queue.MaxMessage)
		if err != nil {
			return nil, err
		}
		n, err := s.Publish(r.Context(), r.Name, message)
		return Published{n}, err
	})
	return mux
}

// parseTTL returns for how long a subscription is to last.
func parseTTL(r *jsonhttp.Request) (time.Duration, error) {
	text := cmp.Or(r.URL.Query().Get("ttl"), UsualTTL.String())
	ttl, err := time.ParseDuration(text)
	if err != nil || ttl <= 0 || ttl > MaxTTL {
		return 0, leasehold.Errorf("subscribe", leasehold.Invalid, r.Name, "ttl is %q, want a time of up to %v, 1h for instance", text, MaxTTL)
	}
	return ttl, nil
}
