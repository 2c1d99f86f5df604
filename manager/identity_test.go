package manager_test

import (
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
)

// joinCertified adds an owner with a certificate and a Mover.
func (c *cluster) joinCertified(name string) *owner.Owner {
	c.t.Helper()
	k := c.guard.keeper("spiffe://d/owner/pool/"+name, name)
	return c.joinMovingAs(name, nil, func(cfg *owner.Config) {
		cfg.Credentials, cfg.DialOptions = k.Client(), []grpc.DialOption{grpc.WithContextDialer(c.dial)}
		cfg.Mover.Credentials, cfg.Mover.ServerCredentials = k.Client(), k.ServerWith(secure.Required)
	})
}

// moveTo orders a move of all keys to an owner.
func (c *cluster) moveTo(name string) {
	c.t.Helper()
	_, err := c.admin("m1").MoveRange(c.t.Context(), &leaseholdv1.MoveRangeRequest{Version: wire.Version, Namespace: "pool", Owner: name})
	if err != nil {
		c.t.Fatal(wire.ToError(err))
	}
}

// Owners with certificates move state to each other.
func TestCertifiedOwnersMoveState(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		c.joinCertified("a")
		eventually(t, time.Minute, "a has all", func() bool { return c.listed("m1", "a").GetShare() == 1 })
		c.joinCertified("b")
		eventually(t, time.Minute, "b takes part", func() bool {
			return c.listed("m1", "b").GetState() == leaseholdv1.OwnerState_OWNER_STATE_MEMBER
		})
		c.moveTo("b")
		eventually(t, time.Minute, "b has all", func() bool { return c.listed("m1", "b").GetShare() == 1 })
		if n := c.kinds("m1", 7)[leaseholdv1.ChangeKind_CHANGE_KIND_MOVED]; n != 1 {
			t.Errorf("the state of a key has moved %d times, want 1", n)
		}
	})
}

// counted is a listener that signals accepted connections.
type counted struct {
	net.Listener
	called chan<- struct{}
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		select {
		case c.called <- struct{}{}:
		default:
		}
	}
	return conn, err
}

// A server at an owner's address gets no state with another identity, even if it is an owner of the same namespace,
// with a certificate of the same CA for the same host.
func TestStateIsSentOnlyToTargetIdentity(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		c.joinCertified("a")
		eventually(t, time.Minute, "a has all", func() bool { return c.listed("m1", "a").GetShare() == 1 })
		c.joinCertified("b")
		eventually(t, time.Minute, "b takes part", func() bool {
			return c.listed("m1", "b").GetState() == leaseholdv1.OwnerState_OWNER_STATE_MEMBER
		})
		asked, called := make(chan string, 100), make(chan struct{}, 100)
		eve := grpc.NewServer(grpc.Creds(c.guard.keeper("spiffe://d/owner/pool/eve", "b").Server()),
			grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
				method, _ := grpc.MethodFromServerStream(stream)
				asked <- method
				return status.Error(codes.Unimplemented, "gotcha")
			}))
		pretended := bufconn.Listen(1 << 16)
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = eve.Serve(counted{pretended, called}) // until it is stopped
		}()
		t.Cleanup(func() {
			eve.Stop()
			<-served
		})
		c.mu.Lock()
		c.at["b:81"] = pretended
		c.mu.Unlock()
		c.moveTo("b")
		<-called                // a transfer was tried
		time.Sleep(time.Minute) // of the bubble: retries
		select {
		case method := <-asked:
			t.Errorf("the attacker received a call of %s", method)
		default:
		}
		if n := c.kinds("m1", 7)[leaseholdv1.ChangeKind_CHANGE_KIND_MOVED]; n != 0 {
			t.Errorf("a key has moved %d times", n)
		}
		if share := c.listed("m1", "a").GetShare(); share == 0 {
			t.Error("a has lost the keys whose state it did not send")
		}
	})
}
