package connlimit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
)

// fixedIdentity are credentials of a server whose clients have a certificate of id, or none if id is "".
type fixedIdentity struct {
	credentials.TransportCredentials
	id string
}

func (s fixedIdentity) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if s.id == "" {
		return raw, credentials.TLSInfo{}, nil
	}
	u, err := url.Parse(s.id)
	if err != nil {
		return nil, nil, err
	}
	leaf := &x509.Certificate{URIs: []*url.URL{u}}
	return raw, credentials.TLSInfo{State: tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}},
	}}, nil
}

// handshake opens a connection of an identity, sends the HTTP/2 preface and returns both ends.
func (d *fakeListener) handshake(t *testing.T, l *Listener, id string) (client, server net.Conn, err error) {
	t.Helper()
	client = d.connect("192.0.2.1")
	go func() {
		_, _ = io.WriteString(client, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	}()
	raw, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server, _, err = Callers(fixedIdentity{insecure.NewCredentials(), id}).ServerHandshake(raw)
	return client, server, err
}

// gone reports whether a connection was closed by the other side.
func gone(client net.Conn) bool {
	_ = client.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := client.Read(make([]byte, 1))
	return err == io.EOF //nolint:errorlint // a pipe's own
}

// A connection without certificate and without authenticated call expires after its handshake.
func TestAnonymousConnectionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeListener()
		l := New(d, Config{})
		defer l.Close() //nolint:errcheck // end of the test
		anonymous, _, err := d.handshake(t, l, "")
		if err != nil {
			t.Fatal(err)
		}
		bearer, server, err := d.handshake(t, l, "")
		if err != nil {
			t.Fatal(err)
		}
		certified, _, err := d.handshake(t, l, "spiffe://d/a")
		if err != nil {
			t.Fatal(err)
		}
		Known(peer.NewContext(context.Background(), &peer.Peer{Addr: server.RemoteAddr()}))
		time.Sleep(defaultTimeout + time.Second)
		if !gone(anonymous) {
			t.Error("the anonymous connection is open")
		}
		if gone(bearer) || gone(certified) {
			t.Error("an authenticated connection is closed")
		}
		if from := server.RemoteAddr().String(); from != "192.0.2.1:1000" {
			t.Errorf("address of the peer: %s", from)
		}
	})
}

// Above the limit of anonymous connections the oldest is closed.
func TestAnonymousConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeListener()
		l := New(d, Config{MaxAnonymous: 2})
		defer l.Close() //nolint:errcheck // end of the test
		var all []net.Conn
		for range 3 {
			c, _, err := d.handshake(t, l, "")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		synctest.Wait()
		if !gone(all[0]) || gone(all[1]) || gone(all[2]) {
			t.Error("the closed connection is not the oldest")
		}
	})
}

// An identity has a maximum number of connections. Closing one makes room for another.
func TestPerIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeListener()
		l := New(d, Config{PerIdentity: 2})
		defer l.Close() //nolint:errcheck // end of the test
		var first net.Conn
		for i := range 2 {
			_, server, err := d.handshake(t, l, "spiffe://d/a")
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = server
			}
		}
		client, _, err := d.handshake(t, l, "spiffe://d/a")
		if err == nil || !gone(client) {
			t.Errorf("the third connection: %v", err)
		}
		if _, _, err := d.handshake(t, l, "spiffe://d/b"); err != nil {
			t.Errorf("connection of another identity: %v", err)
		}
		_ = first.Close()
		if _, _, err := d.handshake(t, l, "spiffe://d/a"); err != nil {
			t.Errorf("connection after one is closed: %v", err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.identities["spiffe://d/a"] != 2 || l.identities["spiffe://d/b"] != 1 {
			t.Errorf("connections by identity: %v", l.identities)
		}
	})
}
