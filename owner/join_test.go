package owner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

func redirect(to string) script {
	return script{answer: func(*leaseholdv1.HoldRequest) *leaseholdv1.HoldResponse {
		hint := &leaseholdv1.NotLeader{Term: 1, Leader: to}
		return &leaseholdv1.HoldResponse{Version: wire.Version, Kind: &leaseholdv1.HoldResponse_NotLeader{NotLeader: hint}}
	}}
}

func refusal(err error) script {
	return script{answer: func(*leaseholdv1.HoldRequest) *leaseholdv1.HoldResponse {
		return &leaseholdv1.HoldResponse{Version: wire.Version, Kind: &leaseholdv1.HoldResponse_Refusal{Refusal: wire.FromRefusal(err)}}
	}}
}

// joinFor tries to join for so long, and returns how long it took.
func joinFor(t *testing.T, most time.Duration, cfg Config) (*Owner, time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	begun := time.Now()
	o, err := Join(ctx, cfg)
	if o != nil {
		t.Cleanup(func() { _ = o.Close(ctx) })
	}
	return o, time.Since(begun), err
}

func wantError(t *testing.T, err error, kind leasehold.Kind, parts ...string) {
	t.Helper()
	if leasehold.KindOf(err) != kind {
		t.Errorf("error of kind %v, want %v: %v", leasehold.KindOf(err), kind, err)
	}
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

func TestJoinSaysWhoWasAskedAndWhatTheySaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.serve("standby:1", redirect(""))
		n.serve("pointing:1", redirect("elsewhere:1"))
		n.serve("mute:1", script{answer: func(*leaseholdv1.HoldRequest) *leaseholdv1.HoldResponse { return nil }})
		n.serve("newer:1", script{answer: func(*leaseholdv1.HoldRequest) *leaseholdv1.HoldResponse {
			return &leaseholdv1.HoldResponse{Version: wire.Version + 2}
		}})
		cfg := n.config("10.0.0.1:8080")
		cfg.Managers = []string{"standby:1", "pointing:1", "mute:1", "dead:1", "newer:1"}
		_, took, err := joinFor(t, 5*time.Second, cfg)
		wantError(t, err, leasehold.ErrUnavailable, testNamespace,
			"standby:1: does not lead and knows of no leader", "pointing:1: does not lead, says that elsewhere:1 does",
			"dead:1: ", "nobody listens there", "newer:1: protocol version", "elsewhere:1: ")
		if !errors.Is(err, context.DeadlineExceeded) || took != 5*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func TestJoinFailsAtOnceIfItNeverWillSucceed(t *testing.T) {
	for name, test := range map[string]struct {
		script script
		kind   leasehold.Kind
		parts  []string
	}{
		"no namespace": {
			refusal(leasehold.Errorf("hold", leasehold.ErrNotFound, testNamespace, "no such namespace")),
			leasehold.ErrNotFound,
			[]string{"leasehold namespace create presence"},
		},
		"not allowed": {
			refusal(leasehold.Errorf("hold", leasehold.ErrInvalid, "10.0.0.1:8080", "this name is reserved")),
			leasehold.ErrInvalid,
			[]string{"this name is reserved"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.serve(leaderAddr, test.script)
				_, took, err := joinFor(t, time.Minute, n.config("10.0.0.1:8080"))
				wantError(t, err, test.kind, test.parts...)
				if took > time.Second {
					t.Errorf("Join took %v to fail", took)
				}
			})
		})
	}
}

func TestJoinOfAFullNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{MaxOwners: 1})
		a := mustJoin(t, n.config("10.0.0.1:8080"))
		_, took, err := joinFor(t, time.Minute, n.config("10.0.0.2:8080"))
		wantError(t, err, leasehold.ErrLimit, "as many owners as it may")
		if took > time.Second {
			t.Errorf("Join took %v to fail", took)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A refusal that may pass does not end Join.
func TestJoinOutlastsTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		stop := n.serve(leaderAddr, refusal(leasehold.Errorf("hold", leasehold.ErrUnavailable, "", "the store does not answer")))
		time.AfterFunc(5*time.Second, func() {
			stop()
			n.lead(manager.Config{})
		})
		cfg := n.config("10.0.0.1:8080")
		var log diary
		cfg.Logger = log.logger()
		o, took, err := joinFor(t, time.Minute, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if log.count("the store does not answer") != 1 {
			t.Errorf("want the reason in the log, once: %q", log.lines)
		}
		if took < 5*time.Second || took > 12*time.Second {
			t.Errorf("joined after %v; the trouble lasted 5 s", took)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The leader need not be among the managers that we were told of.
func TestJoinFollowsAHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		n.serve("standby:1", redirect(leaderAddr))
		cfg := n.config("10.0.0.1:8080")
		cfg.Managers = []string{"standby:1", "dead:1"}
		o := mustJoin(t, cfg)
		if got := holds(o); got != 256 {
			t.Errorf("holds %d of 256 keys", got)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Two live processes with one name: the later one waits, and both logs say so.
func TestNameTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		var logA, logB diary
		cfg := n.config("10.0.0.1:8080")
		cfg.Name, cfg.Logger = "server-1", logA.logger()
		a := mustJoin(t, cfg)
		cfg.Addr, cfg.Logger = "10.0.0.2:8080", logB.logger()
		_, _, err := joinFor(t, time.Minute, cfg)
		wantError(t, err, leasehold.ErrNameTaken, `has the name "server-1"`, "10.0.0.1:8080", a.Session().Short())
		if got := logA.count("another process wants this owner's name"); got != 1 {
			t.Errorf("the incumbent's log says it %d times in a minute, want once", got)
		}
		if got := logB.count("another process has this owner's name"); got != 1 {
			t.Errorf("the newcomer's log says it %d times in a minute, want once", got)
		}
		if holds(a) != 256 {
			t.Error("the incumbent lost its leases")
		}

		time.Sleep(20 * time.Second) // until the leader has forgotten the one that gave up
		left := make(chan error, 1)
		time.AfterFunc(5*time.Second, func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			left <- a.Close(ctx)
		})
		b, took, err := joinFor(t, time.Minute, cfg)
		if err != nil || took < 5*time.Second || took > 10*time.Second {
			t.Fatalf("after %v: %v; want in, soon after the other has left", took, err)
		}
		// The other may hear later than we do that it has left: its goodbye may
		// cross a message, and is said again.
		if err := <-left; err != nil {
			t.Error(err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An answer that the protocol drops, here because it echoes nothing that we
// have said, accepts nobody.
func TestJoinNeedsAnAnswerThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		seq := protocol.Seq(0)
		n.serve(leaderAddr, script{answer: func(r *leaseholdv1.HoldRequest) *leaseholdv1.HoldResponse {
			seq++
			return wire.FromLeaseReply(&protocol.LeaseReply{
				Namespace: testNamespace, Session: leasehold.Session(r.GetHolder().GetSession()), Leader: leaderAddr,
				Term: 1, Seq: seq, Echo: protocol.Seq(r.GetSeq()) - 1, Timing: protocol.DefaultTiming(),
			})
		}})
		_, _, err := joinFor(t, 10*time.Second, n.config("10.0.0.1:8080"))
		wantError(t, err, leasehold.ErrUnavailable, "leader:1: leads")
	})
}

// A hostile or broken manager changes nothing.
func TestNonsenseIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		n.serve("broken:1", script{answer: func(r *leaseholdv1.HoldRequest) *leaseholdv1.HoldResponse {
			out := wire.FromLeaseReply(&protocol.LeaseReply{Namespace: testNamespace, Term: 9, Seq: 9, Timing: protocol.DefaultTiming()})
			out.GetGrant().Session = r.GetHolder().GetSession()[:7]
			return out
		}})
		cfg := n.config("10.0.0.1:8080")
		cfg.Managers = append(cfg.Managers, "broken:1")
		o := mustJoin(t, cfg)
		if got := holds(o); got != 256 {
			t.Errorf("holds %d of 256 keys", got)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
