package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/server/daemon"
)

// unixPrefix marks the path of a socket among addresses.
const unixPrefix = "unix:"

// Listen listens on an address, host:port or unix:/path. Only a trusted network may reach an agent:
// without that, an address that is not on the loopback is refused. Mode is for the socket.
func Listen(addr string, trusted bool, mode os.FileMode) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		return listenUnix(path, mode)
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, leasehold.Errorf("listen", leasehold.ErrInvalid, addr, "want host:port, or unix:/path")
	}
	if !trusted && !address.Loopback(addr) {
		return nil, leasehold.Errorf("listen", leasehold.ErrInvalid, addr,
			"the address is not on the loopback, and the agent has no access control\nListen on 127.0.0.1 or a unix: socket, or pass --insecure if the network is trusted.")
	}
	return daemon.ListenOn("listen", addr)
}

// listenUnix replaces the socket of an agent that died.
func listenUnix(path string, mode os.FileMode) (net.Listener, error) {
	if path == "" {
		return nil, leasehold.Errorf("listen", leasehold.ErrInvalid, unixPrefix, "want a path, such as unix:/run/leasehold/agent.sock")
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		conn, err := net.Dial("unix", path)
		if err == nil {
			_ = conn.Close() // nothing was sent
			return nil, leasehold.Errorf("listen", leasehold.ErrUnavailable, path, "another process listens there")
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path) // otherwise net.Listen returns the error
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, leasehold.Errorf("listen", leasehold.ErrUnavailable, path, "%w", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(leasehold.Errorf("listen", leasehold.ErrUnavailable, path, "%w", err), l.Close())
	}
	return l, nil
}

// Serve serves on a listener until the context ends. Then it closes the agent: all leases are released,
// which takes as long as programs may rely on them, and a round trip. It closes the listener.
func (a *Agent) Serve(ctx context.Context, listener net.Listener) error {
	// Streams have no end, so only their parts have deadlines.
	server := &http.Server{
		Handler: a, TLSConfig: a.cfg.TLS, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ConnContext: withConn,
		ErrorLog: slog.NewLogLogger(a.cfg.Logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() {
		ended <- connlimit.Serve(server, listener, connlimit.Config{Conns: a.cfg.MaxConns, Logger: a.cfg.Logger})
	}()
	select {
	case <-ctx.Done():
	case err := <-ended:
		ended <- err
	}
	// Requests that come now are refused with errClosed, and retried at the next agent.
	closing, cancel := context.WithTimeout(context.Background(), a.cfg.MaxPromise+closeTimeout)
	defer cancel()
	a.Close(closing)
	stopping, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if server.Shutdown(stopping) != nil {
		_ = server.Close() // the remaining connections hang
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
