//go:build linux

package attacks

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A tape is a recording of an owner: its messages, and its bytes on the wire.
type tape struct {
	mu       sync.Mutex
	requests []*leaseholdv1.HoldRequest
	wire     bytes.Buffer
}

// intercept is an interceptor that records messages.
func (r *tape) intercept(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, d, c, method, options...)
	return &tapped{stream, r}, err
}

type tapped struct {
	grpc.ClientStream
	tape *tape
}

func (s *tapped) SendMsg(m any) error {
	if r, ok := m.(*leaseholdv1.HoldRequest); ok {
		s.tape.mu.Lock()
		s.tape.requests = append(s.tape.requests, proto.CloneOf(r))
		s.tape.mu.Unlock()
	}
	return s.ClientStream.SendMsg(m)
}

// dial connects, and records the bytes that are sent.
func (r *tape) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	return &recorded{conn, r}, err
}

type recorded struct {
	net.Conn
	tape *tape
}

func (c *recorded) Write(p []byte) (int, error) {
	c.tape.mu.Lock()
	c.tape.wire.Write(p)
	c.tape.mu.Unlock()
	return c.Conn.Write(p)
}

// record records an owner that joins, renews and leaves.
func (c *testbed) record(t *testing.T) *tape {
	t.Helper()
	r := new(tape)
	ctx := shortContext(t)
	o, err := owner.Join(ctx, owner.Config{
		Namespace: other, Managers: []string{c.addr}, Addr: "127.0.0.1:1", Name: "victim", Logger: discardLogger(),
		Credentials: c.secured.credentials(t, "owner/other/victim"),
		DialOptions: []grpc.DialOption{grpc.WithStreamInterceptor(r.intercept), grpc.WithContextDialer(r.dial)},
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the victim has leases", func(context.Context) error {
		if len(o.Leases()) == 0 {
			return leasehold.Errorf("hold", leasehold.ErrNotFound, "victim", "no lease")
		}
		return nil
	})
	if err := o.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return r
}

// replay sends the recorded messages, and returns the number of granted leases and the error.
func (r *tape) replay(t *testing.T, conn *grpc.ClientConn) (granted int, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	stream, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
	if err != nil {
		return 0, err
	}
	for _, m := range r.requests {
		if stream.Send(proto.CloneOf(m)) != nil {
			break // RecvMsg returns the reason
		}
	}
	_ = stream.CloseSend() // fails if the stream has ended
	for {
		answer, err := stream.Recv()
		if err != nil {
			return granted, err
		}
		granted += len(answer.GetGrant().GetOffers().GetStarts())
	}
}

// holdError opens a Hold stream, sends messages, and returns the error that ends it.
func (c *testbed) holdError(t *testing.T, party string, messages ...*leaseholdv1.HoldRequest) error {
	t.Helper()
	stream, err := leaseholdv1.NewOwnerServiceClient(c.dialWith(t, c.secured.certificate(t, party))).Hold(shortContext(t))
	if err != nil {
		return err
	}
	for _, m := range messages {
		if stream.Send(m) != nil {
			break // RecvMsg returns the reason
		}
	}
	for err == nil {
		answer, received := stream.Recv()
		if err = received; len(answer.GetGrant().GetOffers().GetStarts()) > 0 {
			t.Errorf("granted %v", answer)
		}
	}
	return err
}

// sessionOf returns the session of an honest owner, which every reader can see.
func (c *testbed) sessionOf(t *testing.T, name string) []byte {
	t.Helper()
	all, err := leaseholdv1.NewAdminServiceClient(c.dial(t, "operator/chief")).ListOwners(shortContext(t), &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all.GetOwners() {
		if o.GetHolder().GetOwner() == name {
			return o.GetHolder().GetSession()
		}
	}
	t.Fatalf("%s is not in the list of owners", name)
	return nil
}

// TestReplay: replayed messages, and messages with another owner's session, are rejected.
func TestReplay(t *testing.T) {
	t.Parallel()
	k := newAuthority(t)
	c := newTestbed(t, settings{secured: k})
	r := c.record(t)
	c.attack(t, "an owner's bytes on another connection", func(t *testing.T) {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the connection is no longer needed
		if err := conn.SetDeadline(time.Now().Add(eventTimeout)); err != nil {
			t.Fatal(err)
		}
		before := len(c.lines(t))
		_, _ = conn.Write(r.wire.Bytes()) // the server may close before it has read all
		_, _ = io.Copy(io.Discard, conn)  // until it is closed
		for _, l := range c.lines(t)[before:] {
			if l.Msg == "owner admitted" {
				t.Error("a replayed connection joined")
			}
		}
	})
	c.attack(t, "an owner's messages with another certificate", func(t *testing.T) {
		if granted, err := r.replay(t, c.dialWith(t, k.certificate(t, "owner/other/mallory"))); granted > 0 || status.Code(err) != codes.PermissionDenied {
			t.Errorf("%d leases, %v", granted, err)
		}
	})
	c.attack(t, "an owner's messages after it has left", func(t *testing.T) {
		if granted, err := r.replay(t, c.dialWith(t, k.certificate(t, "owner/other/victim"))); granted > 0 {
			t.Errorf("%d leases, %v", granted, err)
		}
	})
	session := c.sessionOf(t, "owner-0")
	for name, lie := range map[string]func(*leaseholdv1.HoldRequest){
		"another owner's session: leaving":     func(r *leaseholdv1.HoldRequest) { r.Leaving = true },
		"another owner's session: no leases":   func(r *leaseholdv1.HoldRequest) { r.Leases = nil },
		"another owner's session: future term": func(r *leaseholdv1.HoldRequest) { r.Term = 1 << 60 },
		"another owner's session: gone":        func(r *leaseholdv1.HoldRequest) { r.Gone = session },
	} {
		c.attack(t, name, func(t *testing.T) {
			first := holdRequest(namespace, "traitor", 1)
			first.Seq, first.Holder.Session = 1<<40, session
			lie(first)
			// The first message has no reply. The second is out of order and ends the stream.
			if err := c.holdError(t, "owner/honest/traitor", first, holdRequest(namespace, "traitor", 2)); status.Code(err) != codes.InvalidArgument {
				t.Errorf("outcome: %v", err)
			}
		})
	}
	c.attack(t, "another owner's session in another namespace", func(t *testing.T) {
		first := holdRequest(other, "mallory", 1)
		first.Holder.Session = session
		stream, err := leaseholdv1.NewOwnerServiceClient(c.dialWith(t, k.certificate(t, "owner/other/mallory"))).Hold(shortContext(t))
		if err == nil {
			err = stream.Send(first)
		}
		if err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil || len(answer.GetGrant().GetOffers().GetStarts()) > 0 {
			t.Errorf("received %v, %v", answer, err)
		}
	})
	c.attack(t, "two owners on one stream", func(t *testing.T) {
		first, second := holdRequest(other, "mallory", 2), holdRequest(other, "mallory", 3)
		second.Seq = 2
		if err := c.holdError(t, "owner/other/mallory", first, second); status.Code(err) != codes.InvalidArgument {
			t.Errorf("outcome: %v", err)
		}
	})
}
