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

// joinFor calls Join with a timeout, and returns its duration.
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
			t.Errorf("the error does not contain %q: %v", part, err)
		}
	}
}

func TestJoinErrorContainsResponses(t *testing.T) {
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
			"standby:1: does not lead, and has no leader", "pointing:1: does not lead, redirects to elsewhere:1",
			"dead:1: ", "host is unreachable", "newer:1: protocol version", "elsewhere:1: ")
		if !errors.Is(err, context.DeadlineExceeded) || took != 5*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func TestJoinFailsAtOnceIfRetriesAreUseless(t *testing.T) {
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

func TestJoinOfFullNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{MaxOwners: 1})
		a := mustJoin(t, n.config("10.0.0.1:8080"))
		_, took, err := joinFor(t, time.Minute, n.config("10.0.0.2:8080"))
		wantError(t, err, leasehold.ErrLimit, "has reached its limit of owners")
		if took > time.Second {
			t.Errorf("Join took %v to fail", took)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Join retries after a temporary refusal.
func TestJoinRetriesTemporaryRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		stop := n.serve(leaderAddr, refusal(leasehold.Errorf("hold", leasehold.ErrUnavailable, "", "the store does not answer")))
		time.AfterFunc(5*time.Second, func() {
			stop()
			n.lead(manager.Config{})
		})
		cfg := n.config("10.0.0.1:8080")
		var log eventLog
		cfg.Logger = log.logger()
		o, took, err := joinFor(t, time.Minute, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if log.count("the store does not answer") != 1 {
			t.Errorf("want the reason in the log, once: %q", log.lines)
		}
		if took < 5*time.Second || took > 12*time.Second {
			t.Errorf("joined after %v; the refusals lasted 5 s", took)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Join follows a redirect to a leader that is not in Config.Managers.
func TestJoinFollowsRedirect(t *testing.T) {
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

// Two live processes with one name: the second one waits, and both log it.
func TestNameTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		var logA, logB eventLog
		cfg := n.config("10.0.0.1:8080")
		cfg.Name, cfg.Logger = "server-1", logA.logger()
		a := mustJoin(t, cfg)
		cfg.Addr, cfg.Logger = "10.0.0.2:8080", logB.logger()
		_, _, err := joinFor(t, time.Minute, cfg)
		wantError(t, err, leasehold.ErrNameTaken, `has the name "server-1"`, "10.0.0.1:8080", a.Session().Short())
		if got := logA.count("another process with this owner's name is waiting"); got != 1 {
			t.Errorf("%d log lines of the incumbent in a minute, want 1", got)
		}
		for _, want := range []string{`level=INFO msg="waiting for the owner's name: the lease of the process that had it last ends within 12s"`, "level=WARN msg=\"another running process has this owner's name"} {
			if got := logB.count(want); got != 1 {
				t.Errorf("%d log lines of the second process with %s in a minute, want 1: %q", got, want, logB.lines)
			}
		}
		if holds(a) != 256 {
			t.Error("the incumbent lost its leases")
		}

		time.Sleep(20 * time.Second) // until the leader has expired the process that gave up
		left := make(chan error, 1)
		time.AfterFunc(5*time.Second, func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			left <- a.Close(ctx)
		})
		b, took, err := joinFor(t, time.Minute, cfg)
		if err != nil || took < 5*time.Second || took > 10*time.Second {
			t.Fatalf("after %v: %v; want success soon after the incumbent has left", took, err)
		}
		// The incumbent may receive the ack of its leave later, because its request may
		// cross a reply and be retried.
		if err := <-left; err != nil {
			t.Error(err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A reply that the machine drops, here because it echoes no request, does not end
// Join.
func TestJoinIgnoresDroppedReplies(t *testing.T) {
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

// Invalid messages of a manager are dropped.
func TestInvalidMessagesAreDropped(t *testing.T) {
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
