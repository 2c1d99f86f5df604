package lookup

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// With any sequence of replies and failures, of any managers, each request goes to at least one manager, and to no
// configured manager twice. Managers are replaced at any time; a request is passed on only to the current ones.
func TestTargetGetsARequestOnce(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		names := []storage.ManagerID{"a", "b", "c", "d"}
		managers := names[:1+r.IntN(3)]
		tg := newTarget(managers, time.Second, r)
		for seq := protocol.Seq(1); seq < 100; seq++ {
			var hint storage.ManagerID
			if r.IntN(4) > 0 {
				hint = names[r.IntN(len(names))]
			}
			if r.IntN(10) == 0 {
				managers = names[r.IntN(2) : 2+r.IntN(3)]
				tg.replace(managers)
			}
			replaced := false
			sent := []storage.ManagerID{tg.choose(hint, &protocol.LookupRequest{Seq: seq})}
			for range r.IntN(8) {
				var passed bool
				if r.IntN(20) == 0 {
					managers, replaced = names[r.IntN(2):2+r.IntN(3)], true
					tg.replace(managers)
				}
				if r.IntN(3) == 0 {
					passed, _ = tg.failed(tg.current)
				} else if tg.request != nil {
					passed = tg.answered(&protocol.LookupReply{
						Leader: names[r.IntN(len(names))], Leads: r.IntN(2) == 0,
						Echo: seq, Age: time.Duration(r.IntN(3)) * time.Second,
					})
				}
				if passed {
					sent = append(sent, tg.current)
				}
				if passed && replaced && !slices.Contains(managers, tg.current) {
					t.Fatalf("seed %d: a request was passed on to %q, which is not one of %q", seed, tg.current, managers)
				}
				if r.IntN(4) == 0 {
					tg.stay = 1 // the lookup leaves its source next
				}
			}
			if !replaced && len(sent) > len(managers)+1 {
				t.Fatalf("seed %d: a request to %q went to %q", seed, managers, sent)
			}
			for _, m := range managers {
				if n := len(slices.DeleteFunc(slices.Clone(sent), func(to storage.ManagerID) bool { return to != m })); n > 1 {
					t.Fatalf("seed %d: a request went to %q", seed, sent)
				}
			}
		}
	}
}

// A machine that has learned its managers sends each request to one of them.
func TestLearnedManagers(t *testing.T) {
	m, err := New(0, Config{
		Namespace: "n", Limits: protocol.DefaultLimits, Poll: time.Second, Stale: time.Minute, Retry: time.Second, Rand: rand.New(rand.NewPCG(1, 0)),
	})
	if err != nil {
		t.Fatal(err)
	}
	to := func(actions []Action) (all []storage.ManagerID) {
		for _, a := range actions {
			if s, ok := a.(Send); ok {
				all = append(all, s.To)
			}
		}
		return all
	}
	actions, _ := m.Advance(0)
	if got := to(actions); !slices.Equal(got, []storage.ManagerID{""}) {
		t.Errorf("the first request goes to %q, want the choice of the shell", got)
	}
	m.Step(0, Managers{[]storage.ManagerID{"a", "b"}})
	actions, _ = m.Advance(mono.Instant(2 * time.Second))
	if got := to(actions); len(got) != 1 || got[0] == "" {
		t.Errorf("the next request goes to %q, want one of the managers", got)
	}
}

// A machine whose managers are being resolved sends a request to each other one, one by one, when they are known, and
// reports a request as unanswered only after that.
func TestResolvedManagers(t *testing.T) {
	for name, test := range map[string]struct {
		known    []storage.ManagerID
		denies   int // number of events before the denial of a known manager: 0 is before the list is complete
		requests int // after the list is complete
	}{
		"none is known":       {nil, 1, 2},
		"one denies before":   {[]storage.ManagerID{"a"}, 0, 1},
		"one denies after it": {[]storage.ManagerID{"a"}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(0, Config{
				Namespace: "n", Limits: protocol.DefaultLimits, Poll: time.Second, Stale: time.Minute, Retry: time.Second, Rand: rand.New(rand.NewPCG(1, 0)),
				Managers: test.known, Resolving: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			m.Advance(0)
			events := []Event{Managers{[]storage.ManagerID{"a", "b"}}}
			if test.known != nil {
				events = slices.Insert(events, test.denies, Event(Refused{From: "a", Kind: leasehold.ErrDenied}))
			}
			requests, reported := 0, false
			for ; len(events) > 0; events = events[1:] {
				actions, _ := m.Step(0, events[0])
				for _, a := range actions {
					switch a := a.(type) {
					case Send:
						requests++
						events = append(events, Refused{From: a.To, Kind: leasehold.ErrDenied})
					case Unanswered:
						if reported = true; requests < test.requests {
							t.Errorf("unanswered after %d requests", requests)
						}
					}
				}
			}
			if requests != test.requests || !reported {
				t.Errorf("%d requests, want %d; unanswered: %v", requests, test.requests, reported)
			}
		})
	}
}

// answer returns the reply of a manager to a request, with an age in seconds. These targets call one above 1 s old.
func answer(from storage.ManagerID, leads bool, age int) *protocol.LookupReply {
	return &protocol.LookupReply{Leader: from, Leads: leads, Age: time.Duration(age) * time.Second}
}

// An old answer passes the request on. If no other manager answers, the next requests go to the others first, and to the
// source of the old answer last.
func TestTargetOfAnOldAnswer(t *testing.T) {
	for seed := range uint64(20) {
		tg := newTarget([]storage.ManagerID{"a", "b", "c"}, time.Second, rand.New(rand.NewPCG(seed, 0)))
		old := tg.choose("", &protocol.LookupRequest{Seq: 1})
		if !tg.answered(answer(old, false, 2)) || tg.current == old {
			t.Fatalf("the request to %s, with an old answer, is not passed on", old)
		}
		sent := []storage.ManagerID{tg.choose(old, &protocol.LookupRequest{Seq: 2})}
		for range 2 {
			passed, pending := tg.failed(tg.current)
			if !passed || !pending {
				t.Fatalf("after failures of %v the request is not passed on", sent)
			}
			sent = append(sent, tg.current)
		}
		if sent[2] != old || sent[0] == sent[1] {
			t.Errorf("%s was old: the next request went to %v, want it last", old, sent)
		}
		if passed, pending := tg.failed(tg.current); passed || pending {
			t.Error("a request is pending after all managers have failed")
		}
		if tg.answered(answer(old, false, 2)) {
			t.Error("a request is passed on although all answers are old")
		}
		if passed, pending := tg.failed(old); passed || pending {
			t.Error("a request is pending after its answer")
		}
	}
}

// A failure of a manager that has not the request changes nothing.
func TestTargetIgnoresOtherFailures(t *testing.T) {
	tg := newTarget([]storage.ManagerID{"a", "b"}, time.Second, rand.New(rand.NewPCG(1, 0)))
	current := tg.choose("", &protocol.LookupRequest{Seq: 1})
	other := storage.ManagerID("a")
	if current == other {
		other = "b"
	}
	if passed, pending := tg.failed(other); passed || !pending || tg.current != current {
		t.Errorf("passed %t, pending %t, to %s", passed, pending, tg.current)
	}
}

// A lookup stays with a standby for 360 to 720 answers, and with a leader for at most 8, and longer after each return.
func TestTargetStays(t *testing.T) {
	stays := func(leads bool, returns int) (shortest, longest int) {
		shortest = StandbyStay
		for seed := range uint64(500) {
			tg := newTarget([]storage.ManagerID{"a", "b", "c"}, time.Second, rand.New(rand.NewPCG(seed, 0)))
			tg.returns = returns
			tg.choose("", &protocol.LookupRequest{Seq: 1})
			tg.answered(answer("a", leads, 0))
			if stay := tg.stay + 1; stay > 0 && !tg.leaving {
				shortest, longest = min(shortest, stay), max(longest, stay)
			}
		}
		return shortest, longest
	}
	for _, test := range []struct {
		leads                 bool
		returns               int
		least, shortest, most int // the shortest of all stays is from least to shortest
	}{
		{false, 0, 361, 380, 720}, {true, 0, 1, 2, 8}, {true, 1, 9, 10, 16}, {true, 4, 65, 70, 128}, {true, 9, 65, 70, 128},
	} {
		if shortest, longest := stays(test.leads, test.returns); shortest < test.least || shortest > test.shortest || longest > test.most || longest < test.most*9/10 {
			t.Errorf("leads %t after %d returns: stays from %d to %d answers, want %d to %d", test.leads, test.returns, shortest, longest, test.least, test.most)
		}
	}
}

// A lookup does not leave a standby for the leader.
func TestTargetDoesNotLeaveForTheLeader(t *testing.T) {
	tg := newTarget([]storage.ManagerID{"a", "b"}, time.Second, rand.New(rand.NewPCG(1, 0)))
	tg.source, tg.leader = "a", "b"
	for range 100 {
		if tg.leaves() {
			t.Fatal("it leaves the only standby")
		}
	}
	tg.leader = ""
	left := 0
	for range 1000 {
		if tg.leaves() {
			left++
		}
	}
	if left < 400 || left > 600 {
		t.Errorf("it leaves one of two standbys %d times in 1,000, want half", left)
	}
}
