package lookup

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

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
