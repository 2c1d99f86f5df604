package httpauth

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

func wrong() error { return errors.New("wrong") }
func right() error { return nil }

// The number of throttled places is bounded, and they are removed when their budget is full again.
func TestFailuresAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var th Throttle
		for i := range 3 * maxPlaces {
			_ = th.Try(fmt.Sprint(i), wrong) // the error is expected
		}
		if n := len(th.failed); n > maxPlaces+1 {
			t.Errorf("%d places are tracked, want at most %d, and one for the others", n, maxPlaces)
		}
		if err := th.Try("one more", right); leasehold.KindOf(err) != leasehold.ErrLimit {
			t.Errorf("a new place above the limit: %v, want a limit error", err)
		}
		time.Sleep(time.Hour)
		if err := th.Try("one more", right); err != nil || len(th.failed) > 1 {
			t.Errorf("an hour later: %v, %d places are tracked", err, len(th.failed))
		}
	})
}

// TestThrottledIsNotChecked: the token of a throttled caller is not checked, so that the response
// does not depend on it.
func TestThrottledIsNotChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var th Throttle
		checked := 0
		for range 20 {
			_ = th.Try("here", func() error { checked++; return wrong() })
		}
		if checked != Burst {
			t.Errorf("%d tokens were checked, want %d", checked, Burst)
		}
		if err := th.Try("here", right); leasehold.KindOf(err) != leasehold.ErrLimit {
			t.Errorf("the right token while throttled: %v", err)
		}
		if err := th.Try("elsewhere", right); err != nil {
			t.Errorf("the right token from another place: %v", err)
		}
		time.Sleep(Every + time.Second)
		if err := th.Try("here", right); err != nil {
			t.Errorf("the right token after the throttling: %v", err)
		}
	})
}

func TestPlace(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1:5": "192.0.2.1", "[::ffff:192.0.2.1]:5": "192.0.2.1", "[2001:db8::1]:5": "2001:db8::/64",
		"[2001:db8::ffff]:6": "2001:db8::/64", "[fe80::1%eth0]:5": "fe80::/64", "@": "", "": "",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = addr
		if got := Place(r); got != want {
			t.Errorf("%s is at %q, want %q", addr, got, want)
		}
	}
}
