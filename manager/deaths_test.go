package manager_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/death"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A supervisor has the token of a session of an owner.
type supervisor struct {
	c     *cluster
	token table.DeathToken
}

// announce is an option of the owner: its requests have the hash of the token.
func (s *supervisor) announce() grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, d, c, method, options...)
		return &announced{stream, s.token.Hash()}, err
	})
}

type announced struct {
	grpc.ClientStream
	hash table.DeathHash
}

func (s *announced) SendMsg(m any) error {
	if r, ok := m.(*leaseholdv1.HoldRequest); ok {
		r = proto.CloneOf(r) // other streams send it, too
		r.Holder.DeathHash = s.hash[:]
		m = r
	}
	return s.ClientStream.SendMsg(m)
}

// report presents the token for the session that the leader lists.
func (s *supervisor) report(ctx context.Context, name string, session []byte, managers ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	n := &death.Notice{Namespace: "pool", Owner: leasehold.OwnerID(name), Token: s.token}
	copy(n.Session[:], session)
	for i := range managers {
		managers[i] = addr(managers[i])
	}
	_, err := death.Report(ctx, managers, append(s.c.dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials())), n)
	return err
}

// joinSupervised joins an owner with a supervisor, and returns a function that crashes it.
func (c *cluster) joinSupervised(name string) (o *owner.Owner, s *supervisor, kill func()) {
	s = &supervisor{c, table.DeathToken{'t', 'o', 'k', 'e', 'n', name[0]}}
	o, kill = c.joinSevered(name, s.announce())
	return o, s, kill
}

// The ranges of a dead process have another owner within milliseconds, whichever manager gets the notice, and
// lookups get the loss with its cause.
func TestDeathIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for _, name := range []string{"m1", "m2"} {
			c.start(name)
			eventually(t, time.Minute, "m1 leads", func() bool { return c.status(name).GetLeader() == addr("m1") })
		}
		c.create("m1", pool())
		a := c.join("a")
		_, s, kill := c.joinSupervised("b")
		l := c.open()
		eventually(t, time.Minute, "b has ranges", func() bool { return c.listed("m1", "b").GetShare() > 0.1 })
		session, lsn := c.listed("m1", "b").GetHolder().GetSession(), l.LSN()
		if h := c.listed("m1", "b").GetHolder().GetDeathHash(); h != nil {
			t.Errorf("operators get the hash %x", h)
		}
		if a, b := c.listed("m1", "a"), c.listed("m1", "b"); a.Supervised == nil || a.GetSupervised() || !b.GetSupervised() {
			t.Errorf("a is supervised: %v, and b: %v", a.Supervised, b.Supervised)
		}

		wrong := *s
		wrong.token[0]++
		if err := wrong.report(t.Context(), "b", session, "m1", "m2"); !errors.Is(err, leasehold.ErrDenied) {
			t.Errorf("a wrong token: %v", err)
		}
		kill()
		died := time.Now()
		if err := s.report(t.Context(), "b", session, "m2"); err != nil { // the standby redirects to the leader
			t.Fatal(err)
		}
		eventually(t, time.Second, "a has all keys", func() bool { return complete(a) })
		if took := time.Since(died); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		losses := collectLosses(t, l, lsn, time.Second)
		for _, loss := range losses {
			if loss.Cause != leasehold.CauseDied || loss.Owner != "b" {
				t.Errorf("loss %v", loss)
			}
		}
		if len(losses) == 0 {
			t.Error("the lookup got no loss")
		}
		if err := s.report(t.Context(), "b", session, "m1", "m2"); err != nil {
			t.Errorf("a repetition: %v", err)
		}
		if err := s.report(t.Context(), "b", make([]byte, 15), "m1"); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("without a session: %v", err)
		}
	})
}

// The leader fails. The supervisor repeats the notice until the next one leads, which has the hash from the store.
func TestDeathIsReportedToTheNextLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for _, name := range []string{"m1", "m2"} {
			c.start(name)
			eventually(t, time.Minute, "m1 leads", func() bool { return c.status(name).GetLeader() == addr("m1") })
		}
		c.create("m1", pool())
		a := c.join("a")
		_, s, kill := c.joinSupervised("b")
		eventually(t, time.Minute, "b has ranges", func() bool { return c.listed("m1", "b").GetShare() > 0.1 })
		session := c.listed("m1", "b").GetHolder().GetSession()
		kill()
		c.crash("m1")
		if err := s.report(t.Context(), "b", session, "m1", "m2"); err != nil {
			t.Fatal(err)
		}
		eventually(t, 3*time.Second, "a has all keys", func() bool { return complete(a) })
	})
}

// A diskless leader has the hash from the census, in which it does not decide.
func TestDeathWithoutDisk(t *testing.T) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		c.create(leader, pool())
		a := c.join("a")
		_, s, kill := c.joinSupervised("b")
		eventually(t, time.Minute, "both have ranges", func() bool { return c.listed(leader, "b").GetShare() > 0.1 && c.listed(leader, "a").GetShare() > 0.1 })
		session := c.listed(leader, "b").GetHolder().GetSession()
		c.crash(leader)
		next := c.leads(10 * time.Second)
		eventually(t, 20*time.Second, "both continue", func() bool { return members(t, c, next) == 2 })
		if !c.listed(next, "b").GetSupervised() {
			t.Error("the next leader does not list b as supervised")
		}
		kill()
		if err := s.report(t.Context(), "b", session, "m1", "m2", "m3"); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Second, "a has all keys", func() bool { return complete(a) })
	})
}

// Only a caller that may hold leases under the owner's name can report its death.
func TestDeathNeedsTheRightIdentity(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		s := &supervisor{c, table.DeathToken{7}}
		for _, test := range []struct {
			id, namespace, name string
			want                error
		}{
			{"spiffe://d/owner/pool/b", "pool", "b", nil},
			{"spiffe://d/owner/pool/a", "pool", "b", leasehold.ErrDenied},
			{"spiffe://d/owner/pool/b", "other", "b", leasehold.ErrDenied},
			{"spiffe://d/lookup/pool", "pool", "b", leasehold.ErrDenied},
			{"spiffe://d/manager/m1", "pool", "b", leasehold.ErrDenied},
		} {
			n := &death.Notice{Namespace: leasehold.Namespace(test.namespace), Owner: leasehold.OwnerID(test.name), Session: leasehold.Session{1}, Token: s.token}
			_, err := death.Report(t.Context(), []string{addr("m1"), addr("m2")}, c.as(test.id), n)
			if !errors.Is(err, test.want) {
				t.Errorf("%s about %s of %s: %v, want %v", test.id, test.name, test.namespace, err, test.want)
			}
		}
	})
}
