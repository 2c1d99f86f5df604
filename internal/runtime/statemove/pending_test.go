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

// A countingConn counts written bytes.
type countingConn struct {
	net.Conn
	written *atomic.Int64
}

func (s countingConn) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.written.Add(int64(n))
	return n, err
}

// The target reads no message of a source before it accepts it: it receives no more than gRPC's
// flow control window.
func TestPendingStreamsAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		r.serve(t)
		var written atomic.Int64
		conn, err := grpc.NewClient("passthrough:///target:1", append(append(dialOptions(), r.options()...),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				conn, err := r.dial(ctx, addr)
				return countingConn{conn, &written}, err
			}))...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // end of the test
		stream, err := leaseholdv1.NewMoverServiceClient(conn).Transfer(openingContext(t, withoutTicket))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = stream.Send(chunk(1, strings.Repeat("x", MaxRecord), MaxRecord)) }()
		time.Sleep(ticketWait - 1)
		synctest.Wait()
		if got, most := written.Load(), int64(2*streamWindow); got > most || got < streamWindow/2 {
			t.Errorf("the target has received %d bytes of an unauthorized source, want at most %d", got, most)
		}
	})
}

// The number of connections is limited, and silent ones are closed first.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		s := r.serve(t)
		for range maxConnections + 1 {
			if _, err := r.dial(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if _, err := r.open[0].Write([]byte{0}); err == nil {
			t.Errorf("no connection was closed above the limit of %d", maxConnections)
		}
		expect(s, testTicket, nil)
		if err := send(r.transfer(t), []string{"a"}); err != nil {
			t.Error(err)
		}
	})
}

// A connection without a stream is closed after the idle timeout.
func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		r.serve(t)
		stream := r.stream(openingContext(t, withoutTicket), t)
		if _, err := stream.Recv(); err == nil {
			t.Fatal("an unauthorized source was accepted")
		}
		conn := r.open[0]
		time.Sleep(maxConnectionIdle + pingTimeout)
		synctest.Wait()
		if _, err := conn.Write([]byte{0}); err == nil {
			t.Error("the connection is still open")
		}
	})
}

// broken is a listener that fails.
type broken struct{ net.Listener }

func (broken) Accept() (net.Conn, error) { return nil, errors.New("too many open files") }

// A failed listener is logged; a closed one is not.
func TestListenerFails(t *testing.T) {
	for want, listener := range map[string]net.Listener{"": newFakeNetwork().listener, "too many open files": broken{newFakeNetwork().listener}} {
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
