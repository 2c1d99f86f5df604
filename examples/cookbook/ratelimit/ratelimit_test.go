package ratelimit

import (
	"net/http"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/internal/recipetest"
)

// TestLimit: a burst passes, and then one request per interval. The bucket moves with its client, and is full after
// a crash.
func TestLimit(t *testing.T) {
	recipetest.Run(t, Join, func(_ *testing.T, p *recipetest.Pair) {
		want := func(status int) { p.Want(status, "", http.MethodPost, "/allow/alice", "") }
		exhaust := func() {
			for range burst {
				want(http.StatusOK)
			}
			want(http.StatusTooManyRequests)
		}
		exhaust()
		p.Want(http.StatusOK, "", http.MethodPost, "/allow/bob", "") // has a limit of his own
		p.Advance(interval)
		want(http.StatusOK)
		want(http.StatusTooManyRequests)
		p.Advance(burst * interval)
		exhaust()
		p.Move(leasehold.All, map[string]string{"a": "b", "b": "a"}[p.OwnerOf("alice")])
		want(http.StatusTooManyRequests)
		p.Crash("alice")
		exhaust()
	})
}
