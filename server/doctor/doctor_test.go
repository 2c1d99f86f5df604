package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/admin"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// healthy returns an exam of a healthy group of three.
func healthy() *exam {
	e := &exam{}
	for i := range 3 {
		addr := fmt.Sprintf("m%d:7400", i+1)
		e.managers = append(e.managers, &managerExam{
			addr: addr, fastest: time.Millisecond, samples: readings(1, 0),
			status: &leaseholdv1.GetStatusResponse{
				Leader: "m1:7400", Term: 7, Manager: addr, Build: "leasehold v1", Http: addr,
				Ttl: int64(2 * time.Second), Failover: int64(2733 * time.Millisecond),
				Clocks: &leaseholdv1.Clocks{Drift: 1.2}, Usages: []*leaseholdv1.Usage{{What: "open files", Used: 1, Most: 10}},
			},
			lookups: map[string]admin.Lookups{"x": {Total: 1, Lookups: []admin.Lookup{{Addr: "l:1"}}}},
		})
		e.members = append(e.members, admin.Member{Name: fmt.Sprintf("m%d", i+1), Healthy: true})
	}
	look := func() spaceLook {
		l := spaceLook{status: &admin.NamespaceStatus{Name: "x", Ready: true, Ranges: 64}}
		for _, name := range []string{"a", "b"} {
			l.owners = append(l.owners, admin.Owner{
				Owner: name, Session: name, State: admin.OwnerMember, Leases: 32, MovesState: new(true), Supervised: new(true), Patience: admin.Seconds(11 * time.Second),
			})
		}
		return l
	}
	e.spaces = []*spaceExam{{
		config: admin.Namespace{
			Name: "x", MaxOwners: 100, MoveTimeout: admin.Seconds(time.Minute),
			Lease: admin.Seconds(10 * time.Second), Renew: admin.Seconds(2500 * time.Millisecond), Drift: 1.2,
		},
		looks: [2]spaceLook{look(), look()},
	}}
	return e
}

// readings returns 5 s of clock samples of a manager whose clock has the given rate and offset.
func readings(rate float64, ahead time.Duration) []clockSample {
	began := time.Now()
	var out []clockSample
	for i := range 20 {
		at := time.Duration(i) * sampleEvery
		out = append(out, clockSample{
			before: began.Add(at), after: began.Add(at + time.Millisecond),
			wall: began.Round(0).Add(at + time.Millisecond/2 + ahead), monotonic: time.Hour + time.Duration(rate*float64(at+time.Millisecond/2)),
		})
	}
	return out
}

func TestDiagnose(t *testing.T) {
	for _, f := range diagnose(healthy()) {
		if f.Verdict != Fine && f.Verdict != skipped && f.Check != "files" {
			t.Errorf("finding for a healthy group: %+v", f)
		}
	}
	last := func(e *exam) *spaceLook { return &e.spaces[0].looks[1] }
	for _, test := range []struct {
		name    string
		hurt    func(*exam)
		verdict Verdict
		check   string
		says    string
	}{
		{"dead", func(e *exam) { e.managers[1].err = errors.New("connection refused") }, Wrong, "reach", "connection refused"},
		{"waiting", func(e *exam) {
			e.managers[1].err, e.managers[1].listens = errors.New("no answer within 5s"), true
		}, Wrong, "reach", "no answer within 5s, although it accepts connections"},
		{"slow", func(e *exam) { e.managers[1].fastest = time.Second }, Hint, "reach", "in 1s at best"},
		{"two leaders", func(e *exam) { e.managers[1].status.Leader = "m2:7400" }, Wrong, "leader", "m1:7400 leads in term 7 (m1:7400, m3:7400); m2:7400 leads in term 7 (m2:7400)"},
		{"two terms", func(e *exam) { e.managers[1].status.Term = 6 }, Wrong, "leader", "disagree on the leader"},
		{"no leader", func(e *exam) { e.managers[1].status.Problem = "no manager leads" }, Wrong, "leader", "no manager leads"},
		{"a warning", func(e *exam) { e.managers[1].status.Warnings = []string{"m3 does not vote"} }, Hint, "group", "m3 does not vote"},
		{"mixed", func(e *exam) { e.managers[1].status.Build = "leasehold v2" }, Hint, "build", "leasehold v2 (m2:7400)"},
		{"a member is down", func(e *exam) { e.members[1].Healthy = false }, Wrong, "member", "does not respond"},
		{"a learner", func(e *exam) { e.members[1].Learner = true }, Hint, "member", "not caught up"},
		{"alone", func(e *exam) { e.members = e.members[:1] }, Hint, "member", "there is only one manager"},
		{"even", func(e *exam) { e.members = e.members[:2] }, Hint, "member", "2 managers tolerate no more failures than 1"},
		{"an unchecked manager", func(e *exam) { e.managers = e.managers[:2] }, Hint, "member", "3 managers, of which 2 were checked"},
		{"nearly full", func(e *exam) { e.managers[0].status.Usages[0].Used = 8 }, Hint, "limits", "open files 8 of 10"},
		{"full", func(e *exam) { e.managers[0].status.Usages[0].Used = 10 }, Wrong, "limits", "open files 10 of 10"},
		{"not ready", func(e *exam) { e.managers[0].unhealthy = "503: waiting\n" }, Wrong, "http", "it is not ready: 503: waiting"},
		{"no HTTP", func(e *exam) { e.managers[0].health = errors.New("refused") }, Hint, "http", "refused"},
		{"a fast clock", func(e *exam) { e.managers[1].samples = readings(1.25, 0) }, Wrong, "rates", "the clock of m2:7400 runs 25.0"},
		{"a slow clock", func(e *exam) { e.managers[1].samples = readings(0.8, 0) }, Wrong, "rates", "faster than that of m2:7400"},
		{"a clock that drifts", func(e *exam) { e.managers[1].samples = readings(1.12, 0) }, Hint, "rates", "12.0"},
		{"too short a sample", func(e *exam) {
			e.managers[1].samples = readings(1, 0)[:2]
			e.managers[1].samples[1].after = e.managers[1].samples[1].after.Add(time.Second)
			e.managers[1].samples[0].before = e.managers[1].samples[0].before.Add(-time.Second)
			e.managers[1].samples[0].after = e.managers[1].samples[1].before.Add(-time.Millisecond)
		}, Hint, "rates", "the bound is 20 %"},
		{"a wall clock ahead", func(e *exam) { e.managers[1].samples = readings(1, time.Minute) }, Hint, "walls", "m2:7400 is 1m ahead"},
		{"a wall clock that matters", func(e *exam) {
			e.managers[0].status.Clocks.Epsilon = int64(500 * time.Millisecond)
			e.managers[1].samples = readings(1, -600*time.Millisecond)
		}, Wrong, "walls", "the leader election tolerates only 500ms"},
		{"no leader for the namespaces", func(e *exam) { e.failed = errors.New("no manager\nanswers") }, Wrong, "spaces", "no manager answers"},
		{"loading", func(e *exam) { last(e).status.Ready, last(e).status.Problem = false, "loading" }, Wrong, "space", "not ready: loading"},
		{"a failing policy", func(e *exam) { last(e).status.Problem = "the policy fails" }, Wrong, "space", "the policy fails"},
		{"new", func(e *exam) { last(e).owners = nil }, Hint, "space", "no owner has joined yet"},
		{"deserted", func(e *exam) { last(e).owners, last(e).status.LSN = nil, 7 }, Wrong, "space", "all of its owners have left or expired"},
		{"just vacant", func(e *exam) { last(e).status.Vacant = 2 }, Hint, "space", "2 ranges became vacant during the check"},
		{"vacant", func(e *exam) { last(e).status.Vacant, e.spaces[0].looks[0].status.Vacant = 2, 1 }, Wrong, "space", "2 ranges vacant during the whole check"},
		{"meant to be vacant", func(e *exam) { last(e).status.Vacant, e.spaces[0].config.Policy = 2, "static" }, Hint, "space", "2 ranges vacant"},
		{"many owners", func(e *exam) { e.spaces[0].config.MaxOwners = 2 }, Hint, "space", "2 owners connected, and the limit is 2"},
		{"silent", func(e *exam) { last(e).owners[0].State = admin.OwnerSilent }, Wrong, "owners", "a (11s left)"},
		{"late", func(e *exam) { last(e).owners[0].Patience = admin.Seconds(6 * time.Second) }, Wrong, "owners", "two renewals: a (6s left)"},
		{"twice", func(e *exam) { last(e).owners[0].State = admin.OwnerWaiting }, Wrong, "owners", "another session has the same name: a"},
		{"cannot move", func(e *exam) { last(e).owners[0].MovesState = new(false) }, Hint, "owners", "without state transfer: a"},
		{"supervised", func(*exam) {}, Fine, "crashes", "2 owners, each with a supervisor"},
		{"without a supervisor", func(e *exam) { last(e).owners[1].Supervised = new(false) }, Fine, "crashes", "1 of 2 owners without a supervisor: b; after a crash their keys have no owner for up to 12s"},
		{"without a supervisor, with long leases", func(e *exam) {
			last(e).owners[0].Supervised, e.spaces[0].config.Lease = new(false), admin.Seconds(time.Minute)
			last(e).owners[0].Patience, last(e).owners[1].Patience = admin.Seconds(70*time.Second), admin.Seconds(70*time.Second)
		}, Hint, "crashes", "1 of 2 owners without a supervisor: a; after a crash their keys have no owner for up to 1m12s"},
		{"one with an old leader", func(e *exam) { last(e).owners[0].Supervised = nil }, Fine, "crashes", "1 owner, each with a supervisor"},
		{"leases shorter than a failover", func(e *exam) {
			e.spaces[0].config.Lease, e.spaces[0].config.Renew = admin.Seconds(time.Second), admin.Seconds(250*time.Millisecond)
		}, Hint, "space", "a crash of the leader can interrupt all servers of x: a failover takes up to 2.73s, and leases of 1s, renewed every 250ms, outlive 750ms"},
		{"a manager with a slow failover", func(e *exam) {
			e.managers[2].status.Failover = int64(8 * time.Second)
		}, Hint, "space", "a failover takes up to 8s"},
		{"a drain that does not end", func(e *exam) {
			last(e).owners[0].Draining, e.spaces[0].looks[0].owners[0].Draining = true, true
		}, Hint, "owners", "draining without progress: a"},
		{"a move that does not end", func(e *exam) {
			m := admin.Move{ID: "1", From: "a", To: "b", Bytes: 7, Patience: admin.Seconds(10 * time.Second)}
			e.spaces[0].looks[0].moves, last(e).moves = []admin.Move{m}, []admin.Move{m}
		}, Hint, "moves", "a to b"},
		{"a lookup that lags", func(e *exam) { e.managers[0].lookups["x"].Lookups[0].Behind = 2000 }, Hint, "lookups", "l:1 of x (2,000 changes behind"},
	} {
		e := healthy()
		test.hurt(e)
		found := false
		for _, f := range diagnose(e) {
			switch {
			case f.Verdict == test.verdict && f.Check == test.check && strings.Contains(f.Text, test.says):
				found = true
			case f.Verdict == Wrong && test.check != "reach":
				t.Errorf("%s: also wrong: %+v", test.name, f)
			}
		}
		if !found {
			t.Errorf("%s: no finding %q of %s: %q in %+v", test.name, test.verdict, test.check, test.says, diagnose(e))
		}
	}
}

// TestHTTPOf: a loopback HTTP address of another computer is not checked, because on this computer
// it belongs to another process.
func TestHTTPOf(t *testing.T) {
	for _, test := range [][3]string{
		{"m1:7400", ":7401", "m1:7401"},
		{"m1:7400", "10.0.0.1:7401", "10.0.0.1:7401"},
		{"m1:7400", "127.0.0.1:7401", ""},
		{"10.0.0.1:7400", "[::1]:7401", ""},
		{"127.0.0.1:7400", "127.0.0.1:7401", "127.0.0.1:7401"},
		{"[::1]:7400", ":7401", "[::1]:7401"},
		{"m1:7400", "", ""},
	} {
		if got := httpOf(test[0], test[1]); got != test[2] {
			t.Errorf("a manager at %s with HTTP at %q: %q, want %q", test[0], test[1], got, test[2])
		}
	}
	e := healthy()
	e.managers[1].status.Http = "127.0.0.1:7401"
	for _, f := range diagnose(e) {
		if f.Check == "http" && f.Subject == "m2:7400" && f.Verdict != skipped {
			t.Errorf("finding without a request: %+v", f)
		}
	}
}

// TestClockBoundsHold: with any network delays, the true rate and the true offset are within the
// bounds.
func TestClockBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.5, 2).Draw(t, "rate")
		ahead := time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "ahead"))
		at := time.Now()
		began := at
		var samples []clockSample
		for range rapid.IntRange(2, 20).Draw(t, "samples") {
			there := time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "there"))
			back := time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "back"))
			read := at.Add(there)
			samples = append(samples, clockSample{
				before: at, after: read.Add(back), wall: read.Round(0).Add(ahead),
				monotonic: time.Duration(rate * float64(read.Sub(began))),
			})
			at = read.Add(back).Add(time.Duration(rapid.Int64Range(1e6, 1e10).Draw(t, "pause")))
		}
		const rounding = 1e-6
		if s, ok := rateOf(samples); ok && (rate < s.least-rounding || rate > s.most+rounding) {
			t.Fatalf("the rate %v is not within %v", rate, s)
		}
		if s, ok := offsetOf(samples); !ok || ahead.Seconds() < s.least-rounding || ahead.Seconds() > s.most+rounding {
			t.Fatalf("the offset %v is not within %v", ahead.Seconds(), s)
		}
	})
}
