package managerconn

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
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

// hosts is a resolver with the addresses of hosts.
type hosts map[string][]string

func (h hosts) LookupHost(_ context.Context, host string) ([]string, error) { return h[host], nil }

func (hosts) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", nil, nil
}

// The configured resolver resolves the hosts of addresses, as of SRV records. It does not get IP addresses.
func TestResolverOfHosts(t *testing.T) {
	r := hosts{"manager.test": {"10.0.0.1", "fd00::1"}}
	for addr, want := range map[string][]string{
		"manager.test:7400": {"10.0.0.1:7400", "[fd00::1]:7400"}, "10.0.0.2:7400": {"10.0.0.2:7400"}, "[::1]:7400": {"[::1]:7400"}, ":7400": {":7400"},
	} {
		for range 2 { // the resolver's slice is not modified
			if got, err := resolve(t.Context(), r, addr); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %v; want %v", addr, got, err, want)
			}
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // end of the test
	_, port, _ := net.SplitHostPort(l.Addr().String())
	conn, err := connect(t.Context(), hosts{"manager.test": {"127.0.0.1"}}, net.JoinHostPort("manager.test", port))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
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
