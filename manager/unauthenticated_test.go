package manager_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
)

// A client with neither a certificate nor a token does not keep a connection by denied calls or health
// checks.
func TestUnauthenticatedConnectionsAreClosed(t *testing.T) {
	const token = "leasehold_of-a-reader-0123456789"
	guarded(t, func(t *testing.T, c *cluster) {
		sum := sha256.Sum256([]byte(token))
		c.guard.permit(guardedFile + "  - {identity: \"token:reader\", role: lookup, namespaces: [pool]}\n" +
			"tokens:\n  - {name: reader, sha256: " + hex.EncodeToString(sum[:]) + "}\n")
		time.Sleep(5 * time.Second) // of the bubble: the access file is reloaded
		anonymous, err := secure.Open(secure.Config{Roots: c.guard.path("ca.crt")})
		if err != nil {
			t.Fatal(err)
		}
		defer anonymous.Close()
		for name, test := range map[string]struct {
			options []grpc.DialOption
			stays   bool
		}{
			"no credentials": {[]grpc.DialOption{grpc.WithTransportCredentials(anonymous.Client())}, false},
			"a token":        {[]grpc.DialOption{grpc.WithTransportCredentials(anonymous.Client()), grpc.WithPerRPCCredentials(access.Bearer(token, false))}, true},
			"a certificate":  {c.as("spiffe://d/lookup/pool"), true},
		} {
			options := append(append(wire.DialOptions(), grpc.WithContextDialer(c.dial)), test.options...)
			conn, err := grpc.NewClient("passthrough:///"+addr("m1"), options...)
			if err != nil {
				t.Fatal(err)
			}
			conn.Connect()
			for conn.GetState() != connectivity.Ready {
				conn.WaitForStateChange(t.Context(), conn.GetState())
			}
			left := make(chan struct{})
			go func() {
				defer close(left)
				conn.WaitForStateChange(t.Context(), connectivity.Ready)
			}()
			stays := true
			for range 10 {
				_, _ = leaseholdv1.NewAdminServiceClient(conn).GetStatus(t.Context(), &leaseholdv1.GetStatusRequest{Version: wire.Version})
				_, _ = healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
				select {
				case <-left:
					stays = false
				case <-time.After(time.Second):
				}
			}
			if stays != test.stays {
				t.Errorf("%s: its connection stays: %t", name, stays)
			}
			_ = conn.Close()
			<-left
		}
	})
}
