package gameroom

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/leasehold-dev/leasehold/examples/internal/recipetest"
)

// TestGame: illegal and repeated moves are rejected. A room moves when its server restarts, and is lost in a crash.
func TestGame(t *testing.T) {
	recipetest.Run(t, Join, func(t *testing.T, p *recipetest.Pair) {
		const path = "/rooms/blue"
		version := ""
		see := func(stones int, last string) {
			t.Helper()
			_, text := p.Send(http.MethodGet, path, "")
			var seen struct {
				Version string
				Room    Room
			}
			if err := json.Unmarshal([]byte(text), &seen); err != nil || seen.Room != (Room{stones, last}) {
				t.Errorf("%s (%v), want %d stones after %q", text, err, stones, last)
			}
			version = seen.Version
		}
		take := func(status int, player string, stones int) {
			t.Helper()
			p.Want(status, "", http.MethodPost, path, fmt.Sprintf(`{"player":%q,"stones":%d,"version":%q}`, player, stones, version))
		}
		p.Want(http.StatusOK, "version", http.MethodPut, path, "")
		p.Want(http.StatusPreconditionFailed, "", http.MethodPut, path, "") // it exists
		see(21, "")
		take(http.StatusOK, "alice", 3)
		take(http.StatusPreconditionFailed, "alice", 3) // the same request again
		see(18, "alice")
		take(http.StatusBadRequest, "alice", 1) // not her turn
		take(http.StatusBadRequest, "bob", 4)
		p.Want(http.StatusBadRequest, "", http.MethodPost, path, "{")

		p.Restart("blue")
		take(http.StatusOK, "bob", 2) // with the version from before
		see(16, "bob")

		p.Crash("blue")
		p.Want(http.StatusNotFound, "", http.MethodGet, path, "")
		take(http.StatusPreconditionFailed, "alice", 1)
	})
}
