package device

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

// TestUnwatched: a device ignores messages of subscriptions that an earlier device of its name
// has made.
func TestUnwatched(t *testing.T) {
	d := New(Config{Name: "home", Watch: []string{"work"}}, "10.0.0.1")
	for _, name := range []string{"phone", "work", "home"} {
		d.take(queue.Message{Number: 1, Body: json.RawMessage(`{"document": "` + name + `"}`)})
	}
	if got := d.takeChanged(); len(got) != 1 || got[0] != "work" || len(d.resend) > 0 {
		t.Errorf("%v are to be read, but only work is watched", got)
	}
	d.take(queue.Message{Number: 2, Body: json.RawMessage(`["nonsense"]`)})
	if len(d.resend) == 0 {
		t.Error("an invalid message is ignored; it may have replaced a valid one")
	}
}

type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// TestUnreachable: an unreachable frontend is logged once, not for each attempt.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var output bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		api := jsonhttp.Client{HTTP: &http.Client{Transport: unreachable{}}, URL: "http://frontend"}
		d := New(Config{Name: "home", Frontend: api, Logger: slog.New(slog.NewTextHandler(&output, nil))}, "10.0.0.1")
		if err := d.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if strings.Count(output.String(), "connection refused") != 1 {
			t.Errorf("log:\n%s", output.String())
		}
	})
}
