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

func TestReadPreface(t *testing.T) {
	settings := func(length int, kind byte) string {
		header := []byte{byte(length >> 16), byte(length >> 8), byte(length), kind, 0, 0, 0, 0, 0}
		return http2.ClientPreface + string(header)
	}
	for _, test := range []struct {
		name, data, want string
	}{
		{"no settings", settings(0, 4), ""},
		{"one setting", settings(6, 4) + "123456", ""},
		{"longest settings", settings(maxSettings, 4) + strings.Repeat("x", maxSettings), ""},
		{"settings too long", settings(maxSettings+1, 4), "want SETTINGS of at most 256"},
		{"longest frame", settings(1<<24-1, 4), "16777215 bytes"},
		{"another frame", settings(0, 1), "type HEADERS"},
		{"HTTP/1.1", "GET / HTTP/1.1\r\nHost: manager\r\n\r\n", `it starts with "GET / HTTP/1.1`},
		{"no data", "", "EOF"},
		{"half a preface", http2.ClientPreface[:12], "unexpected EOF"},
		{"half a setting", settings(6, 4) + "123", "unexpected EOF"},
	} {
		preface, err := readPreface(strings.NewReader(test.data))
		switch {
		case test.want == "" && (err != nil || string(preface) != test.data):
			t.Errorf("%s: %s, %v", test.name, hex.EncodeToString(preface), err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: error %v, want %q", test.name, err, test.want)
		}
	}
}

// The server reads the bytes of the preface again, in reads of any length.
func TestPrefaceIsReadAgain(t *testing.T) {
	near, far := net.Pipe()
	go func() {
		_, _ = near.Write([]byte(" and the rest"))
		_ = near.Close()
	}()
	g := &prefacedConn{Conn: far, unread: []byte("the preface")}
	var got bytes.Buffer
	for {
		var piece [5]byte
		n, err := g.Read(piece[:])
		got.Write(piece[:n])
		if err != nil {
			break
		}
	}
	if got.String() != "the preface and the rest" {
		t.Errorf("read %q", got.String())
	}
}

// serve runs a health service on a Listener in memory.
func serve(t *testing.T, options ...grpc.ServerOption) *bufconn.Listener {
	t.Helper()
	at := bufconn.Listen(1 << 16)
	server := grpc.NewServer(append(options, grpc.Creds(Credentials(insecure.NewCredentials())))...)
	healthpb.RegisterHealthServer(Services{Server: server, Admit: rejectMarked}, health.NewServer())
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

// rejectMarked rejects calls with the metadata key "refuse".
func rejectMarked(ctx context.Context) error {
	if len(metadata.ValueFromIncomingContext(ctx, "refuse")) > 0 {
		return status.Error(codes.Unauthenticated, "rejected by the test")
	}
	return nil
}

// Admit rejects a call before its request is read.
func TestAdmitRejectsUnread(t *testing.T) {
	c := client(t, serve(t, grpc.MaxRecvMsgSize(1<<10)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Reading it would fail because of its length.
	long := &healthpb.HealthCheckRequest{Service: strings.Repeat("x", 1<<20)}
	if _, err := c.Check(metadata.AppendToOutgoingContext(ctx, "refuse", "1"), long); status.Code(err) != codes.Unauthenticated {
		t.Errorf("%v", err)
	}
	if _, err := c.Check(ctx, long); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("admitted call: %v", err)
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

// Compressed messages are rejected unread, in unary calls and streams.
func TestCompressionIsRejected(t *testing.T) {
	c := client(t, serve(t, grpc.MaxRecvMsgSize(1<<10)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Reading it would fail because of its length.
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

// Stop does not wait for pending connections.
func TestStopWithPendingConnections(t *testing.T) {
	at := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.Creds(Credentials(insecure.NewCredentials())), grpc.ConnectionTimeout(time.Hour))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(New(at, Config{HandshakeTimeout: time.Hour})) }()
	for _, data := range []string{"", http2.ClientPreface[:3]} {
		conn, err := at.Dial()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, data); err != nil {
			t.Fatal(err)
		}
	}
	server.Stop()
	if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		t.Error(err)
	}
}
