package etcd

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/secure"
)

// TestConnectionEndsWhenPermissionIsRevoked: an open connection ends when its peer loses the
// permission to connect.
func TestConnectionEndsWhenPermissionIsRevoked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	_, issued, err := pki.Create(dir, "example.org", []pki.Party{{Role: pki.Manager, Name: "m", Hosts: []string{"127.0.0.1"}}}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(issued[0].Dir, name) }
	keeper, err := secure.Open(secure.Config{Cert: in("tls.crt"), Key: in("tls.key"), Roots: in("ca.crt")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keeper.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var banned atomic.Bool
	p := newPeerServer(listener, &EmbedConfig{Logger: slog.New(slog.DiscardHandler), PeerTLS: PeerTLS{Allow: func(*tls.ConnectionState) error {
		if banned.Load() {
			return errors.New("it is no manager")
		}
		return nil
	}}})
	asked, ended := make(chan struct{}), make(chan struct{})
	server := keeper.ServerTLS(secure.Required)
	server.NextProtos = []string{"http/1.1"}
	p.serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { // as streams of raft do
		close(asked)
		<-r.Context().Done()
		close(ended)
	}), server)
	t.Cleanup(p.close)
	conn, err := keeper.DialTLS(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it was closed by the other side
	if _, err := conn.Write([]byte("GET /raft/stream HTTP/1.1\r\nHost: m\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-asked
	select {
	case <-ended:
		t.Fatal("the connection ended before the permission was revoked")
	default:
	}
	banned.Store(true)
	<-ended
}
