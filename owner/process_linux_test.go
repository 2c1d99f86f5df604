package owner

import (
	"fmt"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// child starts a process that runs until end is called, and returns its
// identity.
func child(t *testing.T) (identity process, end func()) {
	t.Helper()
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal("cannot start a child process: ", err)
	}
	identity, err = identify()
	if err != nil {
		t.Skip("this system does not provide process identities: ", err)
	}
	identity.pid = cmd.Process.Pid
	if identity.start, err = startOf(identity.pid); err != nil {
		t.Fatal(err)
	}
	end = func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(end)
	return identity, end
}

func TestProcessGone(t *testing.T) {
	p, end := child(t)
	check := func(what string, p fmt.Stringer, wantGone, wantKnowable bool) {
		t.Helper()
		if gone, knowable := processGone(p.String()); gone != wantGone || knowable != wantKnowable {
			t.Errorf("%s: gone %t, visible %t; want %t, %t", what, gone, knowable, wantGone, wantKnowable)
		}
	}
	change := func(f func(*process)) process {
		q := p
		f(&q)
		return q
	}
	check("a live process", p, false, true)
	check("its number, used before", change(func(q *process) { q.start-- }), true, true)
	check("another boot", change(func(q *process) { q.boot = "other" }), false, false)
	check("another pid namespace", change(func(q *process) { q.pidSpace = "pid:[1]" }), false, false)
	check("another time namespace", change(func(q *process) { q.timeSpace = "time:[1]" }), false, false)
	check("no process number", change(func(q *process) { q.pid = 0 }), false, false)
	check("a group of processes", change(func(q *process) { q.pid = -p.pid }), false, false)
	end()
	check("a dead process", p, true, true)
	if gone, knowable := processGone(""); gone || knowable {
		t.Error("a process without an identity is visible")
	}
	if self := thisProcess(); self == "" {
		t.Error("this process has no identity although its child has one")
	} else if gone, knowable := processGone(self); gone || !knowable {
		t.Errorf("this process: gone %t, visible %t", gone, knowable)
	}
}

// A restarted server proves that its predecessor has ended,
// unless WaitForPredecessor is set or the predecessor may run on another computer.
func TestPredecessorProof(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		proves bool
	}{
		"usually":             {func(*Config) {}, true},
		"at another port":     {func(c *Config) { c.Addr = "10.0.0.1:8081" }, true},
		"at another host":     {func(c *Config) { c.Addr = "10.0.0.2:8080" }, false},
		"when events to wait": {func(c *Config) { c.WaitForPredecessor = true }, false},
	} {
		t.Run(name, func(t *testing.T) { testProof(t, test.change, test.proves) })
	}
}

func testProof(t *testing.T, change func(*Config), proves bool) {
	p, end := child(t)
	synctest.Test(t, func(t *testing.T) {
		incumbent := &table.Holder{Owner: "server-1", Session: leasehold.Session{1}, Addr: "10.0.0.1:8080", Weight: 1, Process: p.String()}
		n := newNetwork(t)
		cfg := n.config("10.0.0.1:8080")
		cfg.Name = "server-1"
		change(&cfg)
		gone := make(chan []byte, 1)
		seq := protocol.Seq(0)
		n.serve(leaderAddr, script{answer: func(r *leaseholdv1.HoldRequest) *leaseholdv1.HoldResponse {
			if len(r.GetGone()) > 0 {
				select {
				case gone <- r.GetGone():
				default:
				}
			}
			seq++
			in, err := wire.ToLeaseRequest(r, protocol.DefaultLimits)
			if err != nil {
				t.Error(err)
				return nil
			}
			if said := in.Holder.Process != ""; said == cfg.WaitForPredecessor {
				t.Errorf("the request contains the process: %t", said)
			}
			return wire.FromLeaseReply(&protocol.LeaseReply{
				Namespace: in.Namespace, Session: in.Holder.Session, Leader: leaderAddr, Term: 1,
				Seq: seq, Echo: in.Seq, Timing: protocol.DefaultTiming(), Incumbent: incumbent,
			})
		}})
		time.AfterFunc(5*time.Second, end)
		begun := time.Now()
		_, _, err := joinFor(t, 10*time.Second, cfg)
		wantError(t, err, leasehold.ErrNameTaken)
		select {
		case session := <-gone:
			if !proves || leasehold.Session(session) != incumbent.Session {
				t.Errorf("a proof of the end of session %x", session)
			}
		default:
			if proves {
				t.Errorf("no proof in %v", time.Since(begun))
			}
		}
	})
}
