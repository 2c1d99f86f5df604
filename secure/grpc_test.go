package secure_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold/secure"
)

// A service is a gRPC server with a health service. It records the identities of callers.
type service struct {
	listener *bufconn.Listener
	health   *health.Server
	callers  chan []secure.Identity
}

func serve(t testing.TB, creds credentials.TransportCredentials) *service {
	t.Helper()
	s := &service{listener: bufconn.Listen(1 << 20), health: health.NewServer(), callers: make(chan []secure.Identity, 64)}
	record := func(ctx context.Context) {
		p, _ := peer.FromContext(ctx)
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
			s.callers <- secure.Identities(info.State.PeerCertificates[0])
			return
		}
		s.callers <- nil
	}
	server := grpc.NewServer(
		grpc.Creds(creds),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			record(ctx)
			return handler(ctx, request)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			record(stream.Context())
			return handler(srv, stream)
		}),
	)
	healthpb.RegisterHealthServer(server, s.health)
	done := make(chan error, 1)
	go func() { done <- server.Serve(s.listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// dial opens a new connection to the service, by a name or address.
func (s *service) dial(t testing.TB, creds credentials.TransportCredentials, addr string) healthpb.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return healthpb.NewHealthClient(conn)
}

func ask(t testing.TB, c healthpb.HealthClient) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := c.Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// TestRotation replaces certificates, keys and the CA while a stream is open.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		oldCA, newCA := newRoot(t, "old"), newRoot(t, "new")
		manager := newPlace(t, oldCA.issue(t, uris("spiffe://example.org/manager/m1"), hosts("m1")), oldCA)
		cache := newPlace(t, oldCA.issue(t, uris("spiffe://example.org/owner/sessions/a")), oldCA)
		late := newPlace(t, oldCA.issue(t, uris("spiffe://example.org/owner/sessions/late")), oldCA, newCA)
		serverKeeper, clientKeeper, lateKeeper := manager.open(), cache.open(), late.open()
		s := serve(t, serverKeeper.Server())

		stream, err := s.dial(t, clientKeeper.Client(), "m1:7400").Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		receive := func() {
			t.Helper()
			if _, err := stream.Recv(); err != nil {
				t.Fatal("the stream ended:", err)
			}
		}
		receive()
		want(t, <-s.callers, "spiffe://example.org/owner/sessions/a")

		step := func(name string, change func()) {
			t.Helper()
			changed := []<-chan struct{}{serverKeeper.Changed(), clientKeeper.Changed()}
			change()
			for _, c := range changed {
				<-c // virtual time passes
			}
			s.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
			receive()
			s.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
			receive()
			if err := ask(t, s.dial(t, clientKeeper.Client(), "m1:7400")); err != nil {
				t.Fatalf("%s: a new connection fails: %v", name, err)
			}
		}
		step("trust both", func() {
			manager.trust(oldCA, newCA)
			cache.trust(oldCA, newCA)
		})
		want(t, <-s.callers, "spiffe://example.org/owner/sessions/a")
		step("new certificates", func() {
			manager.become(newCA.issue(t, uris("spiffe://example.org/manager/m1"), hosts("m1")))
			cache.become(newCA.issue(t, uris("spiffe://example.org/owner/sessions/b")))
		})
		want(t, <-s.callers, "spiffe://example.org/owner/sessions/b")
		if err := ask(t, s.dial(t, lateKeeper.Client(), "m1:7400")); err != nil {
			t.Fatal("while both are trusted, a certificate of the old CA is rejected:", err)
		}
		want(t, <-s.callers, "spiffe://example.org/owner/sessions/late")
		step("old CA removed", func() {
			manager.trust(newCA)
			cache.trust(newCA)
		})
		if ask(t, s.dial(t, lateKeeper.Client(), "m1:7400")) == nil {
			t.Fatal("a certificate of a removed CA is accepted")
		}
		synctest.Wait() // the server logs after it sends the alert
		if len(manager.log.Lines("certificate signed by unknown authority")) == 0 {
			t.Error("the log does not have the rejected connection:", manager.log)
		}
	})
}

func want(t testing.TB, have []secure.Identity, one secure.Identity) {
	t.Helper()
	for _, id := range have {
		if id == one {
			return
		}
	}
	t.Fatalf("the caller was %q, want %q", have, one)
}
