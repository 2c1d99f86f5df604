package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Sessions are not secret: lookups receive them. An owner that uses another's session under its own
// name neither ends a stream of that session, nor receives its messages, nor takes its keys.
func TestSessionOfAnotherOwnerIsRejected(t *testing.T) {
	for name, say := range map[string]func(*leaseholdv1.HoldRequest){
		"renewal": func(*leaseholdv1.HoldRequest) {},
		"leave":   func(r *leaseholdv1.HoldRequest) { r.Leaving = true },
		"mover":   func(r *leaseholdv1.HoldRequest) { r.Mover = "eve:81" },
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(t *testing.T, c *cluster) {
				a, err := c.joinAs("spiffe://d/owner/pool/a", "a", "pool")
				if err != nil {
					t.Fatal(err)
				}
				eventually(t, time.Minute, "a has all keys", func() bool { return complete(a) })
				session := c.listed("m1", "a").GetHolder().GetSession()
				for range 20 {
					c.speakFor(session, "eve", say)
				}
				if !complete(a) {
					t.Error("a has lost keys")
				}
				if l := c.listed("m1", "a"); l.GetShare() != 1 || l.GetState() != leaseholdv1.OwnerState_OWNER_STATE_MEMBER {
					t.Errorf("the leader lists a as %v", l)
				}
			})
		})
	}
}

// speakFor sends requests of an owner under its own name in the session of another, and acknowledges
// the replies.
func (c *cluster) speakFor(session []byte, name string, change func(*leaseholdv1.HoldRequest)) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
	defer cancel()
	stream, err := leaseholdv1.NewOwnerServiceClient(c.connect("m1", "spiffe://d/owner/pool/"+name)).Hold(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	says := &leaseholdv1.HoldRequest{
		Version: wire.Version, Namespace: "pool", Seq: 1 << 40,
		Holder: &leaseholdv1.Holder{Owner: name, Session: session, Addr: name + ":80", Weight: 1},
	}
	for range 4 {
		change(says)
		if stream.Send(says) != nil {
			return
		}
		heard, err := stream.Recv()
		if err != nil {
			return // the stream has ended, or there is no reply
		}
		if g := heard.GetGrant(); g != nil {
			if len(g.GetOffers().GetStarts()) > 0 || g.GetGoodbye() {
				c.t.Errorf("%s receives a message for another owner: %v", name, g)
			}
			says.Term, says.Heard, says.Applied = g.GetTerm(), g.GetSeq(), g.GetSeq()
		}
		says.Seq++
	}
}
