package etcd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"
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
