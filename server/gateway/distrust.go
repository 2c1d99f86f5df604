package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A dialFunc connects to a server.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// distrustPause is how long the log is silent about servers that could not be spoken to
// over TLS, after a line: requests are tried again many times.
const distrustPause = 10 * time.Second

// tellDistrust has the log say when a server is there and cannot be spoken to over TLS: it
// speaks plain text, or is somebody else. That does not mend itself, and callers only see
// that it takes long. Servers that are not there are nothing new.
func tellDistrust(dial dialFunc, log *slog.Logger) dialFunc {
	if dial == nil {
		return nil
	}
	var (
		mu   sync.Mutex
		last time.Time
	)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil || ctx.Err() != nil || isDial(err) {
			return conn, err
		}
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); last.IsZero() || now.Sub(last) >= distrustPause {
			last = now
			log.Warn("a server cannot be spoken to over TLS: its requests wait, and fail", "server", addr, "why", err)
		}
		return conn, err
	}
}

// isDial reports whether an error is about reaching an address.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
