package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// TestARequestWaitsForAKeyThatComes, over HTTP and on a line. A question about many
// keys does not: it would keep those waiting that are served.
func TestARequestWaitsForAKeyThatComes(t *testing.T) {
	key := uint64(someKey)
	for name, test := range map[string]struct {
		served func(*presence) bool
		waits  int
	}{
		"a request": {func(p *presence) bool {
			w := httptest.NewRecorder()
			p.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/presence/somebody", nil))
			return w.Code == http.StatusOK
		}, 1},
		"a question about a key": {func(p *presence) bool {
			return wordAt(p.appendAnswer(nil, frameOf(key)[frameHead:])[frameHead:], 0) != declined
		}, 1},
		"a question about many": {func(p *presence) bool {
			return wordAt(p.appendAnswer(nil, frameOf(key, key)[frameHead:])[frameHead:], 0) != declined
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, leases, _ := startPresence()
			leases.generation = 0
			waits := 0
			p.await = func(context.Context, leasehold.Key) bool {
				waits++
				leases.generation = 1 // it has come
				return true
			}
			if served := test.served(p); served != (test.waits > 0) || waits != test.waits {
				t.Errorf("served: %t, after %d waits, want %d", served, waits, test.waits)
			}
		})
	}
}
