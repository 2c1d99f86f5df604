package etcd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// TestUnreachableMemberIsRetriedSoon: the retry backoff for a member that does not respond stays
// short.
func TestUnreachableMemberIsRetriedSoon(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tried := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() {
		defer close(tried)
		for range 7 { // with gRPC's default backoff the seventh attempt is after 20 s
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // as if no server were listening
			tried <- struct{}{}
		}
	}()
	client, err := dial(ctx, Config{Endpoints: []string{listener.Addr().String()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = client.Get(ctx, "no response")
	}()
	for n := range 7 {
		select {
		case <-tried:
		case <-ctx.Done():
			t.Fatalf("%d attempts in 10 s", n)
		}
	}
	cancel()
	<-returned
	if err := errors.Join(client.Close(), listener.Close()); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Members reject requests while they elect a leader: Open tries again. It does not try again what no retry changes.
func TestOpenWaitsForAnElection(t *testing.T) {
	for _, c := range []struct {
		name      string
		responses []error
		reads     int
		succeeds  bool
	}{
		{"at once", []error{nil}, 1, true},
		{"an election", []error{rpctypes.ErrGRPCLeaderChanged, rpctypes.ErrGRPCNoLeader, nil}, 3, true},
		{"a wrong password", []error{rpctypes.ErrGRPCAuthFailed, nil}, 1, false},
		{"no leader", slices.Repeat([]error{rpctypes.ErrGRPCNoLeader}, 100), int(dialTimeout/retryInterval) + 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), dialTimeout)
				defer cancel()
				reads := 0
				err := awaitResponse(ctx, func(context.Context) error {
					reads++
					return c.responses[reads-1]
				})
				if (err == nil) != c.succeeds || reads < c.reads-1 || reads > c.reads {
					t.Errorf("%d reads, want %d: %v", reads, c.reads, err)
				}
			})
		})
	}
}
