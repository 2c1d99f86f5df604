package leasehttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// A sender is a Base without a network.
type sender func(r *http.Request) (string, error)

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := s(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// moving sends a request whose key moves to another server half a second later.
func moving(t *testing.T, r *http.Request, send func(r *http.Request, first bool) (string, error)) (got answer, err error) {
	t.Helper()
	two(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, has, other *leaseholdtest.Node) {
		l := c.Node("caller").Lookup()
		transport, failed := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: user, Base: sender(func(r *http.Request) (string, error) {
			return send(r, r.URL.Host == has.Name()+":8080")
		})})
		if failed != nil {
			t.Fatal(failed)
		}
		moved := make(chan struct{})
		go func() {
			defer close(moved)
			time.Sleep(500 * time.Millisecond)
			c.Move(leasehold.All, other.Name())
		}()
		got, err = try(transport, r.WithContext(t.Context()))
		<-moved
	})
	return got, err
}

// An attempt is cancelled at the second check after its key moved, so that a response from before
// the move has time to arrive. A response after the cancellation is dropped.
func TestAttemptIsCancelledAfterItsKeyMoved(t *testing.T) {
	var took time.Duration
	got, err := moving(t, request(t, "GET", "http://presence/", ""), func(r *http.Request, first bool) (string, error) {
		if !first {
			return "second", nil
		}
		began := time.Now()
		<-r.Context().Done()
		took = time.Since(began)
		return "first", nil
	})
	if got.body != "second" || err != nil || took < 2*time.Second || took > 3*time.Second {
		t.Errorf("%v, %v; the first attempt was cancelled after %v", got, err, took)
	}
}

// An attempt whose body cannot be sent again is not cancelled.
func TestAttemptWithoutReplayIsNotCancelled(t *testing.T) {
	r := request(t, "PUT", "http://presence/", "")
	r.Body, r.GetBody, r.ContentLength = unknown{strings.NewReader(strings.Repeat("x", 2*leasehttp.DefaultReplay))}, nil, -1
	got, err := moving(t, r, func(r *http.Request, _ bool) (string, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
			return "", r.Context().Err()
		case <-time.After(time.Minute):
			return "done", nil
		}
	})
	if got.body != "done" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
