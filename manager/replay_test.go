package manager_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A tape is an attacker's recording of an owner's stream.
type tape struct {
	mu       sync.Mutex
	full     bool
	messages []*leaseholdv1.HoldRequest
}

// stop ends the recording: messages that an owner tries to send while it is killed do not leave it.
func (r *tape) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = true
}

// record is an interceptor that records messages.
func (r *tape) record(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
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
		if !s.tape.full {
			s.tape.messages = append(s.tape.messages, proto.CloneOf(r))
		}
		s.tape.mu.Unlock()
	}
	return s.ClientStream.SendMsg(m)
}

// play replays the recording on a separate stream to each manager, and returns the grants.
func (r *tape) play(t *testing.T, c *leaseholdtest.Cluster) (granted []*leaseholdv1.Grant) {
	t.Helper()
	r.mu.Lock()
	messages := r.messages
	r.mu.Unlock()
	if len(messages) < 3 {
		t.Fatalf("only %d messages were recorded", len(messages))
	}
	heard := 0
	for _, addr := range c.Managers() {
		more, err := playTo(t, c, addr, messages)
		granted = append(granted, more...)
		if err == nil {
			heard++
		}
	}
	if heard == 0 {
		t.Fatal("no manager accepted the stream")
	}
	return granted
}

func playTo(t *testing.T, c *leaseholdtest.Cluster, addr string, messages []*leaseholdv1.HoldRequest) (granted []*leaseholdv1.Grant, err error) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(), c.Node("stranger").DialOptions()...)...)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // unused
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	stream, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
	if err != nil {
		return nil, err // it was killed
	}
	for _, m := range messages {
		if stream.Send(proto.CloneOf(m)) != nil {
			break // the manager has ended the stream, or does not lead
		}
		c.Advance(5 * time.Millisecond) // the reply comes before the next
	}
	for {
		answer, err := stream.Recv()
		if err != nil {
			return granted, nil // no more replies
		}
		if g := answer.GetGrant(); len(g.GetOffers().GetStarts()) > 0 {
			granted = append(granted, g)
		}
	}
}

// everything returns the number of sampled keys by owner.
func everything(c *leaseholdtest.Cluster) (owners map[string]int) {
	owners = make(map[string]int)
	for i := range leasehold.Key(64) {
		node, _ := c.Owner(i << 58)
		owners[node]++
	}
	return owners
}

// TestReplayedSession: a replay of all messages of an owner has no effect after the owner has left, or has failed,
// or another leader has taken over: it gets no lease, and prolongs none.
func TestReplayedSession(t *testing.T) {
	leave := func(c *leaseholdtest.Cluster, a *leaseholdtest.Node, o *owner.Owner) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		defer c.Settle()
		return o.Close(ctx)
	}
	for name, end := range map[string]func(c *leaseholdtest.Cluster, a *leaseholdtest.Node, o *owner.Owner) error{
		"after it has left": leave,
		"after it has died": func(c *leaseholdtest.Cluster, a *leaseholdtest.Node, _ *owner.Owner) error {
			a.Kill()
			c.Settle()
			return nil
		},
		"to the next leader": func(c *leaseholdtest.Cluster, a *leaseholdtest.Node, o *owner.Owner) error {
			defer c.Settle()
			defer c.KillLeader()
			return leave(c, a, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{Managers: 3, Policy: "even"}, func(t *testing.T, c *leaseholdtest.Cluster) {
				var r tape
				a, b := c.Node("a"), c.Node("b")
				cfg := a.OwnerConfig()
				cfg.DialOptions = append(cfg.DialOptions, grpc.WithStreamInterceptor(r.record))
				o := a.Join(cfg)
				c.Advance(30 * time.Second)
				b.Join(b.OwnerConfig())
				c.Settle()
				if n := everything(c); n["a"] != 32 || n["b"] != 32 {
					t.Fatalf("the keys are with %v", n)
				}
				if err := end(c, a, o); err != nil {
					t.Fatal(err)
				}
				if n := everything(c); n["b"] != 64 {
					t.Fatalf("the keys are with %v", n)
				}
				for range 3 {
					if granted := r.play(t, c); len(granted) > 0 {
						t.Errorf("the replay was granted %v", granted)
					}
					if n := everything(c); n["b"] != 64 {
						t.Errorf("after the replay the keys are with %v", n)
					}
				}
				// Its name is free again soon.
				again := c.Node("a2")
				cfg = again.OwnerConfig()
				cfg.Name = "a"
				again.Join(cfg)
				c.Settle()
				if n := everything(c); n["b"] != 32 {
					t.Errorf("after a server of that name has joined, the keys are with %v", n)
				}
			})
		})
	}
}

// TestReplayDoesNotProlong: a replay of a failed owner's messages does not delay the expiry of its leases.
func TestReplayDoesNotProlong(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Policy: "even"}, func(t *testing.T, c *leaseholdtest.Cluster) {
		var r tape
		a, b := c.Node("a"), c.Node("b")
		cfg := a.OwnerConfig()
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithStreamInterceptor(r.record))
		a.Join(cfg)
		b.Join(b.OwnerConfig())
		c.Settle()
		r.stop()
		a.Kill()
		died := time.Now()
		const hold = 12 * time.Second // a lease of 10 s, times 1.2
		for everything(c)["b"] < 64 {
			if waited := time.Since(died); waited > hold+time.Second {
				t.Fatalf("%v after the crash the keys are with %v", waited, everything(c))
			}
			if granted := r.play(t, c); len(granted) > 0 {
				t.Fatalf("replay: granted %v", granted)
			}
		}
		if waited := time.Since(died); waited < hold/2 {
			t.Errorf("another owner has the keys after %v", waited)
		}
	})
}
