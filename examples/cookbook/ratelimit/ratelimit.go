// Package ratelimit is a rate limiter for a whole service: the server that owns a client's name counts its requests.
package ratelimit

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

const (
	interval = time.Second // sustained rate: 60 requests per minute
	burst    = 5           // requests at once
)

var errLimited = errors.New("rate limit exceeded")

// A Limiter is a server that limits the clients that it owns.
type Limiter struct {
	// full has the instant at which the token bucket of each client is full again. Afterwards the entry is not needed.
	full *leasemap.Map[time.Time]
}

// Join joins a namespace.
func Join(ctx context.Context, as owner.Config) (*Limiter, error) {
	full, err := leasemap.Join(ctx, as, leasemap.Config[time.Time]{TTL: burst * interval})
	return &Limiter{full}, err
}

// Close moves the buckets to other servers. Serve until it returns.
func (l *Limiter) Close(ctx context.Context) error { return l.full.Close(ctx) }

// allow takes a token of a client. It fails with errLimited if there is none.
func (l *Limiter) allow(ctx context.Context, client string) error {
	_, err := l.full.Update(ctx, client, func(full *time.Time) error {
		now := time.Now()
		if full.Before(now) {
			*full = now
		}
		if *full = full.Add(interval); full.Sub(now) > burst*interval {
			return errLimited // the change is discarded
		}
		return nil
	})
	return err
}

// Handler serves POST /allow/{client}: 200, or 429 above the limit.
func (l *Limiter) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /allow/{client}", func(w http.ResponseWriter, r *http.Request) {
		err := l.allow(r.Context(), r.PathValue("client"))
		if errors.Is(err, errLimited) {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		leasehttp.WriteError(w, err)
	})
	return mux
}
