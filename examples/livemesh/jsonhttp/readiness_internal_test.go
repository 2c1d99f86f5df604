package jsonhttp

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/owner"
)

// TestReadiness: a server is ready while it has joined, even without leases.
func TestReadiness(t *testing.T) {
	for status, want := range map[owner.Status]int{
		{State: owner.StateJoined}:                  200,
		{State: owner.StateJoined, Held: 3}:         200,
		{State: owner.StateSuspended, Suspended: 3}: 503,
		{State: owner.StateEnded, Held: 3}:          503,
	} {
		w := httptest.NewRecorder()
		writeReadiness(w, status)
		if w.Code != want || !strings.Contains(w.Body.String(), status.State.String()) {
			t.Errorf("%+v: %d %s, want %d", status, w.Code, w.Body, want)
		}
	}
}
