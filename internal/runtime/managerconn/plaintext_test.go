package managerconn_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
)

// The error of a connection that the server closes before it has sent anything mentions TLS.
func TestServerCloses(t *testing.T) {
	for _, word := range []string{"", "hello"} {
		ours, theirs := net.Pipe()
		plain, _, err := managerconn.Plaintext().ClientHandshake(t.Context(), "localhost", ours)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(theirs, word) // an error fails the following read
			_ = theirs.Close()
		}()
		read, err := io.ReadAll(plain)
		if string(read) != word || (err != nil) != (word == "") {
			t.Errorf("after %q: read %q, %v", word, read, err)
		}
		if word == "" && (!errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "may require TLS")) {
			t.Errorf("%v", err)
		}
	}
}

// A listener has an address.
type listener struct {
	net.Listener
	at net.Addr
}

func (l listener) Addr() net.Addr { return l.at }

func TestCheckPlaintextListener(t *testing.T) {
	for _, test := range []struct {
		listener net.Listener
		refused  bool
	}{
		{bufconn.Listen(1), false},
		{listener{at: &net.UnixAddr{Name: "/run/x", Net: "unix"}}, false},
		{listener{at: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}, false},
		{listener{at: &net.TCPAddr{IP: net.IPv6loopback}}, false},
		{listener{at: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}}, true},
		{listener{at: &net.TCPAddr{IP: net.IPv6unspecified}}, true},
		{listener{at: &net.TCPAddr{}}, true},
	} {
		if err := address.CheckPlaintextListener(test.listener, "Credentials"); (err != nil) != test.refused {
			t.Errorf("%v: %v", test.listener.Addr(), err)
		}
		if managerconn.Exposed(test.listener, insecure.NewCredentials()) != test.refused || managerconn.Exposed(test.listener, credentials.NewTLS(nil)) {
			t.Errorf("%v: exposed: %v, want %v, and false with TLS", test.listener.Addr(), !test.refused, test.refused)
		}
	}
}

// A connection has a remote address.
type connection struct {
	net.Conn
	to net.Addr
}

func (c connection) RemoteAddr() net.Addr { return c.to }

// The check applies to the remote address of the connection, not to its name.
func TestPlaintextIsLoopbackOnly(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}
	for _, test := range []struct {
		to      net.Addr
		refused bool
	}{{here, false}, {there, true}, {bufconn.Listen(1).Addr(), false}} {
		_, _, err := managerconn.Plaintext().Clone().ClientHandshake(t.Context(), "localhost", connection{to: test.to})
		if (err != nil) != test.refused {
			t.Errorf("%v: %v", test.to, err)
		}
	}
}
