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

// shows are credentials of a server whose clients have shown the certificate of somebody;
// of "" none.
type shows struct {
	credentials.TransportCredentials
	who string
}

func (s shows) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if s.who == "" {
		return raw, credentials.TLSInfo{}, nil
	}
	u, err := url.Parse(s.who)
	if err != nil {
		return nil, nil, err
	}
	leaf := &x509.Certificate{URIs: []*url.URL{u}}
	return raw, credentials.TLSInfo{State: tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}},
	}}, nil
}

// greets has somebody connect and say how HTTP/2 begins, and returns both ends.
func (d *door) greets(t *testing.T, l *Listener, who string) (client, server net.Conn, err error) {
	t.Helper()
	client = d.connect("192.0.2.1")
	go func() {
		_, _ = io.WriteString(client, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	}()
	raw, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server, _, err = Callers(shows{insecure.NewCredentials(), who}).ServerHandshake(raw)
	return client, server, err
}

// gone reports whether a connection was closed by the other side.
func gone(client net.Conn) bool {
	_ = client.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := client.Read(make([]byte, 1))
	return err == io.EOF //nolint:errorlint // a pipe's own
}

// Who has no certificate, and makes no call that is let in, does not stay, however well
// its connection begins.
func TestStrangersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		l := New(d, Config{})
		defer l.Close() //nolint:errcheck // it is over
		nobody, _, err := d.greets(t, l, "")
		if err != nil {
			t.Fatal(err)
		}
		bearer, server, err := d.greets(t, l, "")
		if err != nil {
			t.Fatal(err)
		}
		certified, _, err := d.greets(t, l, "spiffe://d/a")
		if err != nil {
			t.Fatal(err)
		}
		Known(peer.NewContext(context.Background(), &peer.Peer{Addr: server.RemoteAddr()}))
		time.Sleep(usualWait + time.Second)
		if !gone(nobody) {
			t.Error("somebody whom nobody knows is still there")
		}
		if gone(bearer) || gone(certified) {
			t.Error("somebody who is known has been closed")
		}
		if from := server.RemoteAddr().String(); from != "192.0.2.1:1000" {
			t.Errorf("the peer is at %s", from)
		}
	})
}

// Of those who have said all but who they are there are few: the oldest goes.
func TestStrangersAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		l := New(d, Config{Strangers: 2})
		defer l.Close() //nolint:errcheck // it is over
		var all []net.Conn
		for range 3 {
			c, _, err := d.greets(t, l, "")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		synctest.Wait()
		if !gone(all[0]) || gone(all[1]) || gone(all[2]) {
			t.Error("not the oldest has gone")
		}
	})
}

// One identity has some of the places, whatever else it does; they are its own again when
// it has closed some.
func TestPerIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		l := New(d, Config{PerIdentity: 2})
		defer l.Close() //nolint:errcheck // it is over
		var first net.Conn
		for i := range 2 {
			_, server, err := d.greets(t, l, "spiffe://d/a")
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = server
			}
		}
		client, _, err := d.greets(t, l, "spiffe://d/a")
		if err == nil || !gone(client) {
			t.Errorf("the third connection: %v", err)
		}
		if _, _, err := d.greets(t, l, "spiffe://d/b"); err != nil {
			t.Errorf("of another identity: %v", err)
		}
		_ = first.Close()
		if _, _, err := d.greets(t, l, "spiffe://d/a"); err != nil {
			t.Errorf("after one was closed: %v", err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.identities["spiffe://d/a"] != 2 || l.identities["spiffe://d/b"] != 1 {
			t.Errorf("counted are %v", l.identities)
		}
	})
}
