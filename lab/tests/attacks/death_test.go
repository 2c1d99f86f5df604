//go:build linux

package attacks

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// announce returns an option with which an owner announces the hash of a token, as if it had a supervisor.
func announce(token table.DeathToken) grpc.DialOption {
	return grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, d, c, method, options...)
		return &announced{stream, token.Hash()}, err
	})
}

type announced struct {
	grpc.ClientStream
	hash table.DeathHash
}

func (s *announced) SendMsg(m any) error {
	if r, ok := m.(*leaseholdv1.HoldRequest); ok {
		r.Holder.DeathHash = s.hash[:]
	}
	return s.ClientStream.SendMsg(m)
}

// joinSupervised joins an owner of the other namespace that announces a token, and returns its session.
func (c *testbed) joinSupervised(t *testing.T, token table.DeathToken) (o *owner.Owner, session []byte) {
	t.Helper()
	r := new(tape)
	o, err := owner.Join(shortContext(t), owner.Config{
		Namespace: other, Managers: []string{c.addr}, Addr: "127.0.0.1:1", Name: "victim", Logger: discardLogger(),
		Credentials: c.secured.credentials(t, "owner/other/victim"),
		DialOptions: []grpc.DialOption{announce(token), grpc.WithChainStreamInterceptor(r.intercept)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close(shortContext(t)) })
	eventually(t, "the victim has leases", func(context.Context) error {
		if len(o.Leases()) == 0 {
			return leasehold.Errorf("hold", leasehold.ErrNotFound, "victim", "no lease")
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	return o, r.requests[0].GetHolder().GetSession()
}

// report presents a death notice as a party, and returns the outcome or the error.
func (c *testbed) report(t *testing.T, party, namespace, name string, session []byte, token table.DeathToken) (leaseholdv1.DeathOutcome, error) {
	t.Helper()
	answer, err := leaseholdv1.NewOwnerServiceClient(c.dialWith(t, c.secured.certificate(t, party))).ReportDeath(shortContext(t), &leaseholdv1.ReportDeathRequest{
		Version: wire.Version, Namespace: namespace, Owner: name, Session: session, Token: token[:],
	})
	return answer.GetOutcome(), err
}

// TestDeathNotices: no death notice without its token ends the leases of a live owner.
func TestDeathNotices(t *testing.T) {
	t.Parallel()
	k := newAuthority(t)
	c := newTestbed(t, settings{secured: k})
	token := table.DeathToken{1, 2, 3}
	o, session := c.joinSupervised(t, token)
	held := o.Leases()
	honest := c.sessionOf(t, "owner-0")
	for _, a := range []struct {
		name, party, namespace, owner string
		session                       []byte
		token                         table.DeathToken
		want                          codes.Code
		outcome                       leaseholdv1.DeathOutcome
	}{
		{"a guess", "owner/other/victim", other, "victim", session, table.DeathToken{9}, codes.PermissionDenied, 0},
		{"the hash as the token", "owner/other/victim", other, "victim", session, table.DeathToken(token.Hash()), codes.PermissionDenied, 0},
		{"the token with another identity", "owner/other/mallory", other, "victim", session, token, codes.PermissionDenied, 0},
		{"the token under another owner's name", "owner/other/mallory", other, "mallory", session, token, codes.PermissionDenied, 0},
		{"the token as an operator", "operator/chief", other, "victim", session, token, codes.PermissionDenied, 0},
		{"the token in another namespace", "owner/other/victim", namespace, "victim", session, token, codes.PermissionDenied, 0},
		{"the token for another session", "owner/other/victim", other, "victim", honest, token, codes.OK, leaseholdv1.DeathOutcome_DEATH_OUTCOME_UNKNOWN_SESSION},
		{"a session without a token", "owner/honest/traitor", namespace, "traitor", honest, token, codes.OK, leaseholdv1.DeathOutcome_DEATH_OUTCOME_UNKNOWN_SESSION},
		{"no session", "owner/other/victim", other, "victim", nil, token, codes.InvalidArgument, 0},
		{"no token", "owner/other/victim", other, "victim", session, table.DeathToken{}, codes.InvalidArgument, 0},
	} {
		c.attack(t, "death notice: "+a.name, func(t *testing.T) {
			outcome, err := c.report(t, a.party, a.namespace, a.owner, a.session, a.token)
			if status.Code(err) != a.want || outcome != a.outcome {
				t.Errorf("outcome %v, %v; want %v, %v", outcome, err, a.outcome, a.want)
			}
			for _, l := range held {
				if _, ok := o.Check(l.Range.Start); !ok {
					t.Fatalf("the victim has lost %v", l)
				}
			}
		})
	}
	c.attack(t, "death notice: a replay for the next session", func(t *testing.T) {
		if err := o.Close(shortContext(t)); err != nil {
			t.Fatal(err)
		}
		next, session := c.joinSupervised(t, table.DeathToken{4})
		if _, err := c.report(t, "owner/other/victim", other, "victim", session, token); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%v", err)
		}
		if len(next.Leases()) == 0 {
			t.Error("the next session has lost its leases")
		}
	})
}
