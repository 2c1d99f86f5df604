package statemove

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A scale counts what is written to a connection.
type scale struct {
	net.Conn
	written *atomic.Int64
}

func (s scale) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.written.Add(int64(n))
	return n, err
}

// Nothing that a stranger sends is read: what the target takes of it is as much as
// gRPC takes by itself.
func TestStrangersAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.serve(t)
		var written atomic.Int64
		conn, err := grpc.NewClient("passthrough:///target:1", append(append(dialOptions(), r.options()...),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				conn, err := r.dial(ctx, addr)
				return scale{conn, &written}, err
			}))...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // nothing is left to be said over it
		stream, err := leaseholdv1.NewMoverServiceClient(conn).Transfer(opened(t, withoutTicket))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = stream.Send(chunk(1, strings.Repeat("x", MaxRecord), MaxRecord)) }()
		time.Sleep(ticketWait - 1)
		synctest.Wait()
		if got, most := written.Load(), int64(2*streamWindow); got > most || got < streamWindow/2 {
			t.Errorf("the target has taken %d bytes of a stranger, want at most %d", got, most)
		}
	})
}

// Connections in any number do not pile up, and those that say nothing make room
// for those that do.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		s := r.serve(t)
		for range maxConnections + 1 {
			if _, err := r.dial(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if _, err := r.open[0].Write([]byte{0}); err == nil {
			t.Errorf("one more than %d connections are let in, and none was closed", maxConnections)
		}
		expect(s, testTicket, nil)
		if err := send(r.transfer(t), []string{"a"}); err != nil {
			t.Error(err)
		}
	})
}

// A connection without a stream does not stay.
func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.serve(t)
		stream := r.stream(opened(t, withoutTicket), t)
		if _, err := stream.Recv(); err == nil {
			t.Fatal("a stranger is let in")
		}
		conn := r.open[0]
		time.Sleep(closeAfter + pingTimeout)
		synctest.Wait()
		if _, err := conn.Write([]byte{0}); err == nil {
			t.Error("the connection is still open")
		}
	})
}

// broken is a listener that fails.
type broken struct{ net.Listener }

func (broken) Accept() (net.Conn, error) { return nil, errors.New("too many open files") }

// A listener that fails is worth a line in the log, and one that is closed is not.
func TestListenerFails(t *testing.T) {
	for want, listener := range map[string]net.Listener{"": newRoad().listener, "too many open files": broken{newRoad().listener}} {
		var log strings.Builder
		s := Serve(listener, ServerConfig{Credentials: insecure.NewCredentials(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if want != "" {
			s.running.Wait()
		}
		s.Close()
		if got := log.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("logged %q, want %q", got, want)
		}
	}
}
