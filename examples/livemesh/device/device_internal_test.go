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

	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

// Subscriptions outlive a device: the next one of its name, which watches others, gets news
// that it never asked for.
func TestUnwatched(t *testing.T) {
	var learned []string
	d := New(Config{Name: "home", Watch: []string{"work"}, Learned: func(peer, _ string) { learned = append(learned, peer) }}, "10.0.0.1")
	for _, name := range []string{"phone", "work", "home"} {
		body, err := json.Marshal(documents.News{Document: name, Version: "1.1", Set: map[string]json.RawMessage{Section: json.RawMessage(`"10.0.0.9"`)}})
		if err != nil {
			t.Fatal(err)
		}
		d.take(queue.Message{Number: 1, Body: body})
	}
	if len(learned) != 1 || learned[0] != "work" || d.Address("home") != "" {
		t.Errorf("it learned of %v, and watches work alone", learned)
	}
}

type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// Whoever plays a device is told once that nothing can be reached, and not of each attempt.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		asks := jsonhttp.Client{HTTP: &http.Client{Transport: unreachable{}}, URL: "http://frontend"}
		d := New(Config{Name: "home", Frontend: asks, Logger: slog.New(slog.NewTextHandler(&said, nil))}, "10.0.0.1")
		if err := d.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if strings.Count(said.String(), "connection refused") != 1 {
			t.Errorf("it said\n%s", said.String())
		}
	})
}
