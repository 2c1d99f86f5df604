package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/internal/testkit/logbook"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// alone starts a manager on loopback, on real time, and returns a connection.
func alone(t *testing.T, change func(*manager.Config)) (*manager.Manager, *grpc.ClientConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := manager.Config{Store: mem.New(), Listener: listener, Logger: slog.New(slog.DiscardHandler)}
	change(&cfg)
	m, err := manager.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///"+m.Addr(), append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return m, conn
}

func holdRequest(session byte) *leaseholdv1.HoldRequest {
	return &leaseholdv1.HoldRequest{
		Version: wire.Version, Namespace: "pool", Seq: 1,
		Holder: &leaseholdv1.Holder{Owner: "a", Session: append(make([]byte, 15), session), Addr: "a:80", Weight: 1},
	}
}

// A stream that violates the protocol ends with an error, without other effects.
func TestOwnerStreamProtocolViolations(t *testing.T) {
	_, conn := alone(t, func(*manager.Config) {})
	other := holdRequest(2)
	for _, c := range []struct {
		name     string
		messages []*leaseholdv1.HoldRequest
		kind     leasehold.Kind
		want     string
	}{
		{"no version", []*leaseholdv1.HoldRequest{{}}, leasehold.ErrInvalid, "must have one"},
		{"a far version", []*leaseholdv1.HoldRequest{{Version: 9}}, leasehold.ErrStale, fmt.Sprintf("the client has version 9 and the manager %d, and they may differ by 1: upgrade the manager", wire.Version)},
		{"nonsense", []*leaseholdv1.HoldRequest{{Version: wire.Version}}, leasehold.ErrInvalid, "holder"},
		{"two sessions", []*leaseholdv1.HoldRequest{holdRequest(1), other}, leasehold.ErrInvalid, "a stream is for one session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stream, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range c.messages {
				if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
			}
			for err == nil {
				_, err = stream.Recv()
			}
			if err = wire.ToError(err); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the stream ends with %v, want %v: %s", err, c.kind, c.want)
			}
		})
	}
}

// A manager logs clients of a far version, which retry, once a minute.
func TestFarVersionsAreLogged(t *testing.T) {
	var log logbook.Book
	_, conn := alone(t, func(cfg *manager.Config) { cfg.Logger = log.Logger() })
	for range 3 {
		stream, err := leaseholdv1.NewLookupServiceClient(conn).Follow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&leaseholdv1.FollowRequest{Version: 9}); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); !errors.Is(wire.ToError(err), leasehold.ErrStale) {
			t.Errorf("the stream ends with %v", err)
		}
	}
	if text := log.String(); strings.Count(text, "client rejected") != 1 || !strings.Contains(text, "upgrade the manager") {
		t.Errorf("%s", text)
	}
}

func TestLookupStreamProtocolViolations(t *testing.T) {
	_, conn := alone(t, func(*manager.Config) {})
	stream, err := leaseholdv1.NewLookupServiceClient(conn).Follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{"pool", "pond"} {
		if err := stream.Send(&leaseholdv1.FollowRequest{Version: wire.Version, Namespace: ns, Seq: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if err = wire.ToError(err); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), `this one is for "pool"`) {
		t.Errorf("the stream ends with %v", err)
	}
}

// A session has one stream: a new one ends the one before.
func TestSessionMovesToNewStream(t *testing.T) {
	_, conn := alone(t, func(*manager.Config) {})
	client := leaseholdv1.NewOwnerServiceClient(conn)
	var streams [2]grpc.BidiStreamingClient[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]
	for i := range streams {
		var err error
		if streams[i], err = client.Hold(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := streams[i].Send(holdRequest(1)); err != nil {
			t.Fatal(err)
		}
		if _, err := streams[i].Recv(); err != nil { // so that they register in order
			t.Fatal(err)
		}
	}
	var err error
	for err == nil {
		_, err = streams[0].Recv()
	}
	if !errors.Is(wire.ToError(err), leasehold.ErrClosed) {
		t.Errorf("the first stream ends with %v", err)
	}
}

// Streams beyond the limit are refused with an error.
func TestStreamLimit(t *testing.T) {
	_, conn := alone(t, func(c *manager.Config) { c.MaxStreams = 1 })
	client := leaseholdv1.NewOwnerServiceClient(conn)
	first, err := client.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Send(holdRequest(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Recv(); err != nil {
		t.Fatal(err)
	}
	second, err := client.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Recv(); !errors.Is(wire.ToError(err), leasehold.ErrLimit) {
		t.Errorf("the second stream ends with %v", err)
	}
}

func TestHealth(t *testing.T) {
	m, conn := alone(t, func(*manager.Config) {})
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		answer, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if answer.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			break // it leads
		}
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ok, led by "} {
		if code, body := get(m, path); code != http.StatusOK || !strings.HasPrefix(body, want) {
			t.Errorf("%s answers %d: %s", path, code, body)
		}
	}
}

// get sends a health check to a manager.
func get(m *manager.Manager, path string) (int, string) {
	answer := httptest.NewRecorder()
	m.HealthHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

// A manager whose store does not reply is live and not ready, and reports why.
func TestNotReady(t *testing.T) {
	gone := mem.New()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.Start(manager.Config{Store: gone, Listener: listener, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		if code, body := get(m, path); code != want {
			t.Errorf("%s answers %d, want %d: %s", path, code, want, body)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_ = m.Close(ctx) // no leadership to hand over
}

// A standby is ready only while a manager leads.
func TestStandbyIsNotReadyWithoutLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		standby := c.start("m2")
		eventually(t, 5*time.Second, "m2 is ready", func() bool { code, _ := get(standby, "/readyz"); return code == http.StatusOK })
		c.managers["m2"].down.Store(true) // its store does not reply: it cannot take over
		c.crash("m1")
		eventually(t, 10*time.Second, "m2 is not ready", func() bool {
			code, _ := get(standby, "/readyz")
			return code == http.StatusServiceUnavailable
		})
		status := c.status("m2")
		if status.GetLeader() != "" || status.GetProblem() == "" {
			t.Errorf("status of m2: leader %q, problem %q", status.GetLeader(), status.GetProblem())
		}
		c.managers["m2"].down.Store(false)
		eventually(t, 10*time.Second, "m2 leads", func() bool { return c.status("m2").GetLeader() == addr("m2") })
	})
}

func TestConfigRefuses(t *testing.T) {
	for want, advertise := range map[string]string{
		"want host:port":          "nowhere",
		"has no port":             "host:0",
		"is the wildcard address": "0.0.0.0:7400",
		"others cannot connect":   ":7400",
		"longer than 128 bytes":   strings.Repeat("x", 130) + ":1",
		"contains spaces":         "a b:1",
		"Listener and either":     "",
	} {
		_, err := manager.Start(manager.Config{Store: mem.New(), Advertise: advertise, Listener: unusable(advertise)})
		if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", advertise, err, want)
		}
	}
}

// A listener outside the loopback requires explicit credentials, even for plaintext.
func TestPlaintextOutsideLoopbackIsExplicit(t *testing.T) {
	everywhere := public{bufconn.Listen(1)}
	_, err := manager.Start(manager.Config{Store: mem.New(), Advertise: "m1:7400", Listener: everywhere})
	const want = "connections would be plaintext: set ServerCredentials and ClientCredentials, from package secure"
	if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	m, err := manager.Start(manager.Config{
		Store: mem.New(), Advertise: "m1:7400", Listener: everywhere, Logger: slog.New(slog.DiscardHandler),
		ServerCredentials: insecure.NewCredentials(), ClientCredentials: insecure.NewCredentials(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// public is a listener with the wildcard address.
type public struct{ net.Listener }

func (public) Addr() net.Addr { return &net.TCPAddr{Port: 7400} }

// unusable returns a listener that accepts nothing, nil if there is nothing to advertise.
func unusable(advertise string) net.Listener {
	if advertise == "" {
		return nil
	}
	return struct{ net.Listener }{}
}
