package lookup_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const (
	poll = 5 * time.Second // by default
	// met is how long it takes at most to leave a leader that one has just met.
	met = (lookup.FirstStay + 1) * poll
)

// asked is how often each was in the time that passes.
func asked(during time.Duration, managers ...*manager) (times []int) {
	for _, m := range managers {
		m.questions()
	}
	elapse(during)
	for _, m := range managers {
		times = append(times, len(m.questions()))
	}
	return times
}

// Leaders have owners to attend to: lookups listen to standbys, whoever answered first, and
// whatever leaders that they have left say meanwhile.
func TestLeavesTheLeaderToOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m1, m2, m3 := g.start("m1", 1), g.start("m2", 1), g.start("m3", 1)
		m2.relay(1)
		m3.relay(1)
		const lookups, minute = 30, 30 * 12 // questions in a minute
		for range lookups {
			g.open(g.config("m1", "m2", "m3"))
		}
		if len(m1.questions()) == 0 {
			t.Fatal("nobody has asked the leader first: there is nothing to see here")
		}
		elapse(met)
		m1.push(t, 1, 2)
		m2.relay(2)
		m3.relay(2)
		if n := asked(time.Minute, m1, m2, m3); n[0] != 0 || n[1] < minute/6 || n[2] < minute/6 || n[1]+n[2] < minute {
			t.Errorf("%d questions to the leader, %d and %d to standbys", n[0], n[1], n[2])
		}

		m2.lead(2) // it takes over
		m1.relay(2)
		elapse(met)
		if n := asked(time.Minute, m1, m2, m3); n[1] != 0 || n[0]+n[2] < minute {
			t.Errorf("after a change of leaders: %d questions to the new leader, %d and %d to standbys", n[1], n[0], n[2])
		}

		g.stop(m3)
		elapse(met)
		if n := asked(time.Minute, m1, m2); n[1] != 0 || n[0] < minute {
			t.Errorf("after the death of a standby: %d questions to the leader, %d to the other standby", n[1], n[0])
		}
		m3 = g.start("m3", 2)
		m3.relay(2)
		elapse((lookup.StandbyStay + 1) * poll)
		// Who has not met the leader may try it, for a while.
		if n := asked(time.Minute, m1, m2, m3); n[1] > minute/6 || n[0] < minute/6 || n[2] < minute/6 {
			t.Errorf("an hour after it was started again: %d questions to the leader, %d and %d to standbys", n[1], n[0], n[2])
		}
	})
}

// Whoever has met the leader, and left it, does not go there if there is another.
func TestLeaderIsAskedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m1 := g.start("m1", 1)
		l := g.open(g.config("m1", "m2", "m3", "m4"))
		var standbys []*manager
		for _, name := range []string{"m2", "m3", "m4"} {
			standbys = append(standbys, g.start(name, 1))
			standbys[len(standbys)-1].relay(1)
		}
		elapse(time.Minute + met)
		m1.questions()
		for range standbys[1:] {
			for i, n := range asked(2*poll, standbys...) {
				if n > 0 {
					g.stop(standbys[i])
					standbys = append(standbys[:i], standbys[i+1:]...)
					break
				}
			}
		}
		elapse(2 * poll)
		if n := len(m1.questions()); n > 0 || l.Age() > poll+2*time.Second {
			t.Errorf("the leader was asked %d times, and proof is %v old", n, l.Age())
		}
		g.stop(standbys[0])
		if n := asked(poll, m1)[0]; n == 0 {
			t.Error("there is only the leader, and it was not asked")
		}
	})
}

// If only the leader has good answers lookups stay with it, whoever they try now and then:
// what they know is hardly ever older for that, and they find a standby when there is one.
func TestStaysWithLeaderIfNobodyIsBetter(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*group, *manager)
	}{
		{"others are down", func(g *group, m *manager) { g.stop(m) }},
		{"others are silent", func(_ *group, m *manager) { m.fallSilent() }},
		{"others know nothing", func(_ *group, m *manager) { m.standBy() }},
		{"others have lost the leader", func(_ *group, m *manager) { m.relayOf(1, time.Minute) }},
		{"others have too many lookups", func(_ *group, m *manager) { m.refuse(leasehold.ErrLimit) }},
	} {
		for _, managers := range []int{2, 3, 9} {
			t.Run(fmt.Sprintf("%s, of %d", c.name, managers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newGroup(t)
					g.start("m1", 1)
					names, others := []string{"m1"}, []*manager(nil)
					for i := 2; i <= managers; i++ {
						names = append(names, fmt.Sprintf("m%d", i))
						others = append(others, g.start(names[i-1], 1))
						c.spoil(g, others[i-2])
					}
					cfg := g.config(names...)
					cfg.Stale = 3 * poll
					found := false
					cfg.OnLoss = func(losses []leasehold.Loss) {
						if found {
							t.Errorf("lost: %v", losses)
						}
					}
					l := g.open(cfg)
					elapse(cfg.Stale) // it may take a while until one out of nine is found
					found = true
					for _, m := range others {
						m.questions()
					}
					for range 3600 {
						elapse(time.Second)
						if l.Age() > poll+2*time.Second {
							t.Fatalf("proof is %v old", l.Age())
						}
					}
					tries := 0
					for _, m := range others {
						tries += len(m.questions())
					}
					if tries > 40 {
						t.Errorf("the others were asked %d times in an hour", tries)
					}
					back := g.start("m2", 1)
					back.relay(1)
					elapse(time.Duration(managers-1) * 12 * time.Minute)
					if n := asked(time.Minute, back)[0]; n < 11 {
						t.Errorf("when it was back it was asked %d times in a minute", n)
					}
				})
			})
		}
	}
}

// A standby that has lost the leader goes on answering. It must not keep its lookups from
// those who know more, however many there are that do not, and even if nobody has met who does.
func TestLeavesManagerThatIsOutOfDate(t *testing.T) {
	for _, managers := range []int{2, 3, 9} {
		t.Run(fmt.Sprint(managers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				var all []*manager
				var names []string
				for i := range managers {
					names = append(names, fmt.Sprintf("m%d", i+1))
					all = append(all, g.start(names[i], 1))
					all[i].relay(1)
				}
				l := g.open(g.config(names...))
				elapse(time.Minute)
				for _, m := range all[1:] {
					m.relayOf(1, 11*time.Second)
				}
				all[0].lead(3)
				elapse(poll + time.Second)
				wantOwner(t, l, 7, "b:1")
				if l.Age() > poll+2*time.Second {
					t.Errorf("proof is %v old", l.Age())
				}
			})
		})
	}
}

// If everybody has lost the leader a lookup asks one at a time, each in turn.
func TestNobodyKnowsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m1, m2, m3 := g.start("m1", 1), g.start("m2", 1), g.start("m3", 1)
		for _, m := range []*manager{m1, m2, m3} {
			m.relayOf(1, 11*time.Second)
		}
		g.open(g.config("m1", "m2", "m3", "m4")) // m4 is down
		elapse(2 * poll)
		n := asked(time.Minute, m1, m2, m3)
		if all := n[0] + n[1] + n[2]; min(n[0], n[1], n[2]) < 2 || all > 20 {
			t.Errorf("asked %v times in a minute", n)
		}
	})
}

// A lookup of one manager does not storm it, whatever it says.
func TestOneManagerIsNotStormed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		g.open(g.config("m"))
		m.relayOf(1, 15*time.Second)
		elapse(time.Minute)
		for what, spoil := range map[string]func(){
			"knows nothing": m.standBy,
			"is dated":      func() { m.relayOf(1, 15*time.Second) },
			"talks nonsense": func() {
				m.says(func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse { return &leaseholdv1.FollowResponse{} })
			},
			"leads": func() { m.lead(1) },
		} {
			spoil()
			if n := asked(time.Minute, m)[0]; n == 0 || n > 30 {
				t.Errorf("while it %s it was asked %d times in a minute", what, n)
			}
		}
	})
}

// Whoever knows a leader by hearsay only finds it again, as often as it must.
func TestLeaderThatIsNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m1 := g.start("m1", 1)
		for _, name := range []string{"m2", "m3"} {
			g.start(name, 1).pointTo(m1.addr)
		}
		l := g.open(g.config("m2", "m3"))
		for range 3600 {
			elapse(time.Second)
			if l.Age() > poll+2*time.Second {
				t.Fatalf("proof is %v old", l.Age())
			}
		}
		m1.fallSilent()
		elapse(20 * time.Second)
		m1.lead(1)
		elapse(2 * poll)
		if l.Age() > poll+2*time.Second {
			t.Errorf("after it was silent for a while, proof is %v old", l.Age())
		}
	})
}
