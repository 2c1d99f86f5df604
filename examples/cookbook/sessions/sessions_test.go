package sessions

import (
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/examples/internal/recipetest"
)

// TestSessions: a session lasts while it is used. It moves when its server restarts, and is lost in a crash.
func TestSessions(t *testing.T) {
	recipetest.Run(t, Join, func(_ *testing.T, p *recipetest.Pair) {
		const path = "/sessions/s1"
		want := func(status int, data string) { p.Want(status, data, http.MethodGet, path, "") }
		set := func(data string, status int) { p.Want(status, "", http.MethodPut, path, data) }
		set("alice", http.StatusOK)
		set(strings.Repeat("x", maxSize+1), http.StatusRequestEntityTooLarge)
		p.Advance(idle * 2 / 3)
		want(http.StatusOK, "alice")
		p.Advance(idle * 2 / 3)
		p.Restart("s1")
		want(http.StatusOK, "alice")
		p.Advance(idle)
		want(http.StatusNotFound, "")
		set("bob", http.StatusOK)
		p.Want(http.StatusOK, "", http.MethodDelete, path, "")
		want(http.StatusNotFound, "")
		set("carol", http.StatusOK)
		p.Crash("s1")
		want(http.StatusNotFound, "")
	})
}
