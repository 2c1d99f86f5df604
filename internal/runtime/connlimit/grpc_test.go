package connlimit

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

func TestGreeting(t *testing.T) {
	settings := func(length int, kind byte) string {
		header := []byte{byte(length >> 16), byte(length >> 8), byte(length), kind, 0, 0, 0, 0, 0}
		return http2.ClientPreface + string(header)
	}
	for _, test := range []struct {
		name, said, want string
	}{
		{"no settings", settings(0, 4), ""},
		{"one setting", settings(6, 4) + "123456", ""},
		{"as many as may be", settings(maxSettings, 4) + strings.Repeat("x", maxSettings), ""},
		{"too many", settings(maxSettings+1, 4), "want SETTINGS of at most 256"},
		{"as many as there are", settings(1<<24-1, 4), "16777215 bytes"},
		{"another frame", settings(0, 1), "type HEADERS"},
		{"HTTP/1.1", "GET / HTTP/1.1\r\nHost: manager\r\n\r\n", `but with "GET / HTTP/1.1`},
		{"nothing", "", "EOF"},
		{"half a preface", http2.ClientPreface[:12], "unexpected EOF"},
		{"half a setting", settings(6, 4) + "123", "unexpected EOF"},
	} {
		said, err := greeting(strings.NewReader(test.said))
		switch {
		case test.want == "" && (err != nil || string(said) != test.said):
			t.Errorf("%s: %s, %v", test.name, hex.EncodeToString(said), err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: error %v, want %q", test.name, err, test.want)
		}
	}
}

// What was read of a connection to see how it begins is read again by the server, in
// whatever pieces.
func TestGreetedRead(t *testing.T) {
	near, far := net.Pipe()
	go func() {
		_, _ = near.Write([]byte(" and the rest"))
		_ = near.Close()
	}()
	g := &greeted{Conn: far, said: []byte("the greeting")}
	var got bytes.Buffer
	for {
		var piece [5]byte
		n, err := g.Read(piece[:])
		got.Write(piece[:n])
		if err != nil {
			break
		}
	}
	if got.String() != "the greeting and the rest" {
		t.Errorf("read %q", got.String())
	}
}

// serve runs a health service behind a gate, in memory.
func serve(t *testing.T, options ...grpc.ServerOption) *bufconn.Listener {
	t.Helper()
	at := bufconn.Listen(1 << 16)
	server := grpc.NewServer(append(options, grpc.Creds(Credentials(insecure.NewCredentials())))...)
	healthpb.RegisterHealthServer(Services{Server: server, Admit: notMarked}, health.NewServer())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(New(at, Config{})) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return at
}

// notMarked refuses calls that say that they are to be refused.
func notMarked(ctx context.Context) error {
	if len(metadata.ValueFromIncomingContext(ctx, "refuse")) > 0 {
		return status.Error(codes.Unauthenticated, "not you")
	}
	return nil
}

// Who is not admitted is refused before its request has come.
func TestAdmit(t *testing.T) {
	c := client(t, serve(t, grpc.MaxRecvMsgSize(1<<10)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Read, it would be refused for its length.
	long := &healthpb.HealthCheckRequest{Service: strings.Repeat("x", 1<<20)}
	if _, err := c.Check(metadata.AppendToOutgoingContext(ctx, "refuse", "1"), long); status.Code(err) != codes.Unauthenticated {
		t.Errorf("%v", err)
	}
	if _, err := c.Check(ctx, long); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("who is admitted: %v", err)
	}
}

func client(t *testing.T, at *bufconn.Listener) healthpb.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return at.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return healthpb.NewHealthClient(conn)
}

// A message that is compressed is refused unread, in every kind of call; others pass.
func TestCompression(t *testing.T) {
	c := client(t, serve(t, grpc.MaxRecvMsgSize(1<<10)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Read, it would be refused for its length.
	bomb := &healthpb.HealthCheckRequest{Service: strings.Repeat("x", 1<<20)}
	if _, err := c.Check(ctx, bomb, grpc.UseCompressor(gzip.Name)); status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), `"gzip"`) {
		t.Errorf("a call: %v", err)
	}
	stream, err := c.Watch(ctx, bomb, grpc.UseCompressor(gzip.Name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("a stream: %v", err)
	}
	if _, err := c.Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("uncompressed: %v", err)
	}
}

// A server that stops does not wait for those that have not introduced themselves.
func TestStopDoesNotWait(t *testing.T) {
	at := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.Creds(Credentials(insecure.NewCredentials())), grpc.ConnectionTimeout(time.Hour))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(New(at, Config{Wait: time.Hour})) }()
	for _, said := range []string{"", http2.ClientPreface[:3]} {
		conn, err := at.Dial()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, said); err != nil {
			t.Fatal(err)
		}
	}
	server.Stop()
	if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		t.Error(err)
	}
}
