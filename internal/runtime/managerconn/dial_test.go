package managerconn

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Closing a connection resets it: the system drops its unsent data.
func TestCloseResetsConnection(t *testing.T) {
	manager, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close() //nolint:errcheck // end of the test
	conn, err := Dial(manager.Addr().String(), []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())})
	if err != nil {
		t.Fatal(err)
	}
	conn.Connect()
	accepted, err := manager.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close() //nolint:errcheck // end of the test
	if err := accepted.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(accepted, make([]byte, 8)); err != nil { // the HTTP/2 preface
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, accepted); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("error %v, want connection reset", err)
	}
}

// Connections use the proxy of the environment, except to local addresses.
func TestProxies(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
	t.Setenv("NO_PROXY", "m3.example.com")
	for addr, want := range map[string]bool{
		"m1.example.com:7400": false, "m3.example.com:7400": true, "127.0.0.1:7400": true, "[::1]:7400": true, "localhost:7400": true, "10.0.0.1:7400": false,
		"unix:/run/leasehold": false, "unix-abstract:leasehold": false,
	} {
		if got := direct(addr); got != want {
			t.Errorf("%s: %t, want %t", addr, got, want)
		}
	}
}
