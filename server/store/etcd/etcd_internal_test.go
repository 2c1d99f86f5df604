package etcd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"
)

// TestUnreachableIsTriedSoon: a member that does not answer is tried again and again, and
// not less and less often.
func TestUnreachableIsTriedSoon(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tried := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() {
		defer close(tried)
		for range 7 { // with gRPC's own backoff the seventh would be after 20 s
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // as if nobody were there
			tried <- struct{}{}
		}
	}()
	client, err := dial(ctx, Config{Endpoints: []string{listener.Addr().String()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = client.Get(ctx, "nobody answers")
	}()
	for n := range 7 {
		select {
		case <-tried:
		case <-ctx.Done():
			t.Fatalf("it was tried %d times in 10 s", n)
		}
	}
	cancel()
	<-asked
	if err := errors.Join(client.Close(), listener.Close()); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
