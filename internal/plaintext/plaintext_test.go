package plaintext_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold/internal/plaintext"
)

func TestCheck(t *testing.T) {
	for addr, refused := range map[string]bool{
		"127.0.0.1:7400": false, "127.8.9.1:7400": false, "[::1]:7400": false, "localhost:7400": false, "[::ffff:127.0.0.1]:1": false,
		"10.0.0.1:7400": true, "m1:7400": true, "[2001:db8::1]:7400": true, ":7400": true, "0.0.0.0:1": true,
		"localhost.example.com:1": true, "127.0.0.1.example.com:1": true, "nonsense": true, "": true,
	} {
		err := plaintext.Check("127.0.0.1:1", addr)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "insecure.NewCredentials()") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

// Whoever is hung up on before he has heard a word is told what that may mean; later it
// means nothing.
func TestHungUp(t *testing.T) {
	for _, word := range []string{"", "hello"} {
		ours, theirs := net.Pipe()
		plain, _, err := plaintext.Credentials().ClientHandshake(t.Context(), "localhost", ours)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(theirs, word) // if it fails, so does what follows
			_ = theirs.Close()
		}()
		heard, err := io.ReadAll(plain)
		if string(heard) != word || (err != nil) != (word == "") {
			t.Errorf("after %q: heard %q, %v", word, heard, err)
		}
		if word == "" && (!errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "wants TLS")) {
			t.Errorf("%v", err)
		}
	}
}

// A listener says where it is.
type listener struct {
	net.Listener
	at net.Addr
}

func (l listener) Addr() net.Addr { return l.at }

func TestCheckListener(t *testing.T) {
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
		if err := plaintext.CheckListener(test.listener, "Credentials"); (err != nil) != test.refused {
			t.Errorf("%v: %v", test.listener.Addr(), err)
		}
		if plaintext.Exposed(test.listener, insecure.NewCredentials()) != test.refused || plaintext.Exposed(test.listener, credentials.NewTLS(nil)) {
			t.Errorf("%v: exposed %v, want %v; with TLS it is not", test.listener.Addr(), !test.refused, test.refused)
		}
	}
}

// A connection says where it leads.
type connection struct {
	net.Conn
	to net.Addr
}

func (c connection) RemoteAddr() net.Addr { return c.to }

// Whatever an address was called, where it leads is what counts.
func TestCredentials(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}
	for _, test := range []struct {
		to      net.Addr
		refused bool
	}{{here, false}, {there, true}, {bufconn.Listen(1).Addr(), false}} {
		_, _, err := plaintext.Credentials().Clone().ClientHandshake(t.Context(), "localhost", connection{to: test.to})
		if (err != nil) != test.refused {
			t.Errorf("%v: %v", test.to, err)
		}
	}
}
