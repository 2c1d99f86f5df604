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

// A tape is what somebody has recorded: messages of an owner, and bytes on the wire.
type tape struct {
	mu   sync.Mutex
	said []*leaseholdv1.HoldRequest
	wire bytes.Buffer
}

// messages is an interceptor that listens in.
func (r *tape) messages(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
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
		s.tape.said = append(s.tape.said, proto.CloneOf(r))
		s.tape.mu.Unlock()
	}
	return s.ClientStream.SendMsg(m)
}

// dial connects, and records what is sent.
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

// record has an owner join, renew, and leave.
func (c *castle) record(t *testing.T) *tape {
	t.Helper()
	r := new(tape)
	ctx := soon(t)
	o, err := owner.Join(ctx, owner.Config{
		Namespace: other, Managers: []string{c.addr}, Addr: "127.0.0.1:1", Name: "victim", Logger: quiet(),
		Credentials: c.secured.credentials(t, "owner/other/victim"),
		DialOptions: []grpc.DialOption{grpc.WithStreamInterceptor(r.messages), grpc.WithContextDialer(r.dial)},
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the victim has leases", func(context.Context) error {
		if len(o.Leases()) == 0 {
			return leasehold.Errorf("hold", leasehold.ErrNotFound, "victim", "it has none")
		}
		return nil
	})
	if err := o.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return r
}

// play says all of it again, and returns how that ends, and what was granted for it.
func (r *tape) play(t *testing.T, conn *grpc.ClientConn) (granted int, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	stream, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
	if err != nil {
		return 0, err
	}
	for _, m := range r.said {
		if stream.Send(proto.CloneOf(m)) != nil {
			break // it says why to whoever listens
		}
	}
	_ = stream.CloseSend() // or it has ended
	for {
		answer, err := stream.Recv()
		if err != nil {
			return granted, err
		}
		granted += len(answer.GetGrant().GetOffers().GetStarts())
	}
}

// ends holds leases with messages, and returns how that ends.
func (c *castle) ends(t *testing.T, party string, messages ...*leaseholdv1.HoldRequest) error {
	t.Helper()
	stream, err := leaseholdv1.NewOwnerServiceClient(c.as(t, c.secured.certificate(t, party))).Hold(soon(t))
	if err != nil {
		return err
	}
	for _, m := range messages {
		if stream.Send(m) != nil {
			break // it says why to whoever listens
		}
	}
	for err == nil {
		answer, heard := stream.Recv()
		if err = heard; len(answer.GetGrant().GetOffers().GetStarts()) > 0 {
			t.Errorf("it is granted %v", answer)
		}
	}
	return err
}

// sessionOf is the session of an honest owner: whoever may read knows it.
func (c *castle) sessionOf(t *testing.T, name string) []byte {
	t.Helper()
	all, err := leaseholdv1.NewAdminServiceClient(c.dial(t, "operator/chief")).ListOwners(soon(t), &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all.GetOwners() {
		if o.GetHolder().GetOwner() == name {
			return o.GetHolder().GetSession()
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

// What was said once is worth nothing when it is said again, and what is said in another's
// session is not its word.
func TestReplay(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	c := newCastle(t, settings{secured: k})
	r := c.record(t)
	c.attack(t, "an owner's bytes on another connection", func(t *testing.T) {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // nothing is left to be said
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		before := len(c.lines(t))
		_, _ = conn.Write(r.wire.Bytes()) // it may have heard enough before the end
		_, _ = io.Copy(io.Discard, conn)  // until it is closed
		for _, l := range c.lines(t)[before:] {
			if l.Msg == "owner admitted" {
				t.Error("the recorded bytes admitted an owner")
			}
		}
	})
	c.attack(t, "an owner's messages on a stream of another", func(t *testing.T) {
		if granted, err := r.play(t, c.as(t, k.certificate(t, "owner/other/mallory"))); granted > 0 || status.Code(err) != codes.PermissionDenied {
			t.Errorf("%d leases, %v", granted, err)
		}
	})
	c.attack(t, "an owner's messages after it has left", func(t *testing.T) {
		if granted, err := r.play(t, c.as(t, k.certificate(t, "owner/other/victim"))); granted > 0 {
			t.Errorf("%d leases, %v", granted, err)
		}
	})
	session := c.sessionOf(t, "owner-0")
	for name, lie := range map[string]func(*leaseholdv1.HoldRequest){
		"in another's session: it leaves":       func(r *leaseholdv1.HoldRequest) { r.Leaving = true },
		"in another's session: it has nothing":  func(r *leaseholdv1.HoldRequest) { r.Leases = nil },
		"in another's session: it is far ahead": func(r *leaseholdv1.HoldRequest) { r.Term = 1 << 60 },
		"in another's session: it is gone":      func(r *leaseholdv1.HoldRequest) { r.Gone = session },
	} {
		c.attack(t, name, func(t *testing.T) {
			first := holding(namespace, "traitor", 1)
			first.Seq, first.Holder.Session = 1<<40, session
			lie(first)
			// It is not answered. A message that is no more in order ends the stream.
			if err := c.ends(t, "owner/honest/traitor", first, holding(namespace, "traitor", 2)); status.Code(err) != codes.InvalidArgument {
				t.Errorf("what comes of it: %v", err)
			}
		})
	}
	c.attack(t, "another's session in another namespace", func(t *testing.T) {
		first := holding(other, "mallory", 1)
		first.Holder.Session = session
		stream, err := leaseholdv1.NewOwnerServiceClient(c.as(t, k.certificate(t, "owner/other/mallory"))).Hold(soon(t))
		if err == nil {
			err = stream.Send(first)
		}
		if err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil || len(answer.GetGrant().GetOffers().GetStarts()) > 0 {
			t.Errorf("it hears %v, %v", answer, err)
		}
	})
	c.attack(t, "two owners on one stream", func(t *testing.T) {
		first, second := holding(other, "mallory", 2), holding(other, "mallory", 3)
		second.Seq = 2
		if err := c.ends(t, "owner/other/mallory", first, second); status.Code(err) != codes.InvalidArgument {
			t.Errorf("what comes of it: %v", err)
		}
	})
}
