package feed_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/feed"
	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// An answer is the checked part of a response.
type answer struct {
	status int
	retry  string
	body   string
}

// send sends a request, and returns the response.
func send(t *testing.T, client *http.Client, method, url string, body io.Reader) answer {
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	got, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	defer got.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Error(err)
	}
	return answer{got.StatusCode, got.Header.Get("Retry-After"), string(text)}
}

// slow starts a post whose body stalls. It returns a function that sends the body, and the
// response.
func slow(t *testing.T, client *http.Client, url, user string) (end func() error, answered chan answer) {
	body, rest := io.Pipe()
	answered = make(chan answer, 1)
	go func() {
		// The transport waits for the body, so the test must end the request.
		defer time.AfterFunc(time.Minute, func() { _ = body.Close() }).Stop()
		defer body.Close() //nolint:errcheck // never fails
		answered <- send(t, client, http.MethodPut, url+"/feeds/"+user+"/items", body)
	}()
	return func() error {
		if _, err := rest.Write(rss("Alice slept")); err != nil {
			return err
		}
		return rest.Close()
	}, answered
}

// TestMaxOutstanding: a frontend at its limit of requests to a server refuses others for that
// server at once, and forwards those for other servers.
func TestMaxOutstanding(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"), feed.Config{})
		serve(t, c.Node("b"), feed.Config{})
		c.Settle()
		url, api := front(t, c, 1)
		onA, onB := usersOf(t, c, "a"), usersOf(t, c, "b")
		end, first := slow(t, api, url, onA[0])
		c.Advance(time.Second)
		began := time.Now()
		got := send(t, api, http.MethodGet, url+"/feeds/"+onA[1], http.NoBody)
		if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, `"limit"`) || time.Since(began) > 100*time.Millisecond {
			t.Errorf("after %v: %+v", time.Since(began), got)
		}
		if got := send(t, api, http.MethodGet, url+"/feeds/"+onB[0], http.NoBody); got.status != http.StatusOK {
			t.Errorf("a user on another server: %+v", got)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		if got := <-first; got.status != http.StatusNoContent {
			t.Errorf("%+v", got)
		}
		if got := send(t, api, http.MethodGet, url+"/feeds/"+onA[1], http.NoBody); got.status != http.StatusOK {
			t.Errorf("below the limit again: %+v", got)
		}
	})
}

// front runs a frontend, and returns its URL and a client.
func front(t *testing.T, c *leaseholdtest.Cluster, most int) (url string, api *http.Client) {
	n := c.Node("front")
	base := &http.Transport{DialContext: n.DialContext}
	n.Cleanup(func(context.Context) { base.CloseIdleConnections() })
	handler, err := frontend.New(frontend.Config{Base: base, Services: []frontend.Service{
		{Prefix: "/feeds/", Lookup: meshtest.Lookup(t, c, n), MaxOutstanding: most},
	}})
	if err != nil {
		t.Fatal(err)
	}
	n.Serve(handler)
	return "http://" + n.Addr(), c.Node("caller").Client()
}

// usersOf returns two users whose owner is a server.
func usersOf(t *testing.T, c *leaseholdtest.Cluster, server string) (users []string) {
	for i := 0; len(users) < 2; i++ {
		user := fmt.Sprint("user-", i)
		if at, ok := c.Owner(leasehold.KeyOf(user)); ok && at == server {
			users = append(users, user)
		}
		if i == 1000 {
			t.Fatalf("%s owns no user", server)
		}
	}
	return users
}
